"""Which cells there are: those that the first target lacked are added, those of its own removed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.config.model import Estimate
from eutely.estimate import robust_gaussians
from eutely.cells import Cohort
from eutely.solver.softassign import centres_of

REACH = 3.0
"""Standard deviations of a typical cell within which lone nuclei belong to one new cell."""

SHIFTS = 3
"""Steps of a new cell to the mean of its nuclei."""


def grown(cohort: Cohort, settings: Estimate, share: float) -> tuple[Cohort, int]:
    """Return the cohort with new cells where many specimens have a nucleus without a cell.

    The place at which most specimens have one becomes a cell, and so on, as long as ``share`` of
    the specimens have one there. Returned with the number of new cells.
    """
    typical = np.median(robust_gaussians(cohort.places(), settings).covariances, axis=0)
    whitening = centres_of(typical[None]).whitening[0]
    lone = [np.flatnonzero(labels < 0) for labels in cohort.labels()]
    owners = np.repeat(np.arange(len(cohort)), [len(own) for own in lone])
    numbers = np.concatenate(lone)
    points = np.concatenate(
        [warped[own] @ whitening.T for warped, own in zip(cohort.warped, lone, strict=True)]
    )
    added = _clusters(points, owners, max(share * len(cohort), 2.0))
    columns = np.full((len(cohort), len(added)), -1, np.int32)
    for column, members in enumerate(added):
        columns[owners[members], column] = numbers[members]
    nuclei = [np.concatenate([own, new]) for own, new in zip(cohort.nuclei, columns, strict=True)]
    return replace(cohort, nuclei=tuple(nuclei)), len(added)


def _clusters(
    points: NDArray[np.float64], owners: NDArray[np.intp], least: float
) -> list[NDArray[np.intp]]:
    """Return sets of points, at most one of each owner, from the densest place on."""
    found = []
    left = np.arange(len(points))
    while len(left) >= least:
        tree = KDTree(points[left])
        near = tree.query_ball_point(points[left], REACH / 2)
        densest = int(np.argmax([len(np.unique(owners[left[some]])) for some in near]))
        centre = points[left[densest]]
        for _ in range(SHIFTS):
            members = _nearest(points, owners, left, centre)
            centre = np.median(points[members], axis=0)
        if len(members) < least:
            break
        found.append(members)
        left = np.setdiff1d(left, members)
    return found


def _nearest(
    points: NDArray[np.float64],
    owners: NDArray[np.intp],
    left: NDArray[np.intp],
    centre: NDArray[np.float64],
) -> NDArray[np.intp]:
    """Return the nearest point of each owner within reach of ``centre``."""
    distances = np.linalg.norm(points[left] - centre, axis=1)
    order = left[np.argsort(distances, kind="stable")][: (distances <= REACH).sum()]
    first = np.unique(owners[order], return_index=True)[1]
    return order[first]


def pruned(cohort: Cohort, share: float) -> tuple[Cohort, int]:
    """Return the cohort without cells that less than ``share`` of the specimens have."""
    table = np.array(cohort.nuclei)
    seen = (table >= 0).sum(axis=0)
    kept = seen >= share * np.median(seen)
    nuclei = tuple(np.ascontiguousarray(table[:, kept]))
    return replace(cohort, nuclei=nuclei), int((~kept).sum())
