"""From a specimen as it lies in a file to its poses in a common frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.errors import SpecimenError
from eutely.features import scores
from eutely.frame import Body, Frame, Posed, canonical_order
from eutely.geometry import spacing
from eutely.origin import origin_of
from eutely.pose.hypotheses import FLAT, orient
from eutely.pose.pose import Pose, body
from eutely.pose.straighten import straighten
from eutely.specimen import Specimen

POSES = 4
"""Poses of a specimen that are compared, the most plausible ones."""


class Oriented(NamedTuple):
    """A specimen whose body is straight.

    Attributes
    ----------
    specimen
        after straightening.
    poses
        its plausible poses, the most plausible first.
    origin
        how it was imaged, see `eutely.origin`.
    """

    specimen: Specimen
    poses: tuple[Pose, ...]
    origin: str = ""


def anonymous(specimen: Specimen, name: str) -> Specimen:
    """Return a specimen as unsupervised code may see it, called ``name`` in error messages.

    Without names and ids of nuclei, which are in canonical order: nothing that follows can depend
    on how a file numbers, names or orders them.
    """
    ordered = specimen.take(canonical_order(specimen))
    return Specimen(
        name,
        np.arange(len(ordered)),
        ordered.centroids,
        ordered.radii,
        ordered.axes,
        ordered.features,
        unit=ordered.unit,
        series=ordered.series,
    )


def oriented(specimen: Specimen) -> Oriented:
    """Straighten a specimen if it is bent, and find its poses.

    Nuclei in one plane are refused: their left and right cannot be told from their mirror image.
    """
    points = body(specimen)
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    if spread[1] > FLAT * spread[0] and spread[2] <= FLAT * spread[1]:
        raise SpecimenError(
            f"{specimen.name}: all nuclei lie in one plane; check the coordinates: three are needed"
        )
    straight = straighten(specimen)
    return Oriented(straight, tuple(orient(straight)[:POSES]), origin_of(specimen))


def posed(given: Oriented, size: NDArray[np.float64] | None, features: Sequence[str] = ()) -> Posed:
    """Return a specimen in its poses.

    Parameters
    ----------
    given
        from `oriented`.
    size
        (2,) length and width to bring it to; None keeps its own.
    features
        names of the features whose scores count.
    """
    maps = [pose.affine(None if size is None else tuple(size)) for pose in given.poses]
    points = given.specimen.centroids
    stretch = (1.0, 1.0)
    if size is not None:
        length, width = given.poses[0].size
        stretch = (float(size[0] / length), float(size[1] / width))
    return Posed(
        tuple(points @ matrix.T + shift for matrix, shift in maps),
        given.specimen.mapped(*maps[0]).radii,
        scores(given.specimen, features),
        stretch,
    )


def framed(
    specimens: Sequence[Oriented], features: Sequence[str], *, scale: bool, smooth: bool
) -> Frame:
    """Return the common frame of specimens.

    Parameters
    ----------
    specimens
        from `oriented`.
    features
        names of the features that count.
    scale
        whether all specimens are brought to the median length and width.
    smooth
        whether they may be warped smoothly later on.
    """
    size = np.median([one.poses[0].size for one in specimens], axis=0)
    inside = tuple(posed(one, size if scale else None, features) for one in specimens)
    distance = float(np.median([spacing(one.poses[0]) for one in inside]))
    origins = tuple(one.origin for one in specimens)
    body = Body(size, distance, smooth)
    return Frame(inside, body, tuple(features), origins if any(origins) else ())
