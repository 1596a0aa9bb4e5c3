"""The default method: cells from the nuclei of several targets, improved round by round.

Rounds of warping and matching to the nuclei of a first target bring all specimens into one frame.
There the cells of each further target are found, and the solutions are fused, region by region. In
the last rounds cells that are easily confused are split again.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from eutely.align.target import choose_targets
from eutely.align.warp import warped_to_mean
from eutely.cells import Cells
from eutely.estimate import robust_gaussians
from eutely.features import cell_means
from eutely.find.found import Found, Labels
from eutely.find.refine.fuse import cohort_rates, from_target, fuse
from eutely.find.refine.grow import settled
from eutely.find.refine.resplit import resplit
from eutely.find.refine.rounds import joint_round, linear_round, nuclei_as_cells
from eutely.frame import Frame
from eutely.steps import Context, Run, step

log = logging.getLogger("eutely")

LACKING = 0.01
"""Share of missing nuclei from which twice as many targets are taken: each lacks some cells, and
those that all of them lack are hard to find. The same where specimens show parts of the body."""


class Improved(NamedTuple):
    """Cells after a step, and a note on what it changed."""

    cells: Cells
    note: str


def find(run: Run, frame: Frame, labels: Labels = ()) -> Found:
    """Find the cells that all specimens share, without any name."""
    del labels
    settings = run.config.refine
    log.info("features: %s", ", ".join(frame.features) or "none")
    first, *others = run(targets, frame)
    cells = run(first_target, frame, first)
    if cohort_rates(cells).missing < LACKING and not frame.parts:
        others = others[: settings.targets - 1]
    total = 1 + len(others) + settings.joint_rounds
    run.progress("finding cells", 1, total, "")
    for number, other in enumerate(others):
        cells, note = run(another_target, cells, other)
        log.info("target %d: %s", number + 2, note)
        run.progress("finding cells", number + 2, total, note)
    for number in range(settings.joint_rounds):
        cells, note = run(last_round, cells, number)
        log.info("round %d: %s", number + 1, note)
        run.progress("finding cells", 2 + len(others) + number, total, note)
    return Found(warped_to_mean(cells, run.config.estimate))


@step("seed", "refine.targets")
def targets(context: Context, frame: Frame) -> tuple[int, ...]:
    """Choose the specimens whose nuclei are the first cells, one after the other.

    Twice as many as set: the second half counts only where nuclei are missing.
    """
    settings = context.settings
    count = 2 * settings.refine.targets
    return tuple(choose_targets(frame, count, context.executor, seed=settings.seed))


@step("refine", "estimate")
def first_target(context: Context, frame: Frame, target: int) -> Cells:
    """Settle poses and warps by matching with a target, then with the mean, cell by cell."""
    settings, estimate = context.settings.refine, context.settings.estimate
    specimens, body = frame.specimens, frame.body
    first = specimens[target].poses[0]
    posed = tuple(specimen.poses[0] for specimen in specimens)
    cells = Cells(posed, posed, (), frame.scores, body, frame.parts)
    means = nuclei_as_cells(first, body.spacing), np.nan_to_num(specimens[target].scores)
    context.progress("first target", 0, settings.linear_rounds + 1, "")
    for number in range(settings.linear_rounds):
        cells = linear_round(cells, specimens, means, estimate, context.executor)
        if number:
            # Two rounds settle the poses.
            specimens = tuple(
                replace(specimen, poses=(chosen,))
                for chosen, specimen in zip(cells.posed, specimens, strict=True)
            )
        cells = settled(cells, settings, estimate)
        means = robust_gaussians(cells.places(), estimate), cell_means(cells.cell_scores())
        log.info("alignment %d of %d", number + 1, settings.linear_rounds)
        context.progress("first target", number + 1, settings.linear_rounds + 1, "")
    if settings.joint_rounds:
        parts = min(settings.folds, len(cells))
        cells, _ = joint_round(cells, estimate, context.executor, parts=parts, afresh=True)
    return settled(cells, settings, estimate)


@step("refine", "estimate")
def another_target(context: Context, cells: Cells, target: int) -> Improved:
    """Find cells from another target, and take its better regions."""
    settings, estimate = context.settings.refine, context.settings.estimate
    executor, parts = context.executor, min(settings.folds, len(cells))
    second = settled(from_target(cells, target, estimate, executor), settings, estimate)
    for _ in range(settings.target_rounds):
        second, _ = joint_round(second, estimate, executor, parts=parts, afresh=False)
        second = settled(second, settings, estimate)
    fused, taken = fuse(cells, second, estimate, executor, parts=parts)
    note = f"another target is better in {taken} regions"
    return Improved(settled(fused, settings, estimate), note)


@step("refine", "estimate")
def last_round(context: Context, cells: Cells, number: int) -> Improved:
    """Split confusable cells again, but in the first and last round, and match all specimens."""
    settings, estimate = context.settings.refine, context.settings.estimate
    executor, parts = context.executor, min(settings.folds, len(cells))
    changed = 0
    if 0 < number < settings.joint_rounds - 1:
        cells, changed = resplit(cells, estimate, executor, seed=number)
    cells, cost = joint_round(cells, estimate, executor, parts=parts, afresh=False)
    note = f"cost {cost:.1f}, {changed} groups of confusable cells split again"
    return Improved(settled(cells, settings, estimate), note)
