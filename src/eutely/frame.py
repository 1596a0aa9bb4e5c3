"""The first stage: specimens without names, in an order of their own, and their possible poses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import POSES, canonical_order, spacing_of
from eutely.config import Config
from eutely.errors import EutelyError
from eutely.execute import Executor
from eutely.features import feature_names, scores
from eutely.record import Record, digest
from eutely.store.folder import RunFolder
from eutely.pose import Pose, orient, straighten
from eutely.specimen import Specimen

VERSION = 1
"""Of this stage's code; raised when its results change."""

LEAST = 2
"""Specimens that an atlas needs."""


class Framed(NamedTuple):
    """The specimens of a build and how they may lie.

    Attributes
    ----------
    specimens
        by name, without names of nuclei, these in the order of `canonical_order`; bent ones
        are made straight.
    poses
        for each specimen its nuclei (n, 3) in each plausible pose, brought to ``size`` unless
        told otherwise.
    radii
        for each specimen (n, 3), its semi-axes after that.
    size, spacing
        of the common frame: length and width, typical distance of neighbours.
    key
        digest of all that later stages read.
    """

    specimens: tuple[Specimen, ...]
    poses: list[list[NDArray[np.float64]]]
    radii: list[NDArray[np.float64]]
    size: NDArray[np.float64]
    spacing: float
    key: str

    def features(self, settings: Config) -> tuple[tuple[str, ...], tuple[NDArray[np.float64], ...]]:
        """Return names of the features that count, and for each specimen their scores (n, d)."""
        names = feature_names(self.specimens, settings.estimate.features)
        return names, tuple(scores(one, names) for one in self.specimens)


def in_order(specimens: Sequence[Specimen]) -> tuple[Specimen, ...]:
    """Return the specimens by name, each with its nuclei in canonical order.

    What follows sees neither the order of files nor that of their rows.
    """
    units = sorted({one.unit for one in specimens})
    if len(units) > 1:
        raise EutelyError(f"mixed units ({', '.join(units)}); convert all specimens to one")
    names = [one.name for one in specimens]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EutelyError(f"two specimens are called {twice}; rename one")
    if len(names) < LEAST:
        raise EutelyError(f"{len(names)} specimen given, but an atlas needs at least {LEAST}")
    ordered = sorted(specimens, key=lambda one: one.name)
    return tuple(one.take(canonical_order(one)) for one in ordered)


def content(specimen: Specimen) -> str:
    """Return the digest of what a build reads of a specimen in canonical order."""
    features = {key: specimen.features[key] for key in sorted(specimen.features)}
    return digest([specimen.centroids, specimen.radii, specimen.unit, features])


def framed(
    ordered: Sequence[Specimen], run: RunFolder, executor: Executor, *, scale: bool = True
) -> Framed:
    """Find the poses of specimens in order, or take them from ``run``; bring all to one size."""
    bare = tuple(straighten(one.without_names()) for one in ordered)
    key = digest([VERSION, [content(one) for one in bare]])

    def compute() -> list[list[Pose]]:
        return list(executor.map(_poses, bare))

    poses = run.stage("poses", key, compute, _saved, _loaded)
    size = np.median([one[0].size for one in poses], axis=0)
    maps = [[pose.affine(tuple(size) if scale else None) for pose in one] for one in poses]
    posed = [
        [specimen.centroids @ matrix.T + shift for matrix, shift in one]
        for specimen, one in zip(bare, maps, strict=True)
    ]
    radii = [specimen.mapped(*one[0]).radii for specimen, one in zip(bare, maps, strict=True)]
    spacing = float(np.median([spacing_of(one[0]) for one in posed]))
    return Framed(bare, posed, radii, size, spacing, digest([key, scale]))


def _poses(specimen: Specimen) -> list[Pose]:
    return orient(specimen)[:POSES]


def _saved(found: list[list[Pose]]) -> Record:
    flat = [pose for one in found for pose in one]
    return Record(
        {
            "counts": np.array([len(one) for one in found]),
            "rotations": np.array([pose.rotation for pose in flat]),
            "centres": np.array([pose.centre for pose in flat]),
            "sizes": np.array([pose.size for pose in flat]),
            "scores": np.array([pose.score for pose in flat]),
        }
    )


def _loaded(record: Record) -> list[list[Pose]]:
    rotations, centres = record.arrays["rotations"], record.arrays["centres"]
    sizes, scores = record.arrays["sizes"].tolist(), record.arrays["scores"].tolist()
    flat = iter(
        Pose(rotation, centre, (length, width), score)
        for rotation, centre, (length, width), score in zip(
            rotations, centres, sizes, scores, strict=True
        )
    )
    return [[next(flat) for _ in range(count)] for count in record.arrays["counts"].tolist()]
