"""A cohort learns: an atlas shifted to curated specimens, and how much better it names others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from eutely.atlas import Atlas
from eutely.costs.near import FREE, NOBODYS
from eutely.curate.cohort import Cohort, moved
from eutely.curate.placed import Placed
from eutely.errors import EutelyError
from eutely.fit.model import model_of_atlas
from eutely.fit.place import match_jointly
from eutely.results import Shown

FEWEST = 2
"""Curated specimens from which an atlas can learn, each judged by what the others show."""


class Lesson(NamedTuple):
    """What curated specimens have taught.

    Attributes
    ----------
    atlas
        shifted to the curated specimens.
    specimens
        names of the curated specimens.
    settled
        nuclei that a person settled in them.
    before, after
        share of these that the atlas names right, and that an atlas shifted to the other curated
        specimens does: no specimen is judged by its own corrections.
    """

    atlas: Atlas
    specimens: tuple[str, ...]
    settled: int
    before: float
    after: float

    def words(self) -> str:
        """Return the lesson in a sentence."""
        return (
            f"Learned from {len(self.specimens)} curated specimens. Of the {self.settled} nuclei "
            f"settled in them the atlas named {self.before:.1%} right; shifted to the other "
            f"curated specimens it names {self.after:.1%} right."
        )


def lesson(cohort: Cohort, curated: Sequence[Placed]) -> Lesson:
    """Shift the atlas to curated specimens, and measure on each what the others teach.

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
    settled = [_shown(one) for one in curated]
    right = np.zeros(2)
    total = 0
    for number, one in enumerate(curated):
        others = [*settled[:number], *settled[number + 1 :]]
        model = model_of_atlas(moved(cohort.atlas, others, cohort.specimens))
        rows = np.flatnonzero(one.pins != FREE)
        fit = match_jointly(model, one.first.fit, refits=1, probabilities=True)
        again = replace(one.first, model=model, fit=fit)
        for place, version in enumerate((one.first, again)):
            right[place] += (version.first_cells[rows] == one.pins[rows]).sum()
        total += len(rows)
    before, after = (right / max(total, 1)).tolist()
    atlas = moved(cohort.atlas, settled, cohort.specimens)
    return Lesson(atlas, tuple(one.name for one in curated), total, before, after)


def _shown(one: Placed) -> Shown:
    """Return a curated specimen with its corrected cells; pinned nuclei that are none have none."""
    nuclei = one.nuclei
    cells = np.where(one.pins == NOBODYS, -1, nuclei.cells).astype(np.int32)
    return Shown(one.name, nuclei.places, cells, nuclei.confidence, one.ids)
