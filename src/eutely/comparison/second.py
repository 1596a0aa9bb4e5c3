"""Second places: cells that lie elsewhere in several animals get their nuclei back.

Naming prefers what the atlas expects. A cell that moved in a mutant is named with little
confidence, takes the name of a neighbour, or has no nucleus at all; but its nucleus lies out of
place in the same way in several animals. Such places are looked for in all animals alike, whatever
their group, so that the tests hold as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.comparison.clusters import (
    OUT,
    Expected,
    Nuclei,
    Second,
    clusters,
    expected,
    in_one_frame,
    out_of_place,
)
from eutely.comparison.measured import measured
from eutely.comparison.relative import positions
from eutely.specimen import Specimen

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

LOST = 25.0
"""Cost of a cell without a nucleus; no distance costs more."""

AROUND, OWNERS = 40, 6
"""Nearest cells that are named again around a second place, and how many may own it."""

REACH = 3.0
"""Spacings between a cell and its second place, at most."""

STAY = 6.0
"""What naming a nucleus otherwise costs, times its confidence."""

CERTAIN, NAILED = 0.995, 500.0
"""Confidence from which names stay, such as those that a person gave; and what else it costs."""

NEEDED = 10.0
"""Cost that a second place must save per animal; where it saves less, names get worse by it."""

CLEAR = 0.8
"""Probability of the owner below which nothing is named again: most are wrong."""

SLIGHT = 0.02
"""Probability of a name that naming did not consider."""

NEVER = 1e6
"""Cost of what is not allowed."""

INDEPENDENT = 0.5
"""Animals that all those of a second place count for when owners are compared: errors of the atlas
are the same in all of them, and look like evidence."""


class _Local(NamedTuple):
    """The nuclei of one animal around a second place, and what each costs as each cell.

    Attributes
    ----------
    rows
        (k,) int64, nuclei of the annotation.
    costs
        (cells, k) float64, squared distances, up to `LOST`, less for the cell that it has.
    outside
        (cells,) float64, the same of the nucleus at the second place.
    """

    rows: Cells
    costs: Array
    outside: Array


def renamed(
    atlas: Atlas, specimens: Sequence[Specimen], annotations: Sequence[Annotation]
) -> list[Annotation]:
    """Return annotations in which nuclei at second places have the cell that they belong to.

    A second place is a cluster of nuclei that are out of place and unsure, of at least three
    animals. Its owner is the cell without which the other cells around it fit best, summed over
    these animals; no cell owns two. Nuclei around it are then named again, without the owner's.
    Confidences are multiplied by that of the owner being the right one.

    Parameters
    ----------
    atlas
        whose cells they are.
    specimens, annotations
        all animals, and how each was named.
    """
    # Ties are decided by the order of the animals, which must not be that of their groups.
    order = sorted(range(len(annotations)),
                   key=lambda k: np.sort(annotations[k].places, axis=0).tobytes())  # fmt: skip
    found = [
        replace(one, cells=one.cells.copy(), confidence=one.confidence.copy())
        for one in (annotations[k] for k in order)
    ]
    cells = measured(atlas, [specimens[k] for k in order], found)
    here = positions(atlas, cells)
    model = expected(atlas, here, cells.weights, cells.spacing)
    frame = in_one_frame(found, here)
    seconds = clusters(frame, out_of_place(found, frame, model), model)
    taken = np.zeros(len(frame.places), dtype=np.bool_)
    for second in seconds:
        taken[second.members] = True
    claims = [_claim(found, frame, taken, second, model) for second in seconds]
    owned = []
    for second, owner in zip(seconds, _owners(claims, len(atlas)), strict=True):
        if owner is None:
            taken[second.members] = False
        else:
            owned.append((second, *owner))
    for second, cell, share in owned:
        _give_back(found, frame, second, cell, share)
    for second, _, share in owned:
        _name_around(found, frame, taken, second, share, model)
    again = dict(zip(order, found, strict=True))
    return [_completed(atlas, one, again[k]) for k, one in enumerate(annotations)]


def _completed(atlas: Atlas, before: Annotation, after: Annotation) -> Annotation:
    """Return an annotation with the names of its new cells; these have no alternatives."""
    same = (before.cells == after.cells) & ~(before.confidence < after.confidence)
    return replace(
        after,
        names=tuple(atlas.names[cell] if cell >= 0 else "" for cell in after.cells.tolist()),
        alternatives=tuple(
            others if kept else () for others, kept in zip(before.alternatives, same, strict=True)
        ),
    )


def _claim(
    found: Sequence[Annotation],
    frame: Nuclei,
    taken: NDArray[np.bool_],
    second: Second,
    model: Expected,
) -> dict[int, float]:
    """Return cells that may own a second place -> costs; none if it is not needed.

    Costs are those of the other cells around it, of the distance, and of the names that its nuclei
    had: -2 log P.
    """
    cells = model.around(second.centre, AROUND)
    parts = [_local(found, frame, taken, member, cells, model) for member in second.members]
    vacant = np.zeros(len(cells))
    for part in parts:
        costs = part.costs
        _, columns = _assigned(costs)
        paid = np.where(columns >= 0, costs[np.arange(len(cells)), columns], LOST)
        vacant += paid > OUT
    away = np.linalg.norm(model.means[cells] - second.centre, axis=1) / model.spacing
    vacant[away > REACH] = -1
    owners = [k for k in np.argsort(-vacant, kind="stable")[:OWNERS].tolist() if vacant[k] > 0]
    if not owners:
        return {}
    apart = frame.places[second.members] - second.centre
    totals = []
    for k in owners:
        inverse = np.linalg.inv(model.spread[cells[k]])
        own = np.minimum(np.einsum("kd,de,ke->k", apart, inverse, apart), LOST)
        totals.append(own.sum() + sum(_without(part, k) for part in parts))
    least = min(totals)
    if least + NEEDED * len(parts) > sum(_as_it_is(part) for part in parts):
        return {}
    factor = min(1.0, INDEPENDENT / len(parts))
    before = _named_before(found, frame, second.members)
    return {
        int(cells[k]): float(
            factor * (total - least)
            + away[k] ** 2
            - 2 * np.log(before.get(int(cells[k]), 0.0) / len(parts) + SLIGHT)
        )
        for k, total in zip(owners, totals, strict=True)
    }


def _named_before(found: Sequence[Annotation], frame: Nuclei, members: Cells) -> dict[int, float]:
    """Return cells -> their probabilities, summed over nuclei."""
    result: dict[int, float] = {}
    for animal, row in zip(frame.animal[members].tolist(), frame.row[members].tolist(),
                           strict=True):  # fmt: skip
        annotation = found[animal]
        first = (int(annotation.cells[row]), float(np.nan_to_num(annotation.confidence[row])))
        for cell, share in (first, *annotation.alternatives[row]):
            result[cell] = result.get(cell, 0.0) + share
    return result


def _owners(claims: Sequence[dict[int, float]], cells: int) -> list[tuple[int, float] | None]:
    """Return the owner of each second place with its probability; no cell owns two.

    The least cost in sum. The probability is that against cells that own nothing, and against an
    exchange with the owner of another place. None if that is not `CLEAR`.
    """
    if not claims:
        return []
    costs = np.full((len(claims), cells + len(claims)), NEVER)
    for row, claim in enumerate(claims):
        costs[row, list(claim)] = list(claim.values())
        costs[row, cells + row] = NEVER / 10
    _, chosen = linear_sum_assignment(costs)
    rows = np.arange(len(claims))
    now = costs[rows, chosen]
    exchanged = costs[:, chosen] + costs[:, chosen].T - now[:, None] - now[None]
    np.fill_diagonal(exchanged, NEVER)
    other = costs[:, :cells] - now[:, None]
    other[:, chosen[chosen < cells]] = NEVER
    rivals = np.exp(-0.5 * np.hstack([exchanged, other]).clip(0.0, 500.0)).sum(axis=1)
    shares = (1 / (1 + rivals)).tolist()
    return [
        (cell, share) if cell < cells and share >= CLEAR else None
        for cell, share in zip(chosen.tolist(), shares, strict=True)
    ]


def _give_back(
    found: Sequence[Annotation], frame: Nuclei, second: Second, cell: int, share: float
) -> None:
    """Give the nuclei of a second place to the cell that owns it."""
    for member in second.members.tolist():
        annotation, row = found[int(frame.animal[member])], int(frame.row[member])
        before = annotation.cells == cell
        annotation.cells[before] = UNMATCHED
        annotation.confidence[before] = np.nan
        annotation.cells[row] = cell
        annotation.confidence[row] = share


def _name_around(
    found: Sequence[Annotation],
    frame: Nuclei,
    taken: NDArray[np.bool_],
    second: Second,
    share: float,
    model: Expected,
) -> None:
    """Name the nuclei around a second place again, without cells that have one at any of them."""
    cells = model.around(second.centre, AROUND)
    elsewhere = frame.row[taken], frame.animal[taken]
    for member in second.members.tolist():
        animal = int(frame.animal[member])
        annotation = found[animal]
        part = _local(found, frame, taken, member, cells, model)
        held = annotation.cells[elsewhere[0][elsewhere[1] == animal]]
        _rename(annotation, part, cells, np.isin(cells, held), share)


def _local(
    found: Sequence[Annotation],
    frame: Nuclei,
    taken: NDArray[np.bool_],
    member: int,
    cells: Cells,
    model: Expected,
) -> _Local:
    """Return the nuclei around a second place, in the animal whose nucleus there is ``member``.

    Nuclei at other second places are left out.
    """
    animal, row = int(frame.animal[member]), int(frame.row[member])
    annotation = found[animal]
    first = int(np.searchsorted(frame.animal, animal))
    places = frame.places[first : first + len(annotation)]
    width = np.linalg.norm(model.means[cells] - places[row], axis=1).max()
    loose = annotation.cells == UNMATCHED
    inside = np.isin(annotation.cells, cells)
    inside |= loose & (np.linalg.norm(places - places[row], axis=1) <= width)
    inside &= ~taken[first : first + len(annotation)]
    rows = np.append(np.flatnonzero(inside), row)
    has = annotation.cells[rows][None] == cells[:, None]
    sure = np.nan_to_num(annotation.confidence[rows])
    costs = np.minimum(model.squares(places[rows], cells), LOST)
    costs = costs - has * np.where(sure >= CERTAIN, NAILED, STAY * sure)
    return _Local(rows[:-1], costs[:, :-1], costs[:, -1])


def _as_it_is(part: _Local) -> float:
    """Return the least cost of all cells without a second place."""
    return _assigned(np.column_stack([part.costs, part.outside]))[0]


def _without(part: _Local, owner: int) -> float:
    """Return the least cost of all cells but one."""
    return _assigned(np.delete(part.costs, owner, axis=0))[0]


def _assigned(costs: Array) -> tuple[float, Cells]:
    """Return the least cost of rows, and the column of each (-1: none, at the cost `LOST`)."""
    left, right = linear_sum_assignment(costs)
    near = costs[left, right] < LOST
    taken = np.full(len(costs), -1, dtype=np.int64)
    taken[left[near]] = right[near]
    cost = float(costs[left, right].sum()) + LOST * (len(costs) - len(left))
    return cost, taken


def _rename(
    annotation: Annotation, part: _Local, cells: Cells, held: NDArray[np.bool_], share: float
) -> None:
    """Name the nuclei around a second place again, without the cells that are held.

    Confidences of those that change are by distances, times ``share``; those of others stay, so
    that what was doubtful remains so.
    """
    costs, free = part.costs[~held], cells[~held]
    _, columns = _assigned(costs)
    likely = np.exp(-0.5 * costs)
    sums = likely.sum(axis=0)[None] + likely.sum(axis=1)[:, None] - likely + np.exp(-0.5 * LOST)
    posterior = likely / sums
    before, old = annotation.cells[part.rows], annotation.confidence[part.rows]
    after = np.full(len(part.rows), UNMATCHED, dtype=np.int32)
    sure = np.full(len(part.rows), np.nan)
    for k in np.flatnonzero(columns >= 0).tolist():
        after[columns[k]] = free[k]
        sure[columns[k]] = share * posterior[k, columns[k]]
    annotation.cells[part.rows] = after
    annotation.confidence[part.rows] = np.where(after == before, old, sure)
