"""The atlas: where each cell lies, how it varies, and how its neighbours predict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.errors import AtlasError, check_texts
from eutely.specimen import UNKNOWN, html_table

NO_NEIGHBOUR = -1
"""Fills the list of neighbours of a cell that has fewer than others."""


MODELS = ("joint", "offsets")
"""Ways of matching a specimen with an atlas."""

BINS, BIN_WIDTH = 10, 0.1
"""Bins of distances at which nuclei may crowd each other, and their width in spacings."""

DESCRIPTION = ("organism", "strain", "stage", "sex", "body part", "imaging", "licence", "citation",
               "source")  # fmt: skip
"""Keys of ``provenance`` that describe an atlas to others."""

FINITE = (
    "means", "size", "weights", "predictors", "offsets", "feature_means", "crowding", "shown",
    "origin_scores",
)  # fmt: skip
"""Arrays without NaN."""

LARGEST = 1e12
"""Largest absolute value of a number in an atlas; squares and products of such stay finite."""

VARIANCES = (1e-30, 1e30)
"""Bounds of variances."""

NUMBERS = {
    "specimens": (1, 10**9), "freedom": (1e-3, np.inf), "c0": (1e-9, LARGEST),
    "k_min": (1, 10**6), "tau_centroid": (0.0, LARGEST), "tau_radius": (0.0, LARGEST),
}  # fmt: skip
"""Bounds of single numbers."""


@dataclass(frozen=True, eq=False)
class Atlas:
    """Gaussians of ``m`` cells, of ``e`` pairs of neighbours, and of each cell given ``k`` others.

    Immutable, checked on construction. The frame is that of `eutely.pose`: x along the body,
    the barycentre at the origin, all specimens brought to ``size``.

    Attributes
    ----------
    means, covariances
        (m, 3), (m, 3, 3) float64, of the centroids, in ``unit``.
    radii, radius_covariances
        (m, 3), (m, 3, 3) float64, of the semi-axes, descending; NaN where not known.
    seen
        (m,) int64, specimens in which the cell was found.
    shown
        (m,) float64, specimens that show the part of the body in which the cell lies; () if all of
        them show the whole body.
    rare
        (m,) bool, cells seen in so few specimens that their Gaussians are mostly prior.
    edges
        (e, 2) int32, pairs i < j of neighbours.
    offsets, offset_covariances
        (e, 3), (e, 3, 3) float64, of centroid i minus centroid j.
    neighbours
        (m, k) int32, the cells that predict each cell best, -1 where there are fewer.
    predictors
        (m, k, 3, 3) float64: given its neighbours, cell i is expected at
        ``means[i] + sum_k predictors[i, k] @ (x_k - means[neighbours[i, k]])``,
    conditionals
        (m, 3, 3) float64, with this covariance.
    freedom
        degrees of freedom of the Student-t costs; inf for Gaussian ones.
    weights
        (3,) float64, of the costs of centroids, radii and offsets (lambda).
    size
        (2,) float64, length and width to which specimens are brought, as in `eutely.pose.Pose`.
    features
        d names of properties of nuclei besides their place, see `eutely.features`.
    feature_means
        (m, d) float64, mean normal scores of the cells.
    crowding
        (10,) float64, cost of two nuclei being both cells, see `eutely.fit.spurious`, at distances
        of 0.05, 0.15, ... 0.95 spacings.
    specimens
        number of specimens it was estimated from.
    names
        m names, "" where none was given.
    unit
        of all lengths.
    provenance
        where the atlas comes from; plain words.
    model
        how specimens are matched: "joint", cells given their neighbours after a smooth warp; or
        "offsets", the paper's quadratic costs of offsets after affine maps.
    warp, scale
        whether specimens are warped smoothly, and brought to ``size`` before, as they were for the
        atlas; without a warp by affine maps.
    origins
        o origins of the specimens it was estimated from, see `eutely.origin`, as far as known.
    hands
        (o, 2) int64, how many specimens of each origin are as they were, and how many mirrored.
    origin_presence, origin_scores
        (m, o) float64 in 0 .. 1, how often specimens of each origin have each cell, and (m, o, d)
        float64, its mean scores there; () where the atlas is of one origin, or it is not known.
    c0, k_min, tau_centroid, tau_radius
        for "offsets": cost of a cell without a nucleus; number of cheapest assignments of each
        cell and nucleus allowed in any case; squared Mahalanobis distances up to which others are.
    """

    means: NDArray[np.float64]
    covariances: NDArray[np.float64]
    radii: NDArray[np.float64]
    radius_covariances: NDArray[np.float64]
    seen: NDArray[np.int64]
    rare: NDArray[np.bool_]
    edges: NDArray[np.int32]
    offsets: NDArray[np.float64]
    offset_covariances: NDArray[np.float64]
    neighbours: NDArray[np.int32]
    predictors: NDArray[np.float64]
    conditionals: NDArray[np.float64]
    size: NDArray[np.float64]
    specimens: int
    freedom: float = 8.0
    weights: NDArray[np.float64] = field(default_factory=lambda: np.ones(3))
    names: tuple[str, ...] = ()
    unit: str = UNKNOWN
    provenance: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    feature_means: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    model: str = "joint"
    warp: bool = True
    scale: bool = True
    c0: float = 10000.0
    k_min: int = 6
    tau_centroid: float = 8.0
    tau_radius: float = 12.0
    crowding: NDArray[np.float64] = field(default_factory=lambda: np.zeros(BINS))
    shown: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    origins: tuple[str, ...] = ()
    hands: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    origin_presence: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    origin_scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def __post_init__(self) -> None:
        m, e = (
            np.shape(values)[0] if np.ndim(values) else 0 for values in (self.means, self.edges)
        )
        k = np.shape(self.neighbours)[-1] if np.ndim(self.neighbours) else 0
        by_origin = (m, len(self.origins)) if np.size(self.origin_presence) else (0, 0)
        d = len(self.features)
        shapes: dict[str, tuple[type[Any], tuple[int, ...]]] = {
            "means": (np.float64, (m, 3)),
            "covariances": (np.float64, (m, 3, 3)),
            "radii": (np.float64, (m, 3)),
            "radius_covariances": (np.float64, (m, 3, 3)),
            "seen": (np.int64, (m,)),
            "rare": (np.bool_, (m,)),
            "edges": (np.int32, (e, 2)),
            "offsets": (np.float64, (e, 3)),
            "offset_covariances": (np.float64, (e, 3, 3)),
            "neighbours": (np.int32, (m, k)),
            "predictors": (np.float64, (m, k, 3, 3)),
            "conditionals": (np.float64, (m, 3, 3)),
            "size": (np.float64, (2,)),
            "weights": (np.float64, (3,)),
            "feature_means": (np.float64, (m, d)),
            "crowding": (np.float64, (BINS,)),
            "shown": (np.float64, (m if np.size(self.shown) else 0,)),
            "hands": (np.int64, (len(self.origins), 2)),
            "origin_presence": (np.float64, by_origin),
            "origin_scores": (np.float64, (*by_origin, d if by_origin[0] else 0)),
        }
        if not self.features and not np.size(self.feature_means):
            object.__setattr__(self, "feature_means", np.zeros((m, 0)))
            object.__setattr__(self, "origin_scores", np.zeros((*by_origin, 0)))
        object.__setattr__(self, "features", tuple(map(str, self.features)))
        object.__setattr__(self, "origins", tuple(map(str, self.origins)))
        for key, (dtype, shape) in shapes.items():
            object.__setattr__(self, key, _locked(getattr(self, key), dtype, shape, key))
        names = tuple(str(name) for name in self.names) or ("",) * m
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))
        self._check()

    def _check(self) -> None:
        if not len(self):
            raise AtlasError("an atlas needs at least one cell")
        if len(self.names) != len(self):
            raise AtlasError(f"{len(self.names)} names for {len(self)} cells; give one each")
        if self.model not in MODELS:
            raise AtlasError(f"atlas: model '{self.model}'; expected one of {', '.join(MODELS)}")
        for key, (least, most) in NUMBERS.items():
            if not least <= getattr(self, key) <= most:
                raise AtlasError(
                    f"atlas: '{key}' is {getattr(self, key):g}, expected {least:g} to {most:g}"
                )
        self._check_arrays()
        if self.origins != tuple(sorted(set(self.origins))):
            raise AtlasError("atlas: 'origins' must be different, in alphabetical order")
        texts = (*self.names, *self.features, *self.origins, self.unit)
        check_texts(texts, "atlas: a name", AtlasError)

    def _check_arrays(self) -> None:
        for key in FINITE:
            peak = np.abs(getattr(self, key)).max(initial=0.0)
            if not np.isfinite(peak):
                raise AtlasError(f"atlas: NaN or infinite values in '{key}'")
            if peak > LARGEST:
                raise AtlasError(f"atlas: values above {LARGEST:g} in '{key}'")
        if (self.radii > LARGEST).any():
            raise AtlasError(f"atlas: values above {LARGEST:g} in 'radii'")
        if (self.size <= 0).any() or (self.weights < 0).any() or (self.radii < 0).any():
            raise AtlasError("atlas: 'size' must be positive, 'weights' and 'radii' not negative")
        if (self.seen < 0).any() or (self.hands < 0).any():
            raise AtlasError("atlas: 'seen' and 'hands' must not be negative")
        if not ((self.origin_presence >= 0) & (self.origin_presence <= 1)).all():  # nor NaN
            raise AtlasError("atlas: 'origin_presence' must be in 0 .. 1")
        if (self.shown <= 0).any():
            raise AtlasError("atlas: 'shown' must be positive")
        for key in ("covariances", "conditionals", "offset_covariances"):
            _check_positive(getattr(self, key), key)
        known = np.isfinite(self.radius_covariances).all(axis=(1, 2))
        if (np.abs(self.radius_covariances[known]) > VARIANCES[1]).any():
            raise AtlasError(f"atlas: values above {VARIANCES[1]:g} in 'radius_covariances'")
        for key in ("edges", "neighbours"):
            values, lowest = getattr(self, key), 0 if key == "edges" else NO_NEIGHBOUR
            if values.size and (values.min() < lowest or values.max() >= len(self)):
                raise AtlasError(f"atlas: '{key}' must be numbers of its {len(self)} cells")
        if (self.edges[:, 0] >= self.edges[:, 1]).any():
            raise AtlasError("atlas: 'edges' must be pairs i < j of different cells")
        if (self.neighbours == np.arange(len(self))[:, None]).any():
            raise AtlasError("atlas: a cell of 'neighbours' is its own neighbour")

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.means)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle field by field, since a mapping proxy cannot be pickled."""
        values = [getattr(self, entry.name) for entry in fields(self)]
        return Atlas, tuple(dict(v) if isinstance(v, Mapping) else v for v in values)

    def __repr__(self) -> str:
        named = sum(map(bool, self.names))
        return f"<Atlas: {len(self)} cells, {named} named, from {self.specimens} specimens>"

    def _repr_html_(self) -> str:
        """Return a short table and a small 3D view for notebooks."""
        from eutely.report.page import small_view

        rows = {
            "cells": len(self),
            "named": sum(map(bool, self.names)),
            "rare": int(self.rare.sum()),
            "specimens": self.specimens,
            "length x width": f"{self.size[0]:.4g} x {self.size[1]:.4g} {self.unit} (SD)",
            "features": ", ".join(self.features) or "none",
        }
        return html_table("Atlas", rows) + small_view(self)

    @property
    def often(self) -> NDArray[np.float64]:
        """(m,), specimens that would have each cell if all of them showed the whole body."""
        seen = self.seen.astype(np.float64)
        if not len(self.shown):
            return seen
        return np.asarray(seen * self.specimens / np.maximum(self.shown, np.maximum(seen, 1.0)))

    def hands_of(self, origin: str) -> tuple[int, int]:
        """Return how many specimens of an origin are as they were, and how many mirrored."""
        if origin not in self.origins:
            return 0, 0
        as_they_were, mirrored = self.hands[self.origins.index(origin)].tolist()
        return as_they_were, mirrored

    def of_origin(self, origin: str) -> Atlas:
        """Return the atlas as specimens of an origin show it; the same where nothing is known."""
        if origin not in self.origins or not len(self.origin_presence):
            return self
        at = self.origins.index(origin)
        return replace(
            self,
            feature_means=self.origin_scores[:, at],
            origins=(origin,),
            hands=self.hands[at : at + 1],
            origin_presence=self.origin_presence[:, at : at + 1],
            origin_scores=self.origin_scores[:, at : at + 1],
        )

    def named(self, names: Sequence[str]) -> Atlas:
        """Return the atlas with other names, one per cell."""
        return replace(self, names=tuple(names))

    def described(self, **words: str) -> Atlas:
        """Return the atlas with further words in ``provenance``; empty ones are removed.

        Any key may be given; `DESCRIPTION` lists those that ``eutely atlases`` shows.
        """
        known = dict(self.provenance) | {key.replace("_", " "): text for key, text in words.items()}
        return replace(self, provenance={key: text for key, text in known.items() if text})

    def take(self, cells: ArrayLike) -> Atlas:
        """Return the atlas of some cells only, in the order given.

        Cells that are left out predict nothing any more: a cell all of whose neighbours are left
        out is expected at its mean.

        Parameters
        ----------
        cells
            numbers (k,) int, or a mask (m,) bool.
        """
        rows = np.arange(len(self))[np.asarray(cells)]
        if len(np.unique(rows)) < len(rows):
            raise AtlasError("atlas: a cell is taken twice")
        number = np.full(len(self) + 1, NO_NEIGHBOUR)  # the last entry stands for no neighbour
        number[rows] = np.arange(len(rows))
        pairs = number[self.edges]
        kept = (pairs >= 0).all(axis=1)
        order = np.argsort(pairs[kept], axis=1)
        turned = np.where(order[:, 0] == 1, -1.0, 1.0)[:, None]
        neighbours = number[self.neighbours[rows]]
        predictors = np.where(neighbours[:, :, None, None] >= 0, self.predictors[rows], 0.0)
        by_cell = {
            key: getattr(self, key)[rows]
            for key in ("means", "covariances", "radii", "radius_covariances", "seen", "rare",
                        "conditionals", "feature_means")
        }  # fmt: skip
        for key in ("shown", "origin_presence", "origin_scores"):
            if len(getattr(self, key)):
                by_cell[key] = getattr(self, key)[rows]
        return replace(
            self,
            **by_cell,
            edges=np.sort(pairs[kept], axis=1),
            offsets=turned * self.offsets[kept],
            offset_covariances=self.offset_covariances[kept],
            neighbours=neighbours,
            predictors=predictors,
            names=tuple(self.names[row] for row in rows.tolist()),
        )

    def save(self, path: Path | str) -> None:
        """Write the atlas to a file (``.h5``), whole or not at all."""
        from eutely.io.atlas import write_atlas

        write_atlas(self, path)

    @classmethod
    def load(cls, given: Path | str) -> Atlas:
        """Read an atlas: a file, a run folder, or the name of one that comes with eutely."""
        from eutely.io.atlas import open_atlas

        return open_atlas(given)


