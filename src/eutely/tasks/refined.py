"""The default way to the cells, each step a stage of the run folder."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import numpy as np

from eutely.config import Config
from eutely.execute import Executor
from eutely.record import Record, digest
from eutely.store.folder import RunFolder
from eutely.frame import Framed
from eutely.tasks.records import cohort_of, cohort_saved, same
from eutely.find.refine import Cohort, choose_targets, refine
from eutely.find.refine.rounds import joint_round
from eutely.progress import Watch

log = logging.getLogger("eutely")

VERSION = 4
"""Of these stages; raised when their results change."""


def improved(
    cohort: Cohort, frame: Framed, settings: Config, run: RunFolder, executor: Executor
) -> Cohort:
    """Match all specimens of the method ``learn`` anew, to the atlas of others, round by round."""
    rounds = settings.atlas.rounds if settings.realign.warp else 0
    for number in range(rounds):
        key = [
            VERSION,
            frame.key,
            number,
            settings.part("refine", "estimate"),
            digest([cohort.warped, cohort.nuclei]),
        ]
        cohort = run.stage(
            "round", key, partial(_round, cohort, settings, executor), cohort_saved, cohort_of
        )
    return cohort


def _round(cohort: Cohort, settings: Config, executor: Executor) -> Cohort:
    folds = min(settings.refine.folds, len(cohort))
    found, cost = joint_round(cohort, settings.estimate, executor, folds=folds, afresh=False)
    log.info("cost of specimens that were held out: %.1f", cost)
    return found.rewarped(settings.estimate)


def find(
    frame: Framed, settings: Config, run: RunFolder, executor: Executor, watch: Watch
) -> Cohort:
    """Find the cells from the nuclei of several targets, round by round."""
    smooth = settings.realign.warp
    key = digest([VERSION, frame.key, smooth, settings.part("seed", "refine", "estimate")])

    def targets() -> Record:
        chosen = choose_targets(
            frame.poses,
            2 * settings.refine.targets,
            spacing=frame.spacing,
            executor=executor,
            seed=settings.seed,
        )
        return Record({"targets": np.array(chosen)})

    def keep(step: str, compute: Callable[[], Cohort]) -> Cohort:
        return run.stage(step.replace(" ", "-"), key, compute, cohort_saved, cohort_of)

    names, scores = frame.features(settings)
    log.info("features: %s", ", ".join(names) or "none")
    chosen = run.stage("targets", key, targets, same, same).arrays["targets"].tolist()
    among = ", ".join(frame.specimens[one].name for one in chosen)
    log.info("targets, as far as needed: %s", among)
    return refine(
        frame.poses,
        chosen,
        size=frame.size,
        spacing=frame.spacing,
        settings=settings.refine,
        estimate=settings.estimate,
        executor=executor,
        features=scores,
        smooth=smooth,
        keep=keep,
        watch=watch,
    )
