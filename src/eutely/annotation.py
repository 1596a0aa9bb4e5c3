"""The cells of an atlas in a new specimen: names, how sure they are, and what else they may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.errors import AtlasError
from eutely.features import scores
from eutely.pose import orient, straighten
from eutely.fit.model import expectation
from eutely.fit.place import Placed, place
from eutely.fit.quadratic import place_by_offsets
from eutely.solver.softassign import FREE, NOBODYS
from eutely.specimen import Specimen

POSES = 4
"""Poses of a specimen that are compared, the most plausible ones."""

UNMATCHED = -1
"""Cell of a nucleus that got none."""


@dataclass(frozen=True, eq=False)
class Annotation:
    """What the ``n`` nuclei of one specimen are.

    Attributes
    ----------
    specimen
        name of the individual.
    ids
        (n,) int64, as in the specimen.
    cells
        (n,) int32, cell of the atlas, or -1.
    names
        n names, "" where the nucleus has no cell or the cell no name.
    confidence
        (n,) float64 in 0 .. 1, share that the nucleus has in what its cell gets in the soft
        assignment; NaN without a cell.
    alternatives
        for each nucleus other cells and their shares, the largest first.
    cost
        of the matching, per cell; an individual of another kind has a high one.
    places
        (n, 3) float64, the nuclei in the frame of the atlas.
    """

    specimen: str
    ids: NDArray[np.int64]
    cells: NDArray[np.int32]
    names: tuple[str, ...]
    confidence: NDArray[np.float64]
    alternatives: tuple[tuple[tuple[int, float], ...], ...]
    cost: float
    places: NDArray[np.float64]


def annotate(
    specimen: Specimen,
    atlas: Atlas,
    *,
    alternatives: int = 3,
    pins: Mapping[int, int] | None = None,
    places: NDArray[np.float64] | None = None,
) -> Annotation:
    """Match ``specimen`` with ``atlas``.

    The result does not depend on the order of its nuclei, their ids or names.

    Parameters
    ----------
    specimen
        any individual of the atlas's kind; its unit does not matter, since it is brought to the
        size of the atlas.
    atlas
        from `eutely.estimate`.
    alternatives
        next best cells to report for each nucleus.
    pins
        cells that are known beforehand: the cell of nucleus i (its row), or -1 where it is none.
        All others are matched around them.
    places
        (n, 3), about where the nuclei lie in the frame of the atlas, if that is known: no other
        pose is tried.
    """
    order = canonical_order(specimen)
    ordered = straighten(specimen.take(order))
    back = np.argsort(order)
    size = atlas.size if atlas.scale else None
    poses = posed(ordered, size) if places is None else [places[order]]
    spacing = spacing_of(atlas.means)
    fixed = _pinned(specimen, atlas, pins)[order] if pins else None
    if atlas.model == "offsets":
        if pins:
            raise AtlasError("an atlas of the model 'offsets' takes no pins; build one without it")
        matrix, shift = orient(ordered)[0].affine(None if size is None else tuple(size))
        radii = ordered.mapped(matrix, shift).radii
        found = place_by_offsets(atlas, poses, radii, spacing)
    else:
        found = place(expectation(atlas, spacing), poses, fixed, scores(ordered, atlas.features))
    cells, confidence, others = _by_nucleus(found, len(specimen), alternatives)
    cells = cells[back]
    return Annotation(
        specimen.name,
        specimen.ids,
        cells,
        tuple(atlas.names[cell] if cell != UNMATCHED else "" for cell in cells),
        confidence[back],
        tuple(others[row] for row in back),
        found.cost / len(atlas),
        found.warped[back],
    )


def _pinned(specimen: Specimen, atlas: Atlas, pins: Mapping[int, int]) -> NDArray[np.int32]:
    """Return (n,), the cell that each nucleus must be, as `eutely.fit.place` takes it."""
    fixed = np.full(len(specimen), FREE, np.int32)
    for nucleus, cell in pins.items():
        if not 0 <= nucleus < len(specimen):
            raise AtlasError(
                f"{specimen.name}: nucleus {nucleus} is pinned, but there are {len(specimen)}"
            )
        if not UNMATCHED <= cell < len(atlas):
            raise AtlasError(
                f"{specimen.name}: nucleus {nucleus} is pinned to cell {cell}, but the atlas has "
                f"cells 0 to {len(atlas) - 1} (-1 for none)"
            )
        fixed[nucleus] = NOBODYS if cell == UNMATCHED else cell
    used = fixed[fixed >= 0]
    if len(np.unique(used)) < len(used):
        twice = int(np.flatnonzero(np.bincount(used) > 1)[0])
        raise AtlasError(
            f"{specimen.name}: two nuclei are pinned to cell {twice}; keep one of them"
        )
    return fixed


def canonical_order(specimen: Specimen) -> NDArray[np.intp]:
    """Return the order of nuclei by x, y, z, which does not depend on that of the file."""
    return np.lexsort(specimen.centroids.T[::-1])


def posed(
    specimen: Specimen, size: NDArray[np.float64] | None, most: int = POSES
) -> list[NDArray[np.float64]]:
    """Return the nuclei in the most plausible poses, brought to ``size`` if any: (n, 3) each."""
    maps = [pose.affine(None if size is None else tuple(size)) for pose in orient(specimen)[:most]]
    return [specimen.centroids @ matrix.T + shift for matrix, shift in maps]


def spacing_of(points: NDArray[np.float64]) -> float:
    """Return the median distance to the nearest neighbour."""
    distances, _ = KDTree(points).query(points, [2])
    return float(np.median(distances))


def _by_nucleus(
    found: Placed, count: int, most: int
) -> tuple[NDArray[np.int32], NDArray[np.float64], list[tuple[tuple[int, float], ...]]]:
    """Turn the cells' nuclei and shares into cell, confidence and alternatives of each nucleus."""
    cells = np.full(count, UNMATCHED, np.int32)
    matched = np.flatnonzero(found.nuclei >= 0)
    cells[found.nuclei[matched]] = matched
    confidence = np.where(cells == UNMATCHED, np.nan, 0.0)
    others: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    assert found.shares is not None
    rows = np.repeat(np.arange(len(found.nuclei)), np.diff(found.shares.starts))
    # That the cell is there at all is settled by the matching: only its rivals count.
    whole = np.bincount(rows, found.shares.values, len(found.nuclei))
    for cell, nucleus, value in zip(
        rows.tolist(), found.shares.points.tolist(), found.shares.values.tolist(), strict=True
    ):
        if cells[nucleus] == cell:
            confidence[nucleus] = min(value / whole[cell], 1.0) if value > 0 else 0.0
        else:
            others[nucleus].append((cell, min(value, 1.0)))
    return (
        cells,
        confidence,
        [tuple(sorted(row, key=lambda one: (-one[1], one[0]))[:most]) for row in others],
    )
