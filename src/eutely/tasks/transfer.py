"""Transfer of names from one segmentation of a volume to another of the same volume."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.errors import EutelyError
from eutely.specimen import Specimen

LIMIT = 1.0
"""Largest distance of two nuclei that are identified, in median radii of the true nuclei."""


@dataclass(frozen=True, eq=False)
class Transfer:
    """Correspondence of predicted and true nuclei.

    Attributes
    ----------
    predicted
        the prediction, with the names of the true nuclei.
    partners
        (n,) int64, for each predicted nucleus the row of its true nucleus, -1 if spurious.
    missed
        (k,) int64, ids of true nuclei without a predicted nucleus.
    overlap
        voxels in both segmentations divided by voxels in either; NaN for tables.
    overlaps
        (n,) float64, the same for each predicted and its true nucleus; NaN if spurious.
    limit
        largest allowed distance, in the unit of the specimens; NaN for volumes.
    """

    predicted: Specimen
    partners: NDArray[np.int64]
    missed: NDArray[np.int64]
    overlap: float
    overlaps: NDArray[np.float64]
    limit: float

    @property
    def found(self) -> int:
        """Number of true nuclei with a predicted nucleus."""
        return int((self.partners >= 0).sum())

    @property
    def spurious(self) -> int:
        """Number of predicted nuclei without a true nucleus."""
        return int((self.partners < 0).sum())


def by_distance(truth: Specimen, predicted: Specimen, limit: float | None = None) -> Transfer:
    """Identify the nuclei of two tables by distance, the nearest pairs first.

    Parameters
    ----------
    truth, predicted
        nuclei of the same individual in the same frame and unit.
    limit
        largest distance, in that unit; None for the median radius of the true nuclei.
    """
    if truth.unit != predicted.unit:
        raise EutelyError(
            f"mixed units: {truth.name} is in {truth.unit}, {predicted.name} in {predicted.unit}; "
            "convert one of them"
        )
    if limit is None:
        radius = np.cbrt(truth.radii.prod(axis=1))
        if not np.isfinite(radius).any():
            raise EutelyError(
                f"{truth.name} has no radii, from which the largest distance follows; give --limit"
            )
        limit = LIMIT * float(np.nanmedian(radius))
    pairs = KDTree(truth.centroids).sparse_distance_matrix(
        KDTree(predicted.centroids), limit, output_type="ndarray"
    )
    partners = _greedy(pairs["j"], pairs["i"], pairs["v"], len(predicted))
    overlaps = np.full(len(predicted), np.nan)
    return _transfer(truth, predicted, partners, float("nan"), overlaps, limit)


def by_overlap(
    truth: Specimen,
    predicted: Specimen,
    planes: Iterable[tuple[NDArray[np.integer], NDArray[np.integer]]],
) -> Transfer:
    """Identify segments that share the most voxels (supplement E of the paper).

    Each predicted segment prefers the true segment with which it shares the most voxels; of several
    that prefer the same true segment, that with the most shared voxels gets it.

    Parameters
    ----------
    truth, predicted
        nuclei of both volumes; their ids are the labels.
    planes
        the same planes of the true and of the predicted volume: labels, 0 for the background.
    """
    pairs: dict[tuple[int, int], int] = {}
    volume = np.zeros(2, np.int64)
    union = 0
    for true, guess in planes:
        volume += [(true != 0).sum(), (guess != 0).sum()]
        union += int(((true != 0) | (guess != 0)).sum())
        both = (true != 0) & (guess != 0)
        labels = np.stack([true[both].astype(np.int64), guess[both].astype(np.int64)], axis=1)
        keys, counts = np.unique(labels, axis=0, return_counts=True)
        for (a, b), count in zip(keys.tolist(), counts.tolist(), strict=True):
            pairs[a, b] = pairs.get((a, b), 0) + count
    row_of = {label: row for row, label in enumerate(truth.ids.tolist())}
    number_of = {label: row for row, label in enumerate(predicted.ids.tolist())}
    best: dict[int, tuple[int, int]] = {}
    for (a, b), count in sorted(pairs.items()):
        number = number_of[b]
        if count > best.get(number, (0, 0))[0]:
            best[number] = (count, row_of[a])
    numbers = np.array(sorted(best), dtype=np.int64)
    shared = np.array([best[number][0] for number in numbers.tolist()], dtype=np.int64)
    rows = np.array([best[number][1] for number in numbers.tolist()], dtype=np.int64)
    partners = _greedy(numbers, rows, -shared.astype(np.float64), len(predicted))
    overlaps = np.full(len(predicted), np.nan)
    sizes = truth.features["voxels"], predicted.features["voxels"]
    for number in np.flatnonzero(partners >= 0).tolist():
        count, row = best[number]
        overlaps[number] = count / (sizes[0][row] + sizes[1][number] - count)
    overlap = float((volume.sum() - union) / union) if union else float("nan")
    return _transfer(truth, predicted, partners, overlap, overlaps, float("nan"))


def _greedy(
    predicted: NDArray[np.integer],
    true: NDArray[np.integer],
    costs: NDArray[np.float64],
    count: int,
) -> NDArray[np.int64]:
    """Return (count,), the partner of each predicted nucleus; cheapest pairs first."""
    partners = np.full(count, -1, np.int64)
    taken: set[int] = set()
    for at in np.lexsort((predicted, true, costs)).tolist():
        if partners[predicted[at]] < 0 and int(true[at]) not in taken:
            partners[predicted[at]] = true[at]
            taken.add(int(true[at]))
    return partners


def _transfer(
    truth: Specimen,
    predicted: Specimen,
    partners: NDArray[np.int64],
    overlap: float,
    overlaps: NDArray[np.float64],
    limit: float,
) -> Transfer:
    true_names = truth.names or tuple(map(str, truth.ids.tolist()))
    names = tuple(true_names[row] if row >= 0 else "" for row in partners.tolist())
    missed = truth.ids[np.setdiff1d(np.arange(len(truth)), partners)]
    return Transfer(replace(predicted, names=names), partners, missed, overlap, overlaps, limit)
