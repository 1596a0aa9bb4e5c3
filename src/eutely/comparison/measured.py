"""What is measured of each cell in each animal: place, presence, size, features; and the doubt.

Tables of animals and cells with values that are not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.features import BOOKKEEPING
from eutely.geometry import spacing
from eutely.specimen import Specimen

Array = NDArray[np.float64]


def filled(values: Array, weights: Array) -> tuple[NDArray[np.bool_], Array, Array]:
    """Return which values (n, m, d) are known and count, the values and the weights (n, m).

    Both are 0 where nothing is known.
    """
    known: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=2) & (weights > 0))
    return known, np.where(known[..., None], values, 0.0), np.where(known, weights, 0.0)


def medians(table: Array, otherwise: float = np.nan) -> Array:
    """Return (n,), the medians of the rows (n, m), NaN left out; ``otherwise`` of an empty row."""
    ordered = np.sort(np.where(np.isfinite(table), table, np.nan), axis=1)  # NaN at the end
    known = np.isfinite(ordered).sum(axis=1)
    rows, middle = np.arange(len(table)), np.maximum(known - 1, 0)
    if not table.size:
        return np.full(len(table), otherwise)
    result = 0.5 * (ordered[rows, middle // 2] + ordered[rows, (middle + 1) // 2])
    return np.where(known > 0, result, otherwise)


def normal_matrices(design: Array, weights: Array) -> Array:
    """Return (m, q, q), matrices of weighted least squares on a design (n, q), never singular."""
    square = np.einsum("nm,nq,nr->mqr", weights, design, design)
    size = np.maximum(weights.sum(axis=0), 1e-9)
    return np.asarray(square + 1e-9 * np.eye(design.shape[1]) * size[:, None, None])


ANNOTATED = ("cell", "confidence", "contested", "mirrored", "view")
"""Columns of annotated tables that are no property of a nucleus."""

SHARED = 0.5
"""Share of the animals that must have a feature."""

PRESENT = 0.5
"""Expected number of nuclei from which a cell counts as present."""

POSITIVE = 0.9
"""Share of positive values from which a quantity without negative ones is taken as a logarithm;
zeros are then unknown."""

NEAR = 0.5
"""Distance, in spacings, up to which a nucleus without a cell counts as a copy of the nearest."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The cells of ``N`` animals, in the frame of an atlas of ``m`` cells.

    Attributes
    ----------
    specimens
        N names.
    places
        (N, m, 3) float64, NaN where an animal lacks the cell.
    weights
        (N, m) float64 in 0 .. 1, confidence of the nucleus being the cell; 0 without one.
    counts
        (N, m) float64, number of nuclei of the cell: 0, 1, or more where there are copies.
    values
        quantity -> (N, m) float64: ``size`` (logarithm of the radius) and features (logarithms
        where they are positive), relative to the median of the animal; NaN where not known.
    levels
        quantity -> (N,) float64, this median.
    logarithmic
        quantities whose values are logarithms.
    spacing
        median distance of neighbouring cells of the atlas, in its unit.
    """

    specimens: tuple[str, ...]
    places: Array
    weights: Array
    counts: Array
    values: Mapping[str, Array]
    levels: Mapping[str, Array]
    logarithmic: frozenset[str]
    spacing: float

    def __len__(self) -> int:
        """Return the number of animals."""
        return len(self.specimens)


def measured(
    atlas: Atlas, specimens: Sequence[Specimen], annotations: Sequence[Annotation]
) -> Measured:
    """Return what is measured of each cell; ``annotations`` are those of ``specimens``."""
    count, cells = len(specimens), len(atlas)
    distance = spacing(atlas.means)
    tree = KDTree(atlas.means)
    places = np.full((count, cells, 3), np.nan)
    weights = np.zeros((count, cells))
    counts = np.zeros((count, cells))
    for row, annotation in enumerate(annotations):
        known = annotation.cells != UNMATCHED
        cell = annotation.cells[known]
        places[row, cell] = annotation.places[known]
        weights[row, cell] = np.nan_to_num(annotation.confidence[known])
        counts[row] = _counts(annotation, tree, cells, NEAR * distance)
    values, levels, logarithmic = _values(specimens, annotations, cells)
    return Measured(
        tuple(specimen.name for specimen in specimens),
        places,
        weights,
        counts,
        values,
        levels,
        logarithmic,
        distance,
    )


def _counts(annotation: Annotation, tree: KDTree, cells: int, reach: float) -> Array:
    r"""Return (m,), how many nuclei of each cell a specimen has.

    The expected number of cell c is :math:`\sum_n P(n = c)`, over confidences and alternatives: two
    cells whose names may be exchanged are both present, however doubtful their names are.
    Nuclei without a cell, within ``reach`` of the nearest cell that is present, are its copies.
    """
    known = annotation.cells != UNMATCHED
    sure = np.nan_to_num(annotation.confidence)
    expected = np.bincount(annotation.cells[known], sure[known], cells)
    matched = np.bincount(annotation.cells[known], minlength=cells)
    for others in annotation.alternatives:
        for cell, share in others:
            expected[cell] += share
    # A doubtful place of the whole specimen is doubt about names, not about nuclei.
    level = max(float(np.median(expected[matched > 0])), 1e-9) if known.any() else 1.0
    present = (expected / min(level, 1.0) >= PRESENT).astype(np.float64)
    distances, nearest = tree.query(annotation.places[~known].reshape(-1, 3))
    for distance, cell in zip(np.atleast_1d(distances), np.atleast_1d(nearest), strict=True):
        if distance <= reach and present[cell]:
            present[cell] += 1.0
    return present


def _values(
    specimens: Sequence[Specimen], annotations: Sequence[Annotation], cells: int
) -> tuple[dict[str, Array], dict[str, Array], frozenset[str]]:
    """Return quantities relative to the animal, its medians, and which are logarithms."""
    left_out = {*BOOKKEEPING, *ANNOTATED}
    names = sorted({key for one in specimens for key in one.features} - left_out)
    columns: dict[str, list[Array]] = {
        "size": [_radius(specimen) for specimen in specimens],
        **{
            key: [one.features.get(key, np.full(len(one), np.nan)) for one in specimens]
            for key in names
        },
    }
    values, levels, logarithmic = {}, {}, set()
    for key, given in columns.items():
        table = np.full((len(specimens), cells), np.nan)
        for row, (column, annotation) in enumerate(zip(given, annotations, strict=True)):
            known = annotation.cells != UNMATCHED
            table[row, annotation.cells[known]] = column[known]
        here = np.isfinite(table)
        if here.any(axis=1).mean() <= SHARED or np.ptp(table[here]) == 0:
            continue
        if not (table[here] < 0).any() and (table[here] > 0).mean() >= POSITIVE:
            table = np.log(table, out=np.full_like(table, np.nan), where=here & (table > 0))
            logarithmic.add(key)
        levels[key] = medians(table)
        values[key] = table - levels[key][:, None]
    return values, levels, frozenset(logarithmic)


def _radius(specimen: Specimen) -> Array:
    """Return (n,), the radius of the sphere of the same volume; NaN where not known."""
    product = specimen.radii.prod(axis=1)
    return np.where(product > 0, np.cbrt(product), np.nan)
