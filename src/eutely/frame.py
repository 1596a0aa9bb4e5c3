"""The common frame: specimens in their plausible poses, brought to one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.origin import groups_of
from eutely.specimen import Specimen

Points = NDArray[np.float64]


class Body(NamedTuple):
    """What a common frame is like.

    Attributes
    ----------
    size
        (2,) float64, length and width that specimens are brought to, as in `eutely.pose.Pose`.
    spacing
        typical distance of neighbouring nuclei.
    smooth
        whether specimens are warped smoothly along the body; otherwise by affine maps.
    """

    size: NDArray[np.float64]
    spacing: float
    smooth: bool = True


@dataclass(frozen=True, eq=False)
class Posed:
    """One specimen of ``n`` nuclei in each of its plausible poses.

    Attributes
    ----------
    poses
        the centroids (n, 3) in each pose, the most plausible first; at least one.
    radii
        (n, 3) semi-axes in the first pose, NaN where not known.
    scores
        (n, d), features as in `eutely.features`, NaN where not known; d may be 0.
    stretch
        factors by which the poses are longer and wider than the specimen.
    mirrored
        whether the poses are mirror images of the specimen.
    part
        whether it shows a part of the body; then it has one pose, at the place of that part. None
        where that is to be found out, in its one pose.
    other_hand
        probability that ``mirrored`` is wrong, relative to most specimens.
    """

    poses: tuple[Points, ...]
    radii: Points
    scores: Points
    stretch: tuple[float, float] = (1.0, 1.0)
    mirrored: bool = False
    part: bool | None = False
    other_hand: float = 0.0

    def __len__(self) -> int:
        """Return the number of nuclei."""
        return len(self.radii)

    def unstretched(self) -> Points:
        """Return the centroids (n, 3) in the first pose and in the specimen's own size."""
        length, width = self.stretch
        return np.asarray(self.poses[0] / np.array([length, width, width]))


@dataclass(frozen=True, eq=False)
class Frame:
    """N specimens in their plausible poses, in one frame.

    A frame holds nothing by which an individual could be recognised: no names of nuclei or
    specimens, no ids. Rows are in the order of `canonical_order`.

    Attributes
    ----------
    specimens
        in the order of their names.
    body
        size and spacing of the frame.
    features
        names of the d features that the specimens' scores are about.
    origins
        for each specimen how it was imaged, see `eutely.origin`, "" where not known; or ().
    """

    specimens: tuple[Posed, ...]
    body: Body
    features: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of specimens."""
        return len(self.specimens)

    def __repr__(self) -> str:
        return f"<Frame: {len(self)} specimens, {len(self.features)} features>"

    @property
    def poses(self) -> tuple[tuple[Points, ...], ...]:
        """For each specimen its centroids (n, 3) in each pose."""
        return tuple(posed.poses for posed in self.specimens)

    @property
    def radii(self) -> tuple[Points, ...]:
        """For each specimen (n, 3) semi-axes."""
        return tuple(posed.radii for posed in self.specimens)

    @property
    def scores(self) -> tuple[Points, ...]:
        """For each specimen (n, d) scores of features."""
        return tuple(posed.scores for posed in self.specimens)

    @property
    def parts(self) -> tuple[bool, ...]:
        """For each specimen whether it shows a part of the body; () if none does."""
        parts = tuple(bool(posed.part) for posed in self.specimens)
        return parts if any(parts) else ()

    def subset(self, numbers: Sequence[int]) -> Frame:
        """Return the frame of some of its specimens."""
        return replace(
            self,
            specimens=tuple(self.specimens[number] for number in numbers),
            origins=tuple(self.origins[number] for number in numbers) if self.origins else (),
        )

    def imaged_alike(self) -> list[list[int]]:
        """Return groups of two or more specimens of one known origin."""
        groups = groups_of(self.origins)
        return [group for group in groups if len(group) > 1 and self.origins[group[0]]]


def canonical_order(specimen: Specimen) -> NDArray[np.intp]:
    """Return the order of nuclei by x, y, z, which does not depend on the order in the file.

    Nuclei at one place are told apart by their radii, axes and features; by their ids if all else
    is the same.
    """
    axes = [] if specimen.axes is None else [*specimen.axes.reshape(len(specimen), 9).T]
    features = [specimen.features[key] for key in sorted(specimen.features)]
    columns = [*specimen.centroids.T, *specimen.radii.T, *axes, *features, specimen.ids]
    if len(np.unique(specimen.centroids, axis=0)) == len(specimen):
        columns = columns[:3]
    return np.lexsort(columns[::-1])
