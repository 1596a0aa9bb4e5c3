"""How likely each name is wrong, by its confidence and by answers in other specimens.

A model cannot know that some cells are confused far more often than their places say, since people
name them differently for instance. Answers show it. If a nucleus is shown as cell s and may be cell
a instead, with probabilities p_s and p_a by its place, the odds after answers in other specimens
are

    p_a / p_s * exp(shift[s, a]).

A shift is the likeliest value given all answers about nuclei shown as s that were s or a, a
logistic regression with a normal prior of mean 0 and standard deviation `SPREAD`. Shifts belong to
pairs of cells: once the nucleus of a is settled, a nucleus shown as s is doubted no more for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import UNMATCHED
from eutely.costs.near import FREE, NOBODYS
from eutely.curate.placed import Placed

SPREAD = 2.0
"""Standard deviation of shifts. Held-out training worms need the same questions with 1.5 to 2.5."""

LEAST = 1e-4
"""Probability of a cell that a nucleus was found to be although it was not even an alternative."""

SURELY = 1e-6
"""Probabilities nearer to 0 or 1 than this are taken for this."""

STEPS, LONGEST = 25, 2.0
"""Steps of Newton's method for shifts, and the longest one."""

UNKNOWN = -9
"""Stands for a cell that is not known."""


class Possible(NamedTuple):
    """What nuclei may be besides what is shown: sparse entries, sorted by row.

    Attributes
    ----------
    rows
        of the nuclei.
    others
        cells; ``m`` for no cell.
    shares
        probabilities.
    """

    rows: NDArray[np.intp]
    others: NDArray[np.intp]
    shares: NDArray[np.float64]

    def likeliest(self) -> dict[int, int]:
        """Return row -> the likeliest of its other cells."""
        order = np.lexsort((-self.shares, self.rows))
        rows, first = np.unique(self.rows[order], return_index=True)
        return dict(zip(rows.tolist(), self.others[order][first].tolist(), strict=True))


def shown_as(specimen: Placed) -> NDArray[np.intp]:
    """Return (n,), the cell that each nucleus is shown as; ``m`` for no cell."""
    cells = specimen.nuclei.cells.astype(np.intp)
    return np.where(cells == UNMATCHED, len(specimen.fit.nuclei), cells)


def possible(specimen: Placed) -> Possible:
    """Return what each nucleus may be besides what is shown."""
    nuclei, none = specimen.nuclei, len(specimen.fit.nuclei)
    rest = 1 - nuclei.other_shares.sum(axis=1) - np.nan_to_num(nuclei.confidence, nan=1.0)
    others = np.column_stack([nuclei.other_cells, np.full(len(rest), none)]).astype(np.intp)
    shares = np.column_stack([nuclei.other_shares, np.maximum(rest, 0.0)])
    settled = np.isin(others, specimen.pins[specimen.pins >= 0])
    rows, columns = np.nonzero((others != UNMATCHED) & (shares > 0) & ~settled)
    return Possible(rows, others[rows, columns], shares[rows, columns])