def _check_positive(values: NDArray[np.float64], key: str) -> None:
    """Raise unless matrices are symmetric and positive definite, within bounds."""
    least, most = VARIANCES
    scale = np.abs(values).max(axis=(1, 2), initial=0.0)
    if not (scale <= most).all():  # nor NaN
        raise AtlasError(f"atlas: '{key}' must be positive definite, values up to {most:g}")
    if (np.abs(values - values.swapaxes(1, 2)) > 1e-6 * scale[:, None, None]).any():
        raise AtlasError(f"atlas: '{key}' must be symmetric")
    try:
        roots = np.linalg.cholesky(values).diagonal(axis1=1, axis2=2)
    except np.linalg.LinAlgError:
        roots = np.zeros(1)
    if (roots**2 <= least).any():
        raise AtlasError(f"atlas: '{key}' must be positive definite, variances above {least:g}")


def _locked(values: ArrayLike, dtype: type[Any], shape: tuple[int, ...], key: str) -> NDArray[Any]:
    """Return a read-only copy of ``values``; wrong shapes and kinds are errors."""
    given = np.asarray(values)
    if given.shape != shape:
        raise AtlasError(f"atlas: '{key}' has shape {given.shape}, expected {shape}")
    if given.size and given.dtype.kind not in "fiub":
        raise AtlasError(f"atlas: '{key}' is {given.dtype}, expected numbers")
    with np.errstate(invalid="ignore"):
        copy = np.array(given, dtype=dtype, order="C")
    if dtype is not np.float64 and (copy != given).any():
        raise AtlasError(f"atlas: '{key}' must be whole numbers (or truth values) in range")
    copy.setflags(write=False)
    return copy
