"""Measures of the whole animal: length, width, proportions, asymmetry; and left-right pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.comparison.measured import Measured, filled
from eutely.geometry import spacing
from eutely.pose.straighten import straighten
from eutely.specimen import Specimen

Array = NDArray[np.float64]

SEGMENTS = 5
"""Parts of the body whose proportions are compared."""

MIRROR = np.array([1.0, 1.0, -1.0])
"""Left-right reflection in the frame of the atlas."""

AHEAD = "left side further ahead"
"""Measure of asymmetry: mean distance, in spacings, by which left cells lie ahead of right ones."""

MEASURES_AS_THEY_ARE = (AHEAD,)
"""Measures that are no logarithms."""

FEWEST_MATCHED = 12
"""Matched nuclei that the size of an animal needs."""


def whole_animal(
    atlas: Atlas,
    specimens: Sequence[Specimen],
    annotations: Sequence[Annotation],
    cells: Measured,
    pairs: Sequence[tuple[int, int]],
) -> dict[str, Array]:
    """Return measures of whole animals: measure -> (N,) float64, NaN where not known.

    Lengths are logarithms, in the unit of the specimens, so that differences are ratios. An animal
    is straightened first; its size is that of the affine map from the atlas to its nuclei.

    Parameters
    ----------
    atlas, specimens, annotations, cells
        see `eutely.comparison.measured.measured`.
    pairs
        left and right cells, see `symmetric_pairs`.
    """
    extent = np.ptp(atlas.means, axis=0)
    rows = [
        _body(atlas, straighten(specimen).centroids, annotation, extent)
        for specimen, annotation in zip(specimens, annotations, strict=True)
    ]
    found: dict[str, Array] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    found["nuclei"] = np.log(np.array([len(specimen) for specimen in specimens], np.float64))
    for key, level in cells.levels.items():
        found["nuclear size" if key == "size" else f"median {key}"] = level
    if pairs:
        shift = pair_shifts(cells.places, pairs) / cells.spacing
        known, given, _ = filled(shift, np.ones(shift.shape[:2]))
        count = np.maximum(known.sum(axis=1), 1)
        found[AHEAD] = given[..., 0].sum(axis=1) / count
        typical = given.sum(axis=0) / np.maximum(known.sum(axis=0), 1)[:, None]
        apart = np.where(known, np.linalg.norm(given - typical, axis=2), 0.0)
        found["asymmetry"] = np.log(np.maximum(apart.sum(axis=1) / count, 1e-9))
    return found


def _body(atlas: Atlas, points: Array, annotation: Annotation, extent: Array) -> dict[str, float]:
    """Return length, widths and proportions of one straight animal."""
    names = ["length", "width (back to belly)", "width (left to right)", "width / length"]
    segments = [f"part {k + 1} of {SEGMENTS} from the tail" for k in range(SEGMENTS)]
    known = np.flatnonzero(annotation.cells != UNMATCHED)
    if len(known) < FEWEST_MATCHED:
        return dict.fromkeys([*names, *segments], float("nan"))
    means = atlas.means[annotation.cells[known]]
    sure = np.sqrt(np.nan_to_num(annotation.confidence[known]) + 1e-6)[:, None]
    design = np.column_stack([np.ones(len(known)), means])
    fitted, *_ = np.linalg.lstsq(sure * design, sure * points[known], rcond=None)
    scale = np.linalg.norm(fitted[1:], axis=1)  # of x, y, z of the atlas
    length, deep, wide = np.log(np.maximum(scale * extent, 1e-12)).tolist()
    along = points[known] @ (fitted[1] / max(float(scale[0]), 1e-12))
    values = [length, deep, wide, 0.5 * (deep + wide) - length]
    edges = np.quantile(atlas.means[:, 0], np.linspace(0, 1, SEGMENTS + 1))
    part = np.clip(np.searchsorted(edges, means[:, 0], side="right") - 1, 0, SEGMENTS - 1)
    for k in range(SEGMENTS):
        x, y = means[part == k, 0], along[part == k]
        steep = _slope(x, y) if len(x) >= 4 and np.ptp(x) > 0 else np.nan
        values.append(np.log(max(steep / scale[0], 1e-3)) if np.isfinite(steep) else np.nan)
    return dict(zip([*names, *segments], values, strict=True))


def _slope(x: Array, y: Array) -> float:
    """Return the slope of y over x by least squares."""
    apart = x - x.mean()
    return float(apart @ y / (apart @ apart))


def symmetric_pairs(atlas: Atlas) -> list[tuple[int, int]]:
    """Return left and right cells, by names that end in L and R, or else by the atlas's symmetry.

    Without such names two cells are a pair if each is the nearest to the mirror image of the
    other, within a spacing; the one at lower z comes first.
    """
    number = {name.upper(): cell for cell, name in enumerate(atlas.names) if name}
    named = [
        (cell, number[f"{name[:-1]}R"])
        for name, cell in number.items()
        if name.endswith("L") and f"{name[:-1]}R" in number
    ]
    if named:
        return sorted(named)
    means = atlas.means - np.array([0.0, 0.0, np.median(atlas.means[:, 2])])
    distances, nearest = KDTree(means).query(means * MIRROR)
    partner = np.asarray(nearest, dtype=np.int64)
    mutual = partner[partner] == np.arange(len(means))
    near = (distances <= spacing(means)) & mutual & (means[:, 2] < 0)
    return [(cell, int(partner[cell])) for cell in np.flatnonzero(near).tolist()
            if partner[cell] != cell]  # fmt: skip


def pair_shifts(places: Array, pairs: Sequence[tuple[int, int]]) -> Array:
    """Return (N, p, 3), left cells minus the mirror images of their right partners."""
    left, right = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return np.asarray(places[:, left] - places[:, right] * MIRROR)
