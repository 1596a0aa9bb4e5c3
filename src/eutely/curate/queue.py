"""Which nucleus to ask about next: the one whose answer is expected to set most names right.

Asking about nucleus i changes names only if the name shown is wrong. Then its cell goes to another
nucleus, which may push a third one: errors come in swaps and chains, and one answer rights them
all. So the value of a question is

    value(i) = P(name of i is wrong) * (nuclei that get another name if it is),

the expected number of names that the answer changes. The second factor is found by matching again
with the nucleus pinned to its likeliest other cell.

The first factor starts from the confidence p, whose errors differ between cells: some pairs are
confused far more often than a model can know, since people name them differently for instance. What
was answered in other specimens shows it. If W_c answers about nuclei shown as cell c were "wrong"
where confidences made one expect E_c, the odds of an error are multiplied by
(W_c + PRIOR) / (E_c + PRIOR).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import UNMATCHED
from eutely.costs.near import FREE, NOBODYS
from eutely.curate.placed import Placed
from eutely.solver.meanfield import settle
from eutely.solver.softassign import Rules

PRIOR = 0.2
"""Errors that "as many as expected" counts for. With 0.1 to 0.3, held-out training worms need the
fewest questions."""

LOOKED_AHEAD = 12
"""Questions of which all consequences are computed: those about the most doubtful nuclei."""

USUAL = 2.0
"""Nuclei that change names with a wrong one, where it was not computed: most errors are swaps."""

ALMOST = (1.4, 1.0, 1.0, 1.0)
"""Temperatures of a mean field around one more pin."""

SURELY = 1e-6
"""Probabilities nearer to 0 or 1 than this are taken for this."""


class Experience(NamedTuple):
    """What answers about cells have shown, in other specimens.

    Attributes
    ----------
    wrong
        (m + 1,), answers by which a nucleus was not the cell it was shown as; the last entry is for
        nuclei that were shown as no cell.
    expected
        (m + 1,), how many such answers the confidences made one expect.
    """

    wrong: NDArray[np.float64]
    expected: NDArray[np.float64]

    @classmethod
    def of(cls, specimens: Iterable[Placed], cells: int) -> Experience:
        """Count all pins of ``specimens`` against what was shown without pins."""
        wrong, expected = np.zeros(cells + 1), np.zeros(cells + 1)
        for specimen in specimens:
            rows = np.flatnonzero(specimen.pins != FREE)
            first = specimen.first
            shown = first.nuclei.cells[rows]
            differs = specimen.first_cells[rows] != specimen.pins[rows]
            np.add.at(wrong, shown, differs)
            np.add.at(expected, shown, 1 - first.sure[rows])
        return cls(wrong, expected)

    def plus(self, other: Experience) -> Experience:
        """Return the sum of two experiences."""
        return Experience(self.wrong + other.wrong, self.expected + other.expected)

    def factors(self) -> NDArray[np.float64]:
        """Return (m + 1,), by what the odds of errors are multiplied."""
        return np.asarray((self.wrong + PRIOR) / (self.expected + PRIOR))


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


def doubts(specimen: Placed, experience: Experience | None = None) -> NDArray[np.float64]:
    """Return (n,), the probability that what is shown of each nucleus is wrong; 0 for pinned ones.

    Parameters
    ----------
    specimen
        matched around its pins.
    experience
        from answers in other specimens, or None.
    """
    doubt = np.clip(1 - specimen.sure, SURELY, 1 - SURELY)
    if experience is not None:
        odds = doubt / (1 - doubt) * experience.factors()[specimen.nuclei.cells]
        doubt = odds / (1 + odds)
    return np.where(specimen.pins == FREE, doubt, 0.0)


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
    doubt = doubts(specimen, experience)
    order = np.argsort(-doubt, kind="stable")
    order = order[specimen.pins[order] == FREE]
    follow = consequences(specimen, order[:LOOKED_AHEAD], {} if known is None else known)
    listed = [
        Question(row, float(doubt[row]), rows, float(doubt[row]) * (len(rows) or USUAL))
        for row, rows in ((row, follow.get(row, ())) for row in order.tolist())
    ]
    return sorted(listed, key=lambda question: -question.value)


def consequences(
    specimen: Placed, rows: NDArray[np.intp], known: Known
) -> dict[int, tuple[int, ...]]:
    """Return for each of ``rows``: the nuclei with another cell if it is its likeliest other cell.

    Nuclei without any alternative are left out. Parameters: see `questions`.
    """
    cells, pins = specimen.nuclei.cells, specimen.pins
    result: dict[int, tuple[int, ...]] = {}
    for row in rows.tolist():
        other = _likeliest_other(specimen, row)
        if other is None:
            continue
        before = known.get(row)
        if before is None or not before.holds(other, cells, pins):
            follow = _follow(specimen, row, other)
            before = known[row] = Consequence(other, follow, tuple(cells[list(follow)].tolist()))
        result[row] = before.follow
    return result


def _follow(specimen: Placed, row: int, other: int) -> tuple[int, ...]:
    """Return the nuclei with another cell if a nucleus is ``other``; itself first."""
    model, fit = specimen.model, specimen.fit
    if fit.view is not None:
        model = model.through(fit.view)
    start = model.means.copy()
    matched = np.flatnonzero(fit.nuclei >= 0)
    start[matched] = fit.warped[fit.nuclei[matched]]
    pins = specimen.pins.copy()
    pins[row] = other
    rules = Rules(model.freedom, model.c0(fit.rates), pins, specimen.terms)
    field = model.loosened(fit.error).field
    settled = settle(field, fit.warped, start, rules, cooling=ALMOST, crowd=fit.crowd)
    cells = np.full(len(pins), UNMATCHED, np.int32)
    taken = np.flatnonzero(settled.nuclei >= 0)
    cells[settled.nuclei[taken]] = taken
    changed = np.flatnonzero(cells != specimen.nuclei.cells).tolist()
    return (row, *(each for each in changed if each != row))


def _likeliest_other(specimen: Placed, row: int) -> int | None:
    """Return the likeliest other cell of a nucleus that no pin has, or `NOBODYS`; or None."""
    nuclei = specimen.nuclei
    taken = set(specimen.pins[specimen.pins >= 0].tolist())
    others = zip(nuclei.other_cells[row].tolist(), nuclei.other_shares[row].tolist(), strict=True)
    free = [(share, cell) for cell, share in others if cell != UNMATCHED and cell not in taken]
    if nuclei.cells[row] != UNMATCHED:
        rest = 1 - float(nuclei.other_shares[row].sum()) - float(nuclei.confidence[row])
        free.append((rest, NOBODYS))
    free = [(share, cell) for share, cell in free if share > 0]
    return max(free)[1] if free else None


def expected_right(specimen: Placed, experience: Experience | None = None) -> float:
    """Return the share of the nuclei that are expected to be right."""
    doubt = doubts(specimen, experience)
    return 1 - float(doubt.mean()) if len(doubt) else 1.0
