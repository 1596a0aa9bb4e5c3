"""The whole refinement: from poses to cells that all specimens share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate, Refine
from eutely.estimate import Gaussians
from eutely.execute import Executor
from eutely.features import cell_means
from eutely.find.refine.grow import grown, pruned
from eutely.cells import Cohort
from eutely.find.refine.fuse import from_target, fuse, spare_rates
from eutely.find.refine.resplit import resplit
from eutely.find.refine.rounds import cells_of, joint_round, linear_round
from eutely.progress import Watch, nobody

log = logging.getLogger("eutely")


LACKING = 0.01
"""Share of the nuclei that specimens lack from which twice as many targets are taken: each lacks
some cells, and those that all of them lack are hard to find."""

Keep = Callable[[str, Callable[[], Cohort]], Cohort]
"""Called with the name of a step and how to compute it; returns its result, perhaps a kept one."""


def at_once(step: str, compute: Callable[[], Cohort]) -> Cohort:  # noqa: ARG001
    """Compute a step, and keep nothing."""
    return compute()


def refine(
    poses: Sequence[Sequence[NDArray[np.float64]]],
    targets: Sequence[int],
    *,
    size: NDArray[np.float64],
    spacing: float,
    settings: Refine,
    estimate: Estimate,
    executor: Executor,
    features: Sequence[NDArray[np.float64]] = (),
    smooth: bool = True,
    keep: Keep = at_once,
    watch: Watch = nobody,
) -> Cohort:
    """Find the cells that all specimens share, starting from the nuclei of several of them.

    Rounds of warping and matching to the cells of a first target bring all specimens into one
    frame. There the cells of each target are found anew, and the solutions are fused, region by
    region. In the last rounds cells that are easily confused are dealt out anew.

    Parameters
    ----------
    poses
        for each specimen its nuclei (n, 3) in each plausible pose, brought to ``size``.
    targets
        numbers of the specimens whose nuclei are the first cells, one after the other, each in
        its first pose. Those beyond ``settings.targets`` count only where nuclei are missing.
    size, spacing
        of the common frame.
    settings, estimate
        sections of the configuration.
    executor
        where to run.
    features
        for each specimen (n, d), scores of its nuclei as of `eutely.features`; () for none.
    smooth
        whether specimens are warped smoothly; otherwise by affine maps.
    keep
        keeps the result of each step, so that an interrupted refinement can go on.
    watch
        told after each step.
    """
    first, *others = targets
    folds = min(settings.folds, len(poses))
    joint = partial(joint_round, settings=estimate, executor=executor, folds=folds)
    note = ""

    def start() -> Cohort:
        cohort = _aligned(
            poses, features, first, size, spacing, settings, estimate, executor, smooth=smooth
        )
        if settings.joint_rounds:
            cohort, _ = joint(cohort, afresh=True)
        return _settled(cohort, settings, estimate)

    def target(other: int, cohort: Cohort) -> Cohort:
        nonlocal note
        second = _settled(from_target(cohort, other, estimate, executor), settings, estimate)
        for _ in range(settings.target_rounds):
            second, _ = joint(second, afresh=False)
            second = _settled(second, settings, estimate)
        fused, taken = fuse(cohort, second, estimate, executor, folds=folds)
        note = f"another target is better in {taken} regions"
        return _settled(fused, settings, estimate)

    def last(number: int, cohort: Cohort) -> Cohort:
        nonlocal note
        dealt = 0
        if 0 < number < settings.joint_rounds - 1:
            cohort, dealt = resplit(cohort, estimate, executor, seed=number)
        cohort, cost = joint(cohort, afresh=False)
        note = f"cost {cost:.1f}, {dealt} groups of confusable cells dealt anew"
        return _settled(cohort, settings, estimate)

    cohort = keep("target 1", start)
    if spare_rates(cohort).missing < LACKING:
        others = others[: settings.targets - 1]
    steps: list[tuple[str, Callable[[Cohort], Cohort]]] = [
        *((f"target {number + 2}", partial(target, one)) for number, one in enumerate(others)),
        *(
            (f"round {number + 1}", partial(last, number))
            for number in range(settings.joint_rounds)
        ),
    ]
    total = 1 + len(steps)
    watch("finding cells", 1, total, note)
    for number, (name, step) in enumerate(steps):
        cohort = keep(name, partial(step, cohort))
        log.info("%s: %s", name, note or "done before")
        watch("finding cells", number + 2, total, note)
        note = ""
    return cohort.rewarped(estimate)


def _settled(cohort: Cohort, settings: Refine, estimate: Estimate) -> Cohort:
    """Add cells that many specimens have, remove those that few have."""
    cohort, fewer = pruned(cohort, settings.rare)
    cohort, more = grown(cohort, estimate, settings.common)
    if more or fewer:
        log.info("cells: %d new, %d removed, %d now", more, fewer, len(cohort.nuclei[0]))
    return cohort


def _aligned(
    poses: Sequence[Sequence[NDArray[np.float64]]],
    features: Sequence[NDArray[np.float64]],
    target: int,
    size: NDArray[np.float64],
    spacing: float,
    settings: Refine,
    estimate: Estimate,
    executor: Executor,
    *,
    smooth: bool,
) -> Cohort:
    """Settle poses and warps by matching with a target, then with the mean, cell by cell."""
    first = poses[target][0]
    cohort = Cohort(
        posed=tuple(one[0] for one in poses),
        warped=tuple(one[0] for one in poses),
        nuclei=(),
        size=np.asarray(size, dtype=np.float64),
        spacing=spacing,
        features=tuple(features),
        smooth=smooth,
    )
    # Half the spacing: broad enough to reach the right nucleus, too narrow to blur neighbours.
    wide = np.broadcast_to((spacing / 2) ** 2 * np.eye(3), (len(first), 3, 3))
    cells = Gaussians(first, np.array(wide))
    scores = np.nan_to_num(features[target] if features else np.zeros((len(first), 0)))
    for number in range(settings.linear_rounds):
        cohort = linear_round(cohort, poses, cells, scores, executor, estimate.freedom)
        if number:
            poses = [[posed] for posed in cohort.posed]
        cohort = _settled(cohort, settings, estimate)
        cells, scores = cells_of(cohort, estimate), cell_means(cohort.feature_values())
        log.info("alignment %d of %d", number + 1, settings.linear_rounds)
    return cohort
