"""Matching problems of two specimens, or of an atlas and a specimen (equations 1 to 6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.arrays import Arrays, starts_of
from eutely.atlas import Atlas
from eutely.costs.candidates import Candidates, Gaussians, Limits, candidates
from eutely.costs.grid import neighbour_graph
from eutely.costs.offsets import Layout, Offsets, fill_offsets, layout_of
from eutely.errors import ProblemError
from eutely.problem import PairProblem
from eutely.specimen import Specimen

Triple = tuple[float, float, float]


REMEMBERED = 128
"""Specimens whose neighbours are remembered."""


@dataclass(frozen=True)
class Costs:
    """Weights and thresholds of the costs; the defaults are those of the paper.

    Attributes
    ----------
    c0
        cost of leaving a nucleus unmatched; subtracted from every linear cost.
    weights
        lambda of position, size and offset.
    tau_centroid, tau_radius
        largest squared Mahalanobis distances of position and size; above either, an assignment is
        forbidden, unless it is among the ``k_min`` cheapest.
    k_min
        number of cheapest assignments of every nucleus that are always allowed.
    neighbours
        number of nearest neighbours with which each nucleus has an offset cost; 0 for none.
    nu_cen, nu_off
        degrees of freedom of a Student-t for positions and offsets; 0 for a Gaussian.
    """

    c0: float = 10000.0
    weights: Triple = (1.0, 1.0, 1.0)
    tau_centroid: float = 1.95
    tau_radius: float = 0.15
    k_min: int = 14
    neighbours: int = 8
    nu_cen: float = 0.0
    nu_off: float = 0.0

    def __post_init__(self) -> None:
        numbers = [*self.weights, *(getattr(self, key) for key in _NOT_NEGATIVE)]
        if len(self.weights) != 3 or not all(0 <= number < np.inf for number in numbers):
            raise ProblemError(f"{self}: expected three weights and no negative or infinite number")


_NOT_NEGATIVE = ("tau_centroid", "tau_radius", "k_min", "neighbours", "nu_cen", "nu_off")
"""Fields of `Costs` that must be finite and not negative."""


def between(
    left: Specimen,
    right: Specimen,
    cen: ArrayLike,
    rad: ArrayLike,
    off: ArrayLike,
    costs: Costs | None = None,
) -> PairProblem:
    """Return the problem of matching two aligned specimens.

    Parameters
    ----------
    left, right
        in the same frame and unit.
    cen, rad, off
        (3,) variances of position, size and offset that all nuclei share, in squared units.
    costs
        weights, thresholds and the cost of leaving a nucleus unmatched.
    """
    costs = costs or Costs()
    means, points = _writable(left.centroids), _writable(right.centroids)
    expected = Gaussians(means, _shared(cen, "cen"), _writable(left.radii), _shared(rad, "rad"))
    allowed = candidates(expected, points, _writable(right.radii), limits_of(costs))
    offsets = shared_offsets(means, costs.neighbours, off)
    return assembled(allowed, (means, points), offsets, costs)


def shared_offsets(means: NDArray[np.float64], neighbours: int, off: ArrayLike) -> Offsets:
    """Return the offsets between nearest neighbours, which share their variances ``off`` (3,)."""
    graph = _graph(means.tobytes(), neighbours)
    return Offsets(*graph, np.zeros((1, 3)), np.sqrt(_shared(off, "off")))


@lru_cache(maxsize=REMEMBERED)
def _graph(centroids: bytes, neighbours: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the `neighbour_graph` of points that are given by their bytes.

    A specimen is matched with many others, one after the other.
    """
    return neighbour_graph(np.frombuffer(centroids).reshape(-1, 3).copy(), neighbours)


