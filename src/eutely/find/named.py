"""The supervised baseline: cells are what has one name in all specimens (supplement D)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution

from eutely.align.affine import FEWEST_MATCHES, Map, least_squares
from eutely.align.shared import harmonised, shared_maps
from eutely.align.warp import warped_to_mean
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.errors import EutelyError
from eutely.estimate import atlas_of, robust_gaussians
from eutely.evaluation import comparable, spellings
from eutely.find.found import Found, Labels
from eutely.find.learn.study import Study, optimise
from eutely.fit.quadratic import problem_of
from eutely.frame import Body, Frame, Points
from eutely.geometry import median_places, spacing
from eutely.learned import Trial
from eutely.pose import orient
from eutely.solver import solve
from eutely.solver.softassign import centres_of, squared_distances
from eutely.specimen import UNMATCHED, Specimen
from eutely.steps import Context, Run, step

log = logging.getLogger("eutely")

WARPS = 3
"""Rounds of warping all specimens to the mean of their cells; they settle in two or three."""

TERMS, HIGHEST_WEIGHT = ("centroids", "radii", "offsets"), 2.0
"""Terms of the costs whose weights are learned, and the highest weight that is tried."""


def find(run: Run, frame: Frame, labels: Labels = ()) -> Found:
    """Take the names for cells, and align all specimens by true correspondence."""
    cells = run(named_cells, frame, labels)
    if run.config.atlas.model == "joint":
        return Found(cells, all_names(labels))
    return Found(cells, all_names(labels), weights=run(weights, frame, cells))


def all_names(labels: Labels) -> tuple[str, ...]:
    """Return all names in their usual spelling, in alphabetical order."""
    spelt = spellings(labels)
    return tuple(spelt[key] for key in sorted(spelt))


@step("estimate", "realign.base")
def named_cells(context: Context, frame: Frame, labels: Labels) -> Cells:
    """Return the cells that names stand for, in specimens aligned by true correspondence.

    Specimens are aligned by the cells that they share and warped to the mean of all. With
    ``realign.base`` or without ``realign.warp`` they are fitted to a base by affine maps, as in the
    paper. Nuclei without a name belong to no cell; of nuclei with the same name in one specimen the
    first counts.
    """
    names = all_names(labels)
    if len(names) < FEWEST_MATCHES:
        raise EutelyError(
            f"{len(names)} different names in all specimens; a supervised atlas needs named nuclei "
            "(column 'name')"
        )
    nuclei = tuple(_nuclei(row, names) for row in labels)
    settings = context.settings
    by_base = settings.realign.base or not frame.body.smooth
    cells = _by_base(frame, nuclei, settings.estimate) if by_base else _by_shared(frame, nuclei)
    for _ in range(WARPS if frame.body.smooth else 0):
        cells = warped_to_mean(cells, settings.estimate)
    if by_base:
        return cells
    return replace(cells, scores=harmonised(cells.scores, cells.nuclei, cells.warped))


def _by_base(frame: Frame, nuclei: tuple[NDArray[np.int32], ...], settings: Estimate) -> Cells:
    """Fit all specimens to a base, each in the pose that is nearest to one with many names."""
    reference = int(np.argmax([(row >= 0).sum() for row in nuclei]))
    goal = _places(frame.poses[reference][0], nuclei[reference])
    posed = tuple(
        _nearest_pose(poses, row, goal) for poses, row in zip(frame.poses, nuclei, strict=True)
    )
    cells = Cells(posed, posed, nuclei, frame.scores, frame.body)
    maps = base_maps(cells.places(), settings)[1]
    rows = zip(posed, maps, strict=True)
    return replace(cells, warped=tuple(points @ m.T + shift for points, (m, shift) in rows))


def _by_shared(frame: Frame, nuclei: tuple[NDArray[np.int32], ...]) -> Cells:
    """Align specimens in their own sizes by the cells that they share; the frame is their mean's.

    They may be mirror images, and show parts of the body.
    """
    points = [specimen.unstretched() for specimen in frame.specimens]
    places = np.array([_places(*row) for row in zip(points, nuclei, strict=True)])
    maps = shared_maps(places)
    nuclei = _hanging_together(nuclei, [fit is not None for fit in maps])
    fits = [(np.eye(3), np.zeros(3)) if fit is None else fit for fit in maps]
    aligned = [here @ m.T + shift for here, (m, shift) in zip(points, fits, strict=True)]
    known = np.array([_places(*row) for row in zip(aligned, nuclei, strict=True)])
    known = known[:, np.isfinite(known[:, :, 0]).any(axis=0)]
    pose = orient(Specimen.from_arrays("mean", median_places(known)))[0]
    matrix, shift = pose.affine()
    posed = tuple(here @ matrix.T + shift for here in aligned)
    distance = float(np.median([spacing(here) for here in posed]))
    body = Body(np.array(pose.size), distance, frame.body.smooth)
    return Cells(posed, posed, nuclei, frame.scores, body)


def _hanging_together(
    nuclei: tuple[NDArray[np.int32], ...], aligned: Sequence[bool]
) -> tuple[NDArray[np.int32], ...]:
    """Return the nuclei of each cell without those of named specimens that cannot be aligned."""
    lost = sum(
        not fits and bool((row >= 0).any()) for row, fits in zip(nuclei, aligned, strict=True)
    )
    if not lost:
        return nuclei
    few = (
        f"{lost} of {len(nuclei)} specimens share fewer than {FEWEST_MATCHES} names with the others"
    )
    rows = zip(nuclei, aligned, strict=True)
    kept = tuple(row if fits else np.full_like(row, UNMATCHED) for row, fits in rows)
    if not (np.array(kept) >= 0).any(axis=0).all():
        raise EutelyError(
            f"{few}, and only they have some of the names: the cohort does not hang together; name "
            "more nuclei, or leave these specimens out"
        )
    log.warning("%s and do not count", few)
    return kept


def _nuclei(labels: Sequence[str], names: Sequence[str]) -> NDArray[np.int32]:
    """Return (m,), the first nucleus of each name, or -1."""
    first: dict[str, int] = {}
    for number, name in enumerate(labels):
        first.setdefault(comparable(name), number)
    return np.array([first.get(comparable(name), UNMATCHED) for name in names], dtype=np.int32)


def _places(points: Points, nuclei: NDArray[np.int32]) -> Points:
    """Return (m, 3), where a specimen has each cell; NaN where it has none."""
    return np.where((nuclei >= 0)[:, None], points[nuclei], np.nan)


def _nearest_pose(poses: Sequence[Points], nuclei: NDArray[np.int32], goal: Points) -> Points:
    """Return the pose in which the cells lie nearest to those at ``goal`` (m, 3)."""
    both = (nuclei >= 0) & np.isfinite(goal[:, 0])
    if both.sum() < FEWEST_MATCHES:
        return poses[0]
    apart = [float(((posed[nuclei[both]] - goal[both]) ** 2).sum()) for posed in poses]
    return poses[int(np.argmin(apart))]


def base_maps(places: NDArray[np.float64], settings: Estimate) -> tuple[int, list[Map]]:
    """Choose the base, and return it with the maps of all specimens to it.

    Each specimen in turn is the one that all others are fitted to by least squares, cell to cell;
    the base is the one whose atlas the others are nearest to, in standard deviations.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell; NaN where it has none.
    settings
        the section ``estimate`` of the configuration.
    """
    candidates = [maps_to(places, base) for base in range(len(places))]
    costs = [_distance(_moved(places, maps), settings) for maps in candidates]
    base = int(np.argmin(costs))
    return base, candidates[base]


def maps_to(places: NDArray[np.float64], base: int) -> list[Map]:
    """Return the affine maps (least squares) of all specimens to one of them."""
    goal = places[base]
    maps: list[Map] = []
    for number, points in enumerate(places):
        both = np.isfinite(points[:, 0]) & np.isfinite(goal[:, 0])
        if number == base or both.sum() < FEWEST_MATCHES:
            maps.append((np.eye(3), np.zeros(3)))
        else:
            maps.append(least_squares(points[both], goal[both]))
    return maps


def _moved(places: NDArray[np.float64], maps: list[Map]) -> NDArray[np.float64]:
    rows = zip(places, maps, strict=True)
    return np.array([points @ matrix.T + shift for points, (matrix, shift) in rows])


def _distance(places: NDArray[np.float64], settings: Estimate) -> float:
    """Return the mean distance of all specimens' cells from those of their atlas."""
    seen = np.isfinite(places[:, :, 0])
    cells = robust_gaussians(places, settings)
    whitening = centres_of(cells.covariances).whitening
    total = 0.0
    for points, known in zip(places, seen, strict=True):
        squared = squared_distances(cells.means[known], whitening[known], points[known])
        total += float(np.sqrt(squared).sum())
    return total / max(int(seen.sum()), 1)


