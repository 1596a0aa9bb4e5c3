"""Which nucleus to ask about next: the one whose answer is expected to set most names right.

Asking about nucleus i changes names only if the name shown is wrong. Then its cell goes to another
nucleus, and one answer sets both right. So the value of a question is the expected number of names
that its answer sets right,

    value(i) = P(name of i is wrong) * min(nuclei that get another name if it is, `MOST_RIGHTED`).

The first factor comes from `eutely.curate.experience`: answers in other specimens count. The second
one is found by matching again with the nucleus pinned to its likeliest other cell. Longer chains
count as swaps: where to expect them is uncertain, and counting all of a chain takes more questions
(on held-out training worms).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import UNMATCHED
from eutely.costs.near import FREE, NOBODYS
from eutely.curate.experience import Experience, doubts_by, weighed
from eutely.curate.placed import Placed
from eutely.solver.meanfield import settle
from eutely.solver.softassign import Rules

LOOKED_AHEAD = 12
"""Questions of which all consequences are computed: those about the most doubtful nuclei."""

MOST_RIGHTED = 2
"""Names that an answer is expected to set right at most; most errors are swaps of two names."""

ALMOST = (1.4, 1.0, 1.0, 1.0)
"""Temperatures of a mean field around one more pin."""


class Question(NamedTuple):
    """A nucleus to ask about.

    Attributes
    ----------
    row
        of the nucleus.
    doubt
        probability that what is shown is wrong.
    follow
        rows of the nuclei that would get another name, itself included; () if not computed.
    value
        expected number of names that the answer sets right.
    """

    row: int
    doubt: float
    follow: tuple[int, ...]
    value: float


class Consequence(NamedTuple):
    """What follows if a nucleus is another cell.

    Attributes
    ----------
    other
        that cell.
    follow
        nuclei that get another cell then, itself first.
    cells
        what these are now.
    """

    other: int
    follow: tuple[int, ...]
    cells: tuple[int, ...]

    def holds(self, other: int, cells: NDArray[np.int32], pins: NDArray[np.int32]) -> bool:
        """Tell whether nothing has changed around since it was computed."""
        rows = list(self.follow)
        same = self.other == other and tuple(cells[rows].tolist()) == self.cells
        return same and bool((pins[rows] == FREE).all())


Known = dict[int, Consequence]
"""Row of a nucleus -> its consequence."""


def questions(
    specimen: Placed, experience: Experience | None = None, known: Known | None = None
) -> list[Question]:
    """Return the open nuclei, the most valuable question first.

    Parameters
    ----------
    specimen
        matched around its pins.
    experience
        from answers in other specimens, or None.
    known
        consequences computed before, which are used where nothing has changed, and added to.
    """
    maybe = weighed(specimen, experience)
    doubt = doubts_by(specimen, maybe)
    order = np.argsort(-doubt, kind="stable")
    order = order[specimen.pins[order] == FREE]
    likeliest = maybe.likeliest()
    others = {row: likeliest[row] for row in order[:LOOKED_AHEAD].tolist() if row in likeliest}
    follow = consequences(specimen, others, {} if known is None else known)
    listed = []
    for row in order.tolist():
        rows = follow.get(row, ())
        righted = min(len(rows) or MOST_RIGHTED, MOST_RIGHTED)
        listed.append(Question(row, float(doubt[row]), rows, float(doubt[row]) * righted))
    return sorted(listed, key=lambda question: -question.value)


def consequences(
    specimen: Placed, others: Mapping[int, int], known: Known
) -> dict[int, tuple[int, ...]]:
    """Return row -> the nuclei that get another cell if that nucleus is another cell.

    Parameters
    ----------
    specimen
        matched around its pins.
    others
        row -> that other cell; ``m`` for no cell.
    known
        see `questions`.
    """
    cells, pins = specimen.nuclei.cells, specimen.pins
    for row, other in others.items():
        if row not in known or not known[row].holds(other, cells, pins):
            follow = _follow(specimen, row, other)
            known[row] = Consequence(other, follow, tuple(cells[list(follow)].tolist()))
    return {row: known[row].follow for row in others}


def _follow(specimen: Placed, row: int, other: int) -> tuple[int, ...]:
    """Return the nuclei with another cell if a nucleus is ``other``; itself first."""
    model, fit = specimen.model, specimen.fit
    if fit.view is not None:
        model = model.through(fit.view)
    start = model.means.copy()
    matched = np.flatnonzero(fit.nuclei >= 0)
    start[matched] = fit.warped[fit.nuclei[matched]]
    pins = specimen.pins.copy()
    pins[row] = other if other < len(fit.nuclei) else NOBODYS
    rules = Rules(model.freedom, model.c0(fit.rates), pins, specimen.terms)
    field = model.loosened(fit.error).field
    settled = settle(field, fit.warped, start, rules, cooling=ALMOST, crowd=fit.crowd)
    cells = np.full(len(pins), UNMATCHED, np.int32)
    taken = np.flatnonzero(settled.nuclei >= 0)
    cells[settled.nuclei[taken]] = taken
    changed = np.flatnonzero(cells != specimen.nuclei.cells).tolist()
    return (row, *(each for each in changed if each != row))
