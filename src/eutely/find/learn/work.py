"""What the stages of learning have in common: specimens, matchings, losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Matchings
from eutely.config.model import Learn
from eutely.execute import Executor
from eutely.find.learn.study import Journal, Trial
from eutely.multi import cycle_loss, synchronisation_loss
from eutely.pairs import match_pairs
from eutely.learned import Parameters, Triple

Points = NDArray[np.float64]

Progress = Callable[[str, int, int, float], None]
"""Called with (stage, trials done, trials in all, lowest loss so far)."""

AXES = ("x", "y", "z")


def triple(values: Iterable[float]) -> Triple:
    """Return three numbers as a triple."""
    x, y, z = values
    return x, y, z


def loss_of(matchings: Matchings, kind: str, seed: int = 0) -> int:
    """Return the loss of matchings (section 3.1); lower is more consistent.

    Parameters
    ----------
    matchings
        of all pairs.
    kind
        ``sync``, minus the matches that sparse synchronisation keeps; ``sync-dense``, the same of
        dense synchronisation; or ``cycle``, the inconsistent triples.
    seed
        of the synchronisation.
    """
    if kind == "cycle":
        return cycle_loss(matchings)
    return synchronisation_loss(matchings, sparse=kind == "sync", seed=seed)


@dataclass(frozen=True)
class Work:
    """What all stages work with.

    Attributes
    ----------
    frames, radii
        of the specimens to learn on.
    neighbours
        of each nucleus whose offsets are compared.
    settings
        the section ``learn`` of the configuration.
    executor, seed
        where to run, and where all random choices start.
    journal, progress
        where trials are kept, and who is told about them.
    """

    frames: list[Points]
    radii: list[Points]
    neighbours: int
    settings: Learn
    executor: Executor
    seed: int
    journal: Journal
    progress: Progress | None

    def matchings(self, parameters: Parameters, *, dense: bool, neighbours: int) -> Matchings:
        """Match all pairs, as fast as the solver can."""
        return match_pairs(
            self.frames,
            self.radii,
            parameters,
            self.settings.c0,
            self.executor,
            dense=dense,
            neighbours=neighbours,
            effort="fast",
            allowed=True,
        )

    def loss(self, matchings: Matchings) -> int:
        """Return the loss that the settings ask for."""
        return loss_of(matchings, self.settings.loss, self.seed)

    def teller(self, stage: str, count: int) -> Callable[[Sequence[Trial]], None]:
        """Return what tells the lowest loss after each trial."""

        def told(trials: Sequence[Trial]) -> None:
            if self.progress is not None:
                lowest = min(trial.losses[0] for trial in trials)
                self.progress(stage, len(trials), count, lowest)

        return told
