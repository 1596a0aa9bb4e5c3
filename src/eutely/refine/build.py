"""The whole refinement: from poses and one target specimen to cells that all specimens share."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate, Refine
from eutely.estimate import Gaussians
from eutely.execute import Executor
from eutely.refine.cohort import Cohort
from eutely.refine.resplit import resplit
from eutely.refine.rounds import cells_of, joint_round, linear_round

log = logging.getLogger("eutely")


def refine(
    poses: Sequence[Sequence[NDArray[np.float64]]],
    target: int,
    *,
    size: NDArray[np.float64],
    spacing: float,
    settings: Refine,
    estimate: Estimate,
    executor: Executor,
) -> Cohort:
    """Find the cells that all specimens share, starting from the nuclei of one of them.

    Rounds of warping and matching cells one by one; then rounds in which cells predict each
    other, with cells that are easily confused dealt out anew in between.

    Parameters
    ----------
    poses
        for each specimen its nuclei (n, 3) in each plausible pose, brought to ``size``.
    target
        number of the specimen whose nuclei are the first cells, in its first pose.
    size, spacing
        of the common frame.
    settings, estimate
        sections of the configuration.
    executor
        where to run.
    """
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
    for number in range(settings.joint_rounds):
        if settings.resplit_after <= number < settings.joint_rounds - 1:
            cohort, dealt = resplit(cohort, estimate, executor, seed=number)
            log.info("confusable cells dealt anew: %d groups changed", dealt)
        folds = min(settings.folds, len(cohort))
        cohort, cost = joint_round(
            cohort, estimate, executor, folds=folds, afresh=number < settings.afresh
        )
        log.info("round %d of %d: cost %.1f", number + 1, settings.joint_rounds, cost)
    return cohort.rewarped(estimate)