def to_atlas(
    atlas: Atlas,
    centroids: ArrayLike,
    radii: ArrayLike | None = None,
    costs: Costs | None = None,
) -> PairProblem:
    """Return the problem of finding the cells of an atlas, the left side, in a specimen.

    Every cell and every edge of the atlas has its own mean and covariance.

    Parameters
    ----------
    atlas
        its edges carry the offset costs; of ``costs.neighbours`` only 0 matters, which leaves them
        out.
    centroids
        (n, 3), nuclei of the specimen in the frame of the atlas.
    radii
        (n, 3), their semi-axes, descending; NaN where unknown, None for no sizes at all.
    costs
        thresholds, weights and the cost of leaving a cell unmatched; by default those of the
        paper, with the atlas's weights.
    """
    w = atlas.weights.tolist()
    costs = costs or Costs(weights=(w[0], w[1], w[2]))
    points = _writable(centroids)
    sizes = np.full_like(points, np.nan) if radii is None else _writable(radii)
    if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
        raise ProblemError(f"centroids have shape {points.shape}, expected (n, 3) finite numbers")
    if sizes.shape != points.shape:
        raise ProblemError(f"radii have shape {sizes.shape}, expected {points.shape} as centroids")
    flat = atlas.radius_covariances.reshape(len(atlas), 9)
    known = np.isfinite(np.concatenate([atlas.radii, flat], axis=1).sum(axis=1))
    expected = Gaussians(
        _writable(atlas.means),
        _inverse(atlas.covariances),
        np.where(known[:, None], atlas.radii, np.nan),
        _inverse(np.where(known[:, None, None], atlas.radius_covariances, np.eye(3))),
    )
    edges = atlas.edges if costs.neighbours else atlas.edges[:0]
    allowed = candidates(expected, points, sizes, limits_of(costs))
    return assembled(allowed, (expected.means, points), _offsets(atlas, edges), costs)


def _offsets(atlas: Atlas, edges: NDArray[np.int32]) -> Offsets:
    """Return expected offsets in both directions of ``edges``: those of the atlas, or none."""
    first, second = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.lexsort((second, first))
    residuals = atlas.offsets - (atlas.means[atlas.edges[:, 0]] - atlas.means[atlas.edges[:, 1]])
    roots = np.linalg.cholesky(_inverse(atlas.offset_covariances)).transpose(0, 2, 1)
    count = len(edges)
    return Offsets(
        starts_of(first[order], len(atlas)),
        second[order],
        np.concatenate([residuals[:count], -residuals[:count]])[order],
        np.ascontiguousarray(np.concatenate([roots[:count], roots[:count]])[order]),
    )


def _inverse(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.linalg.inv(matrices), dtype=np.float64)


def _writable(values: ArrayLike) -> NDArray[np.float64]:
    """Return a copy; kernels would be compiled again for the read-only arrays of a specimen."""
    return np.array(values, dtype=np.float64)


def variances(given: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return variances along the axes as (3,); raise unless there are three positive numbers."""
    values = np.asarray(given, dtype=np.float64)
    if values.shape != (3,) or not (values > 0).all():
        raise ProblemError(
            f"variances '{what}' are {values.tolist()}, expected three positive numbers"
        )
    return values


def _shared(given: ArrayLike, what: str) -> NDArray[np.float64]:
    return np.diag(1.0 / variances(given, what))[None]


def limits_of(costs: Costs) -> Limits:
    """Return what the candidates depend on."""
    cen, rad, _ = costs.weights
    return Limits(cen, rad, costs.nu_cen, costs.tau_centroid, costs.tau_radius, costs.k_min)


def assembled(
    allowed: Candidates,
    places: tuple[NDArray[np.float64], NDArray[np.float64]],
    offsets: Offsets,
    costs: Costs,
    layout: Layout | None = None,
    room: NDArray[np.float32] | None = None,
) -> PairProblem:
    """Return the problem of matching nuclei expected at one place to points.

    Parameters
    ----------
    allowed
        candidates.
    places
        (n, 3), (m, 3) float64, expected positions of the left and positions of the right side.
    offsets
        expected offsets.
    costs
        weights, and the cost of leaving a nucleus unmatched.
    layout
        of the tables, where it is known.
    room
        memory for the tables, at least as long as they are: the problem then lasts until it is
        used again.
    """
    layout = layout or layout_of(allowed, offsets, len(places[1]))
    size = int(layout.row_starts[-1])
    values = np.empty(size, np.float32) if room is None else room[:size]
    fill_offsets(values, allowed, places, offsets, layout, costs.weights[2], costs.nu_off)
    arrays = Arrays(
        allowed.starts,
        allowed.labels,
        allowed.owners,
        allowed.linear - costs.c0,
        allowed.column_starts,
        allowed.column_items,
        offsets.starts,
        offsets.ends,
        layout.edge_offsets,
        layout.row_starts,
        np.empty(0, dtype=np.int32),
        values,
        np.zeros(1),
    )
    return PairProblem(len(places[0]), len(places[1]), arrays)
