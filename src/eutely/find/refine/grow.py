"""Which cells there are: common nuclei without a cell become one, rare cells are removed."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.cells import Cells
from eutely.config.model import Estimate, Refine
from eutely.estimate import robust_gaussians
from eutely.geometry import median_places
from eutely.solver.softassign import centres_of
from eutely.specimen import UNMATCHED

log = logging.getLogger("eutely")

REACH = 3.0
"""Standard deviations of a typical cell within which unmatched nuclei belong to one new cell."""

SHIFTS = 3
"""Steps of a new cell to the mean of its nuclei."""


def settled(cells: Cells, refine: Refine, estimate: Estimate) -> Cells:
    """Remove cells that few specimens have, and add those that many have."""
    fewer = pruned(cells, refine.rare)
    more = grown(fewer, estimate, refine.common)
    removed, new = cells.count - fewer.count, more.count - fewer.count
    if removed or new:
        log.info("cells: %d new, %d removed, %d now", new, removed, more.count)
    return more


def grown(cells: Cells, settings: Estimate, share: float) -> Cells:
    """Add cells where many specimens have a nucleus without a cell.

    The place at which most specimens have one becomes a cell, and so on, as long as ``share`` of
    the specimens have one there; of those that show the place, where some show parts of the body.
    """
    typical = np.median(robust_gaussians(cells.places(), settings).covariances, axis=0)
    whitening = centres_of(typical[None]).whitening[0]
    spare = [np.flatnonzero(labels < 0) for labels in cells.labels()]
    if any(cells.parts):
        spare = _without_strays(cells, spare, whitening)
    owners = np.repeat(np.arange(len(cells)), [len(nuclei) for nuclei in spare])
    numbers = np.concatenate(spare)
    points = np.concatenate(
        [warped[nuclei] @ whitening.T for warped, nuclei in zip(cells.warped, spare, strict=True)]
    )
    needed = np.repeat(max(share * len(cells), 2.0), len(points))
    if any(cells.parts):
        along = [warped[nuclei, 0] for warped, nuclei in zip(cells.warped, spare, strict=True)]
        needed = np.maximum(share * _showing(cells, np.concatenate(along)), 2.0)
    added = clusters(points, owners, needed)
    columns = np.full((len(cells), len(added)), UNMATCHED, np.int32)
    for column, members in enumerate(added):
        columns[owners[members], column] = numbers[members]
    return cells.with_nuclei(np.concatenate([np.array(cells.nuclei), columns], axis=1))


def pruned(cells: Cells, share: float) -> Cells:
    """Remove cells that less than ``share`` of the usual number of specimens have."""
    often = cells.often()
    return cells.with_nuclei(np.array(cells.nuclei)[:, often >= share * np.median(often)])


def _without_strays(
    cells: Cells, spare: list[NDArray[np.intp]], whitening: NDArray[np.float64]
) -> list[NDArray[np.intp]]:
    """Leave out nuclei near a usual cell that their specimen lacks: they may be that cell.

    A part that lies a little off has both, and many such parts would make the cell twice.
    """
    often = cells.often()
    usual = np.flatnonzero(often >= np.median(often) / 2)
    means = median_places(cells.places()[:, usual]) @ whitening.T
    kept = []
    for warped, nuclei, numbers in zip(cells.warped, cells.nuclei, spare, strict=True):
        lacking = nuclei[usual] < 0
        if lacking.any() and len(numbers):
            apart, _ = KDTree(means[lacking]).query(warped[numbers] @ whitening.T)
            numbers = numbers[apart > REACH]
        kept.append(numbers)
    return kept


def _showing(cells: Cells, along: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return (k,), the number of specimens that show the places at ``along`` (k,) the body."""
    counts = np.zeros(len(along), np.int64)
    for warped, part in zip(cells.warped, cells.parts, strict=True):
        if part:
            counts += (along >= warped[:, 0].min()) & (along <= warped[:, 0].max())
        else:
            counts += 1
    return counts


def clusters(
    points: NDArray[np.float64], owners: NDArray[np.intp], needed: NDArray[np.float64]
) -> list[NDArray[np.intp]]:
    """Return sets of points, at most one of each owner, from the densest place on.

    ``needed`` (n,) says how many points a set at each point must have.
    """
    clusters: list[NDArray[np.intp]] = []
    if not len(points):
        return clusters
    tree = KDTree(points)
    near = [np.array(some, dtype=np.intp) for some in tree.query_ball_point(points, REACH / 2)]
    left = np.ones(len(points), bool)
    counts = np.array([len(np.unique(owners[some])) for some in near])
    while left.any():
        densest = int(np.argmax(np.where(left, counts / needed, -1.0)))
        centre = points[densest]
        for _ in range(SHIFTS):
            around = np.sort(np.array(tree.query_ball_point(centre, REACH), dtype=np.intp))
            members = _nearest(points, owners, around[left[around]], centre)
            centre = np.median(points[members], axis=0)
        if len(members) < needed[densest]:
            break
        clusters.append(members)
        left[members] = False
        for other in np.unique(np.concatenate([near[member] for member in members])):
            some = near[other]
            counts[other] = len(np.unique(owners[some[left[some]]]))
    return clusters


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