@step("seed", "costs", "atlas", "estimate", "realign.scale", "learn.trials_offsets")
def weights(context: Context, frame: Frame, cells: Cells) -> NDArray[np.float64]:
    """Learn the weights (3,) with which most nuclei of the cohort find their cell.

    Equal weights are tried first; without any trial they are returned.
    """
    settings = context.settings
    count = settings.learn.trials_offsets
    atlas = atlas_of(cells, frame, settings, weights=np.ones(3))
    items = list(zip(cells.warped, frame.radii, cells.nuclei, strict=True))

    def losses(values: dict[str, Any]) -> list[float]:
        weighted = replace(atlas, weights=_weights(values))
        return [-float(sum(context.executor.map(_right, items, shared=(weighted,))))]

    def report(done: Sequence[Trial]) -> None:
        most = -min(trial.losses[0] for trial in done)
        context.progress("learning weights", len(done), count, f"{most:.0f} nuclei right")

    space = {name: FloatDistribution(0.0, HIGHEST_WEIGHT) for name in TERMS}
    study = Study("weights", space, 1, dict.fromkeys(TERMS, 1.0), settings.seed)
    trials = optimise(study, losses, count, context.journal, report)
    if not trials:
        return np.ones(3)
    return _weights(min(trials, key=lambda trial: trial.losses).parameters)


def _weights(values: dict[str, Any]) -> NDArray[np.float64]:
    """Return weights of the length of (1, 1, 1), to which c0 is relative."""
    given = np.array([values[name] for name in TERMS])
    return np.asarray(given * np.sqrt(3) / max(float(np.linalg.norm(given)), 1e-9))


def _right(atlas: Atlas, specimen: tuple[Points, Points, NDArray[np.int32]]) -> int:
    """Return how many nuclei of a specimen are matched with their own cells."""
    frame, radii, truth = specimen
    matching = solve(problem_of(atlas, frame, radii), "fast").matching
    return int(((matching == truth) & (truth >= 0)).sum())