@dataclass(frozen=True, eq=False)
class Experience:
    """Answers about pairs of cells: shown as one, and possibly another.

    Attributes
    ----------
    cells
        ``m``.
    pairs
        (r,), s * (m + 1) + a for an answer about a nucleus shown as s that may be a.
    logits
        (r,), the logarithm of p_a / p_s.
    was
        (r,), whether it was a.
    """

    cells: int
    pairs: NDArray[np.intp]
    logits: NDArray[np.float64]
    was: NDArray[np.bool_]

    @classmethod
    def of(cls, specimens: Iterable[Placed], cells: int) -> Experience:
        """Collect the answers in ``specimens``, which are matched around them."""
        total = cls(cells, np.zeros(0, np.intp), np.zeros(0), np.zeros(0, bool))
        for specimen in specimens:
            total = total.plus(cls._of(specimen, cells))
        return total

    @classmethod
    def _of(cls, specimen: Placed, cells: int) -> Experience:
        """Collect the answers in one specimen, and which names changed with them."""
        first, pins = specimen.first, specimen.pins
        shown, now, listed = shown_as(first), shown_as(specimen), possible(first)
        truth = np.where(now != shown, now, UNKNOWN)
        truth = np.where(pins != FREE, np.where(pins == NOBODYS, cells, pins), truth)
        settled = np.zeros(cells + 1, bool)
        settled[pins[pins >= 0]] = True  # no other nucleus is this cell
        rows, others, shares = listed
        was = truth[rows] == others
        was_not = (truth[rows] == shown[rows]) | (settled[others] & ~was)
        told = was | was_not
        rows, others, shares, was = rows[told], others[told], shares[told], was[told]
        # Answers that were not even alternatives.
        odd = np.setdiff1d(np.flatnonzero((truth != UNKNOWN) & (truth != shown)), rows[was])
        rows = np.concatenate([rows, odd])
        others = np.concatenate([others, truth[odd]])
        shares = np.concatenate([shares, np.full(len(odd), LEAST)])
        was = np.concatenate([was, np.ones(len(odd), bool)])
        logits = np.log(np.maximum(shares, LEAST) / np.maximum(first.sure[rows], LEAST))
        return cls(cells, shown[rows] * (cells + 1) + others, logits, was)

    def plus(self, other: Experience) -> Experience:
        """Return the answers of both."""
        return Experience(
            self.cells,
            np.concatenate([self.pairs, other.pairs]),
            np.concatenate([self.logits, other.logits]),
            np.concatenate([self.was, other.was]),
        )

    @cached_property
    def shifts(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Pairs of cells in ascending order, and their shifts."""
        pairs, at = np.unique(self.pairs, return_inverse=True)
        shift = np.zeros(len(pairs))
        for _ in range(STEPS):
            chance = 1 / (1 + np.exp(-self.logits - shift[at]))
            slope = np.bincount(at, self.was - chance, len(pairs)) - shift / SPREAD**2
            bend = np.bincount(at, chance * (1 - chance), len(pairs)) + 1 / SPREAD**2
            shift += np.clip(slope / bend, -LONGEST, LONGEST)
        return pairs, shift

    def weighed(self, specimen: Placed) -> Possible:
        """Return what the nuclei of a specimen may be; shares are multiplied by exp(shift)."""
        pairs, shift = self.shifts
        rows, others, shares = possible(specimen)
        if not len(pairs):
            return Possible(rows, others, shares)
        width = self.cells + 1
        keys = shown_as(specimen)[rows] * width + others
        at = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
        shares = shares * np.exp(np.where(pairs[at] == keys, shift[at], 0.0))
        # Cells that nuclei were found to be elsewhere, although they are no alternatives here.
        new = np.flatnonzero((shift > 0) & ~np.isin(pairs, keys))
        holder = np.full(width, UNMATCHED)
        holder[specimen.nuclei.cells] = np.arange(len(specimen.ids))
        holder[self.cells] = UNMATCHED
        settled = np.isin(pairs[new] % width, specimen.pins[specimen.pins >= 0])
        new = new[~settled & (holder[pairs[new] // width] != UNMATCHED)]
        rows = np.concatenate([rows, holder[pairs[new] // width]])
        order = np.argsort(rows, kind="stable")
        others = np.concatenate([others, pairs[new] % width])
        shares = np.concatenate([shares, LEAST * np.exp(shift[new])])
        return Possible(rows[order], others[order], shares[order])


def weighed(specimen: Placed, experience: Experience | None) -> Possible:
    """Return what nuclei may be, by answers in other specimens as well."""
    return possible(specimen) if experience is None else experience.weighed(specimen)


def doubts(specimen: Placed, experience: Experience | None = None) -> NDArray[np.float64]:
    """Return (n,), the probability that what is shown of each nucleus is wrong; 0 for pinned ones.

    Parameters
    ----------
    specimen
        matched around its pins.
    experience
        from answers in other specimens, or None.
    """
    return doubts_by(specimen, weighed(specimen, experience))


def doubts_by(specimen: Placed, maybe: Possible) -> NDArray[np.float64]:
    """Return (n,), the doubts about nuclei that may be something else; see `doubts`."""
    rows, _, shares = maybe
    other = np.bincount(rows, shares, len(specimen.ids))
    doubt = np.clip(other / np.maximum(other + specimen.sure, SURELY), SURELY, 1 - SURELY)
    return np.where(specimen.pins == FREE, doubt, 0.0)


def expected_right(specimen: Placed, experience: Experience | None = None) -> float:
    """Return the share of the nuclei that are expected to be right."""
    doubt = doubts(specimen, experience)
    return 1 - float(doubt.mean()) if len(doubt) else 1.0
