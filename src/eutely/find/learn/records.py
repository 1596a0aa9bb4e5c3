"""Results of the steps as records, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Cliques, Matchings
from eutely.record import Record, pieces
from eutely.find.learn.stages import Learned
from eutely.find.learn.study import Trial
from eutely.learned import Parameters
from eutely.align.consensus import Aligned


def aligned_saved(cohort: Aligned) -> Record:
    """Return an aligned cohort as a record."""
    return Record(
        {
            "counts": np.array([len(frame) for frame in cohort.frames]),
            "frames": np.concatenate(cohort.frames),
            "radii": np.concatenate(cohort.radii),
            "poses": cohort.poses,
            "consistency": cohort.consistency,
            "distance": cohort.distance,
        },
        {"target": cohort.target},
    )


def aligned_of(record: Record) -> Aligned:
    """Return the aligned cohort of a record."""
    arrays = record.arrays
    return Aligned(
        pieces(arrays["frames"], arrays["counts"]),
        pieces(arrays["radii"], arrays["counts"]),
        arrays["poses"],
        int(record.metadata["target"]),
        arrays["consistency"],
        arrays["distance"],
    )


def learned_saved(learned: Learned) -> Record:
    """Return what was learned as a record."""
    trials = {
        stage: [[trial.values, list(trial.losses)] for trial in done]
        for stage, done in learned.trials.items()
    }
    return Record(
        {"specimens": np.array(learned.specimens)},
        {"parameters": learned.parameters.as_dict(), "trials": trials},
    )


def learned_of(record: Record) -> Learned:
    """Return what was learned of a record."""
    return Learned(
        Parameters.from_dict(record.metadata["parameters"]),
        tuple(record.arrays["specimens"].tolist()),
        {
            stage: [Trial(values, tuple(losses)) for values, losses in done]
            for stage, done in record.metadata["trials"].items()
        },
    )


def matchings_saved(matchings: Matchings) -> Record:
    """Return matchings as a record."""
    arrays: dict[str, NDArray[Any]] = {
        "sizes": matchings.sizes,
        "pairs": matchings.pairs,
        "starts": matchings.starts,
        "partners": matchings.partners,
    }
    if matchings.allowed is not None:
        arrays["allowed"] = matchings.allowed
    return Record(arrays)


def matchings_of(record: Record) -> Matchings:
    """Return the matchings of a record."""
    return Matchings(**record.arrays)


def cliques_saved(cliques: Cliques) -> Record:
    """Return cliques as a record."""
    return Record({"starts": cliques.starts, "labels": cliques.labels})


def cliques_of(record: Record) -> Cliques:
    """Return the cliques of a record."""
    return Cliques(record.arrays["starts"], record.arrays["labels"])
