"""A cohort learns: an atlas shifted to curated specimens, if it names others of them better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from eutely.atlas import Atlas
from eutely.costs.near import NOBODYS
from eutely.curate.cohort import Cohort, moved
from eutely.curate.placed import Placed
from eutely.errors import EutelyError
from eutely.fit.match import match_jointly
from eutely.fit.model import model_of_atlas
from eutely.geometry import folds
from eutely.results import Shown

FEWEST = 2
"""Curated specimens from which an atlas can learn, each judged by what the others show."""

PRIORS = (1.0, 5.0, 20.0, 80.0)
"""Specimens that the atlas may count for against the curated ones; the best number is taken."""

PARTS, JUDGED = 5, 20
"""Parts of the curated specimens that are held out in turn, and specimens that are judged."""


class Lesson(NamedTuple):
    """What curated specimens have taught.

    Attributes
    ----------
    atlas
        shifted to the curated specimens; None where no shift names them better.
    specimens
        names of the curated specimens.
    judged
        nuclei of the specimens that were held out in turn.
    before, after
        share of these that are named as the curated specimens have them: by the atlas as it was,
        and by an atlas shifted to other curated specimens.
    """

    atlas: Atlas | None
    specimens: tuple[str, ...]
    judged: int
    before: float
    after: float

    def words(self) -> str:
        """Return the lesson in a sentence."""
        held_out = (
            f"{len(self.specimens)} specimens are curated. The atlas named {self.before:.2%} of "
            f"their nuclei right; shifted to others of them it names {self.after:.2%} right"
        )
        return f"{held_out}, so {'it is shifted' if self.atlas else 'it stays as it was'}."


def lesson(cohort: Cohort, curated: Sequence[Placed]) -> Lesson:
    """Shift the atlas to curated specimens, as far as that names held-out ones better.

    Parameters
    ----------
    cohort
        the specimens and their atlas.
    curated
        specimens of the cohort, matched around their pins.
    """
    if len(curated) < FEWEST:
        raise EutelyError(
            f"--learn: {len(curated)} specimens have corrections, expected at least {FEWEST}; "
            "correct some more first"
        )
    settled = [shown_as_curated(specimen) for specimen in curated]
    part = folds(len(curated), min(PARTS, len(curated)))
    judged = range(min(len(curated), JUDGED))
    right = np.zeros(1 + len(PRIORS))
    for held_out in range(int(part.max()) + 1):
        others = [shown for shown, at in zip(settled, part, strict=True) if at != held_out]
        models = [
            model_of_atlas(moved(cohort.atlas, others, cohort.specimens, prior)) for prior in PRIORS
        ]
        for number in judged:
            if part[number] != held_out:
                continue
            first, truth = curated[number].first, settled[number].cells
            right[0] += (first.nuclei.cells == truth).sum()
            for at, model in enumerate(models):
                fit = match_jointly(model, first.fit, refits=1, probabilities=True)
                again = replace(first, model=model, fit=fit)
                right[1 + at] += (again.nuclei.cells == truth).sum()
    total = sum(len(settled[number]) for number in judged)
    best = int(np.argmax(right[1:]))
    helps = right[1 + best] > right[0]
    atlas = moved(cohort.atlas, settled, cohort.specimens, PRIORS[best]) if helps else None
    before, after = (right[[0, 1 + best]] / max(total, 1)).tolist()
    return Lesson(atlas, tuple(specimen.name for specimen in curated), total, before, after)


def shown_as_curated(one: Placed) -> Shown:
    """Return a curated specimen with its corrected cells; pinned nuclei that are none have none."""
    nuclei = one.nuclei
    cells = np.where(one.pins == NOBODYS, -1, nuclei.cells).astype(np.int32)
    return Shown(one.name, nuclei.places, cells, nuclei.confidence, one.ids)
