"""An atlas shifted to a new cohort: other hands, media or microscopes move cells systematically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation, annotate
from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import robust_gaussians
from eutely.execute import Executor, Progress
from eutely.features import scores
from eutely.specimen import Specimen

Pinned = tuple[Specimen, Mapping[int, int]]
"""A specimen, and the cells of the nuclei (rows) that are known beforehand; -1 for none."""

PRIOR = 5.0
"""Specimens that the atlas counts for against the new cohort. On worms of another series the cost
of held-out specimens, which needs no names, is lowest between 3 and 20."""

ENOUGH = 10
"""Specimens from which a cohort can tell where its cells are: the atlas is shifted unless told not
to. The cost of held-out worms of another series falls from 4.04 to 3.66 per cell."""

FOLDS = 5
"""Parts of the cohort, each annotated by the atlas shifted to the others: none confirms itself."""


def annotate_cohort(
    atlas: Atlas,
    specimens: Sequence[Pinned],
    executor: Executor,
    *,
    alternatives: int = 3,
    progress: Progress | None = None,
) -> list[Annotation]:
    """Annotate specimens of one cohort by the atlas shifted to where the others have its cells.

    Parameters
    ----------
    atlas
        of the same organism.
    specimens
        ten or more of one series, with their pins; fewer shift the atlas less.
    executor, progress
        where to run, and who is told how many specimens are done, both times counted.
    alternatives
        next best cells to report for each nucleus.
    """
    total = 2 * len(specimens)

    def told(done: int, before: int) -> None:
        if progress is not None:
            progress(before + done, total)

    fits = list(
        executor.map(
            annotate_pinned,
            specimens,
            shared=(atlas, 0),
            progress=lambda done, _: told(done, 0),
        )
    )
    places = np.stack([places_of(fit, len(atlas)) for fit in fits])
    features = np.stack(
        [
            features_of(fit, specimen, atlas)
            for fit, (specimen, _) in zip(fits, specimens, strict=True)
        ]
    )
    fold = np.arange(len(specimens)) % FOLDS
    found: dict[int, Annotation] = {}
    for part in range(min(FOLDS, len(specimens))):
        inside = np.flatnonzero(fold == part).tolist()
        moved = shifted(atlas, places[fold != part], features[fold != part])
        items = [(*specimens[number], fits[number].places) for number in inside]
        again = executor.map(_annotate_placed, items, shared=(moved, alternatives))
        found |= dict(zip(inside, again, strict=True))
        told(len(found), len(specimens))
    return [found[number] for number in range(len(specimens))]


def places_of(fit: Annotation, cells: int) -> NDArray[np.float64]:
    """Return (m, 3), where a specimen has each cell in the frame of the atlas; NaN where not."""
    found = np.full((cells, 3), np.nan)
    matched = fit.cells >= 0
    found[fit.cells[matched]] = fit.places[matched]
    return found


def features_of(fit: Annotation, specimen: Specimen, atlas: Atlas) -> NDArray[np.float64]:
    """Return (m, d), the scores of each cell in a specimen; NaN where not known."""
    found = np.full(atlas.feature_means.shape, np.nan)
    matched = fit.cells >= 0
    found[fit.cells[matched]] = scores(specimen, atlas.features)[matched]
    return found


def shifted(atlas: Atlas, places: NDArray[np.float64], features: NDArray[np.float64]) -> Atlas:
    """Return the atlas with its cells moved towards where specimens have them.

    Parameters
    ----------
    atlas
        counts for ``PRIOR`` specimens.
    places
        (N, m, 3), NaN where a specimen lacks a cell.
    features
        (N, m, d), their scores, NaN where not known.
    """
    seen = np.isfinite(places[:, :, 0]).sum(axis=0)[:, None]
    if not seen.any():
        return atlas
    there = robust_gaussians(places, Estimate()).means
    moved = np.where(seen > 0, (there - atlas.means) * seen / (seen + PRIOR), 0.0)
    known = np.isfinite(features).sum(axis=0)
    total = np.where(np.isfinite(features), features, 0.0).sum(axis=0)
    first, second = atlas.edges.T
    return replace(
        atlas,
        means=atlas.means + moved,
        feature_means=(total + PRIOR * atlas.feature_means) / (known + PRIOR),
        offsets=atlas.offsets + moved[first] - moved[second],
    )


def annotate_pinned(atlas: Atlas, alternatives: int, item: Pinned) -> Annotation:
    """Annotate one specimen around its pins."""
    specimen, pins = item
    return annotate(specimen, atlas, alternatives=alternatives, pins=pins)


def _annotate_placed(
    atlas: Atlas, alternatives: int, item: tuple[Specimen, Mapping[int, int], NDArray[np.float64]]
) -> Annotation:
    """Annotate one specimen of which the pose is known."""
    specimen, pins, places = item
    return annotate(specimen, atlas, alternatives=alternatives, pins=pins, places=places)
