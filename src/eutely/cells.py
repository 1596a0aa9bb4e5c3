"""Cells: which nucleus of each specimen is which, and where it lies in the common frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eutely.frame import Body, Points
from eutely.geometry import between_ends, in_view, median_places
from eutely.specimen import UNMATCHED

FEWEST_TO_ESTIMATE = 2
"""Specimens from which the variation of cells can be estimated."""


@dataclass(frozen=True, eq=False)
class Cells:
    """``m`` cells of ``N`` specimens; a specimen has each cell at most once.

    Attributes
    ----------
    posed, warped
        for each specimen (n, 3): its nuclei in the chosen pose, and after the warp.
    nuclei
        for each specimen (m,) int32: the nucleus of each cell, or -1.
    scores
        for each specimen (n, d), features of its nuclei as in `eutely.features`; d may be 0.
    body
        size and spacing of the frame.
    parts
        for each specimen whether it shows a part of the body only; () if none does.
    """

    posed: tuple[Points, ...]
    warped: tuple[Points, ...]
    nuclei: tuple[NDArray[np.int32], ...]
    scores: tuple[Points, ...]
    body: Body
    parts: tuple[bool, ...] = ()

    def __len__(self) -> int:
        """Return the number of specimens."""
        return len(self.posed)

    def __repr__(self) -> str:
        return f"<Cells: {self.count} cells in {len(self)} specimens>"

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.nuclei[0])

    def with_nuclei(self, nuclei: NDArray[np.int32]) -> Cells:
        """Return the same specimens with other cells: (N, m), the nucleus of each cell, or -1."""
        return replace(self, nuclei=tuple(np.ascontiguousarray(nuclei)))

    def seen(self) -> NDArray[np.int64]:
        """Return (m,), the number of specimens that have each cell."""
        return np.asarray((np.array(self.nuclei) >= 0).sum(axis=0))

    def shown(self) -> NDArray[np.float64]:
        """Return (N, m), how probably each specimen shows each cell: 1 unless it is a part.

        A cell beyond the last nucleus of a part is out of its view, even if all cells around it are
        matched: otherwise the cells at both ends of the body would seem to be missing often.
        """
        table = np.ones((len(self), self.count))
        seen = self.seen() > 0
        if any(self.parts):
            means = median_places(self.places()[:, seen])
            for number in np.flatnonzero(self.parts).tolist():
                nuclei, points = self.nuclei[number][seen], self.warped[number]
                inside = between_ends(means, points, self.body.spacing)
                table[number, seen] = inside * in_view(means, inside, nuclei, len(points))
        return table

    def often(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return (m,), how many specimens would have each cell if all showed the whole body.

        Of the ``chosen`` (N,) specimens, by default of all. Where some show parts, a cell is seen
        less often than it is there.
        """
        used = np.ones(len(self), bool) if chosen is None else chosen
        seen = (np.array(self.nuclei)[used] >= 0).sum(axis=0).astype(np.float64)
        if not any(self.parts):
            return np.asarray(seen)
        shown = np.maximum(self.shown()[used].sum(axis=0), seen)
        return np.asarray(seen * float(used.sum()) / np.maximum(shown, 1.0))

    def whole_counts(self) -> NDArray[np.int64]:
        """Return the numbers of nuclei of specimens that show the whole body; of all if none do."""
        counts = np.array([len(points) for points in self.posed])
        whole = ~np.array(self.parts or [False] * len(counts))
        return counts[whole] if whole.any() else counts

    def present(self) -> Cells:
        """Return the cells that at least one specimen has."""
        seen = self.seen() > 0
        return self if seen.all() else self.with_nuclei(np.array(self.nuclei)[:, seen])

    def enough(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return ``chosen`` (N,) where these specimens are enough to estimate from, else all.

        They must be two at least, and have every cell.
        """
        table = np.array(self.nuclei)[chosen]
        if len(table) >= FEWEST_TO_ESTIMATE and (table >= 0).any(axis=0).all():
            return chosen
        return np.ones(len(self), bool)

    def places(self, *, posed: bool = False) -> NDArray[np.float64]:
        """Return (N, m, 3), where each specimen has each cell; NaN where it has none.

        In the common frame, or with ``posed`` before the warp.
        """
        return _by_cell(self.posed if posed else self.warped, self.nuclei)

    def cell_scores(self) -> NDArray[np.float64]:
        """Return (N, m, d), the scores of each cell in each specimen; NaN where not known."""
        return _by_cell(self.scores, self.nuclei)

    def cell_radii(self, radii: tuple[Points, ...]) -> NDArray[np.float64]:
        """Return (N, m, 3), the semi-axes of each cell, given those of all nuclei."""
        return _by_cell(radii, self.nuclei)

    def labels(self) -> tuple[NDArray[np.int32], ...]:
        """Return for each specimen (n,) int32: the cell of each nucleus, or -1."""
        labels = []
        for points, nuclei in zip(self.posed, self.nuclei, strict=True):
            cells = np.full(len(points), UNMATCHED, np.int32)
            cells[nuclei[nuclei >= 0]] = np.flatnonzero(nuclei >= 0)
            labels.append(cells)
        return tuple(labels)


def _by_cell(
    values: tuple[Points, ...], nuclei: tuple[NDArray[np.int32], ...]
) -> NDArray[np.float64]:
    """Return (N, m, d) from values (n, d) of the nuclei of each specimen; NaN for no nucleus."""
    table = np.full((len(nuclei), len(nuclei[0]), values[0].shape[1]), np.nan)
    for row, rows_of_nuclei, cells in zip(table, values, nuclei, strict=True):
        row[cells >= 0] = rows_of_nuclei[cells[cells >= 0]]
    return table
