"""The whole refinement: from poses to cells that all specimens share."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate, Refine
from eutely.estimate import Gaussians
from eutely.execute import Executor
from eutely.refine.cohort import Cohort
from eutely.refine.fuse import from_target, fuse
from eutely.refine.resplit import resplit
from eutely.refine.rounds import cells_of, joint_round, linear_round
from eutely.refine.target import rank_targets

log = logging.getLogger("eutely")


def refine(
    poses: Sequence[Sequence[NDArray[np.float64]]],
    target: int | None = None,
    *,
    size: NDArray[np.float64],
    spacing: float,
    settings: Refine,
    estimate: Estimate,
    executor: Executor,
    seed: int = 0,
) -> Cohort:
    """Find the cells that all specimens share, starting from the nuclei of several of them.

    Rounds of warping and matching to the cells of a first target bring all specimens into one
    frame. There the cells of each target are found anew, and the solutions are fused, region by
    region. In the last rounds cells that are easily confused are dealt out anew.

    Parameters
    ----------
    poses
        for each specimen its nuclei (n, 3) in each plausible pose, brought to ``size``.
    target
        number of the specimen whose nuclei are the first cells, in its first pose; None chooses.
    size, spacing
        of the common frame.
    settings, estimate
        sections of the configuration.
    executor
        where to run.
    seed
        of the sample that targets are compared with, and which of the good ones are taken.
    """
    ranked = rank_targets(poses, spacing=spacing, executor=executor, seed=seed)
    first = ranked[0] if target is None else target
    cohort = _aligned(poses, first, size, spacing, settings, estimate, executor)
    folds = min(settings.folds, len(cohort))
    for number in range(settings.joint_rounds and 1):
        cohort, cost = joint_round(cohort, estimate, executor, folds=folds, afresh=True)
        log.info("target %d of %d: cost %.1f", number + 1, settings.targets, cost)
    good = [one for one in ranked[: (len(ranked) + 1) // 2] if one != first]
    others = np.random.default_rng(seed).permutation(good)[: settings.targets - 1]
    for number, other in enumerate(others.tolist()):
        second = from_target(cohort, other, estimate, executor)
        for _ in range(settings.target_rounds):
            second, cost = joint_round(second, estimate, executor, folds=folds, afresh=False)
        cohort, taken = fuse(cohort, second, estimate, executor, folds=folds)
        log.info(
            "target %d of %d: cost %.1f, better in %d regions",
            number + 2,
            settings.targets,
            cost,
            taken,
        )
    for number in range(settings.joint_rounds):
        if 0 < number < settings.joint_rounds - 1:
            cohort, dealt = resplit(cohort, estimate, executor, seed=number)
            log.info("confusable cells dealt anew: %d groups changed", dealt)
        cohort, cost = joint_round(cohort, estimate, executor, folds=folds, afresh=False)
        log.info("round %d of %d: cost %.1f", number + 1, settings.joint_rounds, cost)
    return cohort.rewarped(estimate)


def _aligned(
    poses: Sequence[Sequence[NDArray[np.float64]]],
    target: int,
    size: NDArray[np.float64],
    spacing: float,
    settings: Refine,
    estimate: Estimate,
    executor: Executor,
) -> Cohort:
    """Settle poses and warps by matching with a target, then with the mean, cell by cell."""
    first = poses[target][0]
    cohort = Cohort(
        posed=tuple(one[0] for one in poses),
        warped=tuple(one[0] for one in poses),
        nuclei=(),
        size=np.asarray(size, dtype=np.float64),
        spacing=spacing,
    )
    # Half the spacing: broad enough to reach the right nucleus, too narrow to blur neighbours.
    wide = np.broadcast_to((spacing / 2) ** 2 * np.eye(3), (len(first), 3, 3))
    cells = Gaussians(first, np.array(wide))
    for number in range(settings.linear_rounds):
        cohort, chosen = linear_round(cohort, poses, cells, executor, estimate.freedom)
        if number:
            poses = [[one[pose]] for one, pose in zip(poses, chosen, strict=True)]
        cells = cells_of(cohort, estimate)
        log.info("alignment %d of %d", number + 1, settings.linear_rounds)
    return cohort
