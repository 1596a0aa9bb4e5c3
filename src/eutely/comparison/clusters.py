"""Places that nuclei of several animals share, where the atlas expects none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.comparison.measured import filled
from eutely.comparison.relative import Positions

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

OUT, CORE = 12.0, 20.0
"""Squared Mahalanobis distances (three dimensions): from which a nucleus is out of place, and up to
which it belongs to a second place."""

UNSURE = 0.9
"""Confidence below which a nucleus may be that of a cell that moved."""

NEAREST = 8
"""Cells around a nucleus that it may belong to, and whose scatter is that of its surroundings."""

FEWEST_OUT = 3
"""Animals that must have a nucleus out of place at the same place."""


class Nuclei(NamedTuple):
    """Nuclei of all animals in one frame: places minus the fields of their animals.

    Attributes
    ----------
    places
        (k, 3) float64.
    animal, row
        (k,) int64, animal, and nucleus of its annotation.
    """

    places: Array
    animal: Cells
    row: Cells


class Second(NamedTuple):
    """A place that nuclei of several animals share, where the atlas expects none of them.

    Attributes
    ----------
    centre
        (3,) float64, in the common frame.
    members
        (k,) int64, at most one nucleus per animal: rows of `Nuclei`.
    """

    centre: Array
    members: Cells


class Expected(NamedTuple):
    """Where cells are expected.

    Attributes
    ----------
    means, spread
        (m, 3) and (m, 3, 3) float64, places in the common frame and covariances.
    spacing
        median distance of neighbouring cells.
    """

    means: Array
    spread: Array
    spacing: float

    def around(self, centre: Array, count: int) -> Cells:
        """Return the nearest cells of a place."""
        near = KDTree(self.means).query(centre, min(count, len(self.means)))[1]
        return np.atleast_1d(near).astype(np.int64)

    def squares(self, places: Array, cells: Cells) -> Array:
        """Return (cells, k), squared Mahalanobis distances of places from cells."""
        apart = places[None] - self.means[cells][:, None]
        return np.asarray(
            np.einsum("ckd,cde,cke->ck", apart, np.linalg.inv(self.spread[cells]), apart)
        )


def expected(atlas: Atlas, here: Positions, weights: Array, spacing: float) -> Expected:
    """Return where cells are expected; covariances are the atlas's, scaled to the animals.

    Unsure nuclei, which may be those of other cells, hardly count: by the fourth power of their
    confidences.
    """
    _, given, weight = filled(here.relative, weights**4)
    total = np.maximum(weight.sum(axis=0), 1e-9)
    centres = (weight[..., None] * given).sum(axis=0) / total[:, None]
    usual = np.trace(atlas.conditionals, axis1=1, axis2=2)
    square = (weight[..., None] * given**2).sum(axis=(0, 2)) / total
    known = square > 0
    factor = float(np.median(square[known] / usual[known])) if known.any() else 1.0
    return Expected(here.means + centres, factor * atlas.conditionals, spacing)


def in_one_frame(annotations: Sequence[Annotation], here: Positions) -> Nuclei:
    """Return all nuclei, minus the field of the cell whose predicted place is the nearest."""
    parts = []
    for animal, annotation in enumerate(annotations):
        field = here.field[animal]
        nearest = KDTree(here.means + field).query(annotation.places)[1]
        parts.append(annotation.places - field[np.asarray(nearest)])
    sizes = [len(part) for part in parts]
    rows = np.concatenate([np.arange(size) for size in sizes])
    return Nuclei(np.concatenate(parts), np.repeat(np.arange(len(parts)), sizes), rows)


def out_of_place(
    annotations: Sequence[Annotation], frame: Nuclei, model: Expected
) -> NDArray[np.bool_]:
    """Return (k,), nuclei that are unsure or have no cell, and are at the place of none.

    They are far from the cell that they have, and from all others around that are vacant: without
    a nucleus, or with one that is far from them.
    """
    cell = np.concatenate([one.cells for one in annotations]).astype(np.int64)
    sure = np.concatenate([np.nan_to_num(one.confidence) for one in annotations])
    inverse = np.linalg.inv(model.spread)
    named = np.flatnonzero(cell != UNMATCHED)
    apart = frame.places[named] - model.means[cell[named]]
    far = np.ones(len(cell), dtype=np.bool_)
    far[named] = np.einsum("kd,kde,ke->k", apart, inverse[cell[named]], apart) > OUT
    vacant = np.ones((len(annotations), len(model.means)), dtype=np.bool_)
    vacant[frame.animal[named], cell[named]] = far[named]
    rows = np.flatnonzero(far & (sure < UNSURE))
    near = _nearest(model.means, frame.places[rows])
    apart = frame.places[rows][:, None] - model.means[near]
    there = np.einsum("knd,knde,kne->kn", apart, inverse[near], apart) <= OUT
    out = np.zeros(len(cell), dtype=np.bool_)
    out[rows] = ~(there & vacant[frame.animal[rows][:, None], near]).any(axis=1)
    return out


def _nearest(means: Array, places: Array) -> Cells:
    """Return (k, 8), the nearest cells of places, or all if there are fewer."""
    count = min(NEAREST, len(means))
    found = np.asarray(KDTree(means).query(places, count)[1], dtype=np.int64)
    return found.reshape(len(places), count)


def clusters(frame: Nuclei, free: NDArray[np.bool_], model: Expected) -> list[Second]:
    """Return places that nuclei of several animals share, the most frequent first.

    No nucleus is in two of them.
    """
    candidates = np.flatnonzero(free)
    if len(candidates) < FEWEST_OUT:
        return []
    points, animals = frame.places[candidates], frame.animal[candidates]
    inverse = np.linalg.inv(model.spread[_nearest(model.means, points)].mean(axis=1))
    width = np.sqrt(CORE * np.linalg.eigvalsh(model.spread).max(axis=1).mean())
    around = [np.array(rows) for rows in KDTree(points).query_ball_point(points, width)]
    left = np.ones(len(points), dtype=np.bool_)
    support = np.array([len(rows) for rows in around])  # upper bounds until they lead
    found: list[tuple[Array, Cells, Array]] = []
    while left.any():
        seed = int(np.argmax(np.where(left, support, -1)))
        centre, members = points[seed], np.empty(0, np.int64)
        for _ in range(3):
            near = around[seed][left[around[seed]]]
            members = _members(points, animals, near, centre, inverse[seed])
            centre = points[members].mean(axis=0) if len(members) else centre
        if len(members) < support[seed]:
            support[seed] = len(members)  # lower than thought: perhaps another leads now
            continue
        if len(members) < FEWEST_OUT:
            break
        left[members] = False
        found.append((centre, candidates[members], inverse[seed]))
    return _merged(found, frame)


def _merged(found: list[tuple[Array, Cells, Array]], frame: Nuclei) -> list[Second]:
    """Return clusters; parts of one, which are near each other in different animals, as one."""
    result: list[tuple[Second, Array]] = []
    for centre, members, inverse in found:
        for number, (other, metric) in enumerate(result):
            apart = other.centre - centre
            shared = np.isin(frame.animal[members], frame.animal[other.members]).any()
            if not shared and apart @ metric @ apart <= CORE:
                both = np.concatenate([other.members, members])
                result[number] = (Second(frame.places[both].mean(axis=0), both), metric)
                break
        else:
            result.append((Second(centre, members), inverse))
    return [second for second, _ in result]


def _members(points: Array, animals: Cells, near: Cells, centre: Array, inverse: Array) -> Cells:
    """Return the nearest point of each animal among ``near``, within the core of a cluster."""
    apart = points[near] - centre
    square = np.einsum("kd,de,ke->k", apart, inverse, apart)
    order = np.argsort(square, kind="stable")
    order = order[square[order] <= CORE]
    _, first = np.unique(animals[near[order]], return_index=True)
    return np.asarray(near[order[first]], dtype=np.int64)
