"""The stage of a supervised build that learns the weights of the atlas's costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.config import Config
from eutely.execute import Executor
from eutely.record import Record, digest
from eutely.store.folder import RunFolder
from eutely.tasks.estimator import Estimator
from eutely.frame import Framed
from eutely.find.refine import Cohort
from eutely.find.named import learn_weights
from eutely.progress import Watch

VERSION = 1
"""Of this stage; raised when its results change."""


def weights_by_name(
    cohort: Cohort,
    frame: Framed,
    settings: Config,
    run: RunFolder,
    executor: Executor,
    watch: Watch,
) -> NDArray[np.float64]:
    """Return the weights with which most nuclei of the cohort find their cells; trials are kept."""
    trials = settings.learn.trials_offsets
    parts = settings.part("seed", "costs", "atlas", "estimate")
    arrays = digest([cohort.places(), cohort.labels()])
    key = [VERSION, frame.key, arrays, parts, trials]

    def told(stage: str, done: int, total: int, lowest: float) -> None:
        watch(f"learning {stage}", done, total, f"{-lowest:.0f} nuclei right")

    def compute() -> NDArray[np.float64]:
        return learn_weights(
            Estimator(cohort, frame, settings, np.ones(3)).atlas(),
            cohort.warped,
            frame.radii,
            cohort.nuclei,
            trials=trials,
            executor=executor,
            seed=settings.seed,
            journal=run.journal("weights", key),
            progress=told,
        )

    return run.stage(
        "weights",
        key,
        compute,
        lambda found: Record({"weights": found}),
        lambda record: record.arrays["weights"],
    )
