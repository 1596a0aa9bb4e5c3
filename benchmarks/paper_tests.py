"""Table 3 of the paper and the distribution over test worms: without names, and with names."""

from typing import Any

import numpy as np

from eutely.atlas import Atlas
from eutely.find.named import all_names, named_cells
from eutely.find.named import weights as learned_weights
from figures import Figures
from laboratory import Lab, detailed, matched_with
from paper_models import DENSE, NO_EDGES

WEIGHTS = np.array([0.48, 0.34, 0.81])
"""Weights of the supervised atlas that the paper learned with names."""

TRIALS = 40
"""Trials to learn these weights here; each matches all training worms."""


def test(lab: Lab) -> None:
    """The test worms by atlases of the 100 training worms."""
    cohort = lab.cohort

    def unsupervised() -> Atlas:
        return lab.atlas(lab.found, lab.weights)

    def supervised(weights: Any, **change: Any) -> Figures:
        cells = lab.run(named_cells, cohort.frame, cohort.labels)
        if weights is None:
            run = lab.with_settings("learn", trials_offsets=TRIALS)
            weights = run(learned_weights, cohort.frame, cells)
        weights = weights * np.sqrt(3) / np.linalg.norm(weights)
        names = all_names(cohort.labels)
        atlas = lab.atlas(cells, weights, cohort, names, **change)
        return tested(lab, atlas) | {"weights": weights.round(3).tolist()}

    lab.rows(
        "test",
        {
            "unsupervised": lambda: detailed(matched_with(unsupervised(), lab.test_aligned)),
            "unsupervised, by `eutely annotate`": lambda: tested(lab, unsupervised()),
            "supervised": lambda: supervised(None),
            "supervised, the paper's weights": lambda: supervised(WEIGHTS),
            "supervised, linear": lambda: supervised(np.array([1.0, 0, 0]), **NO_EDGES, **DENSE),
        },
    )


def tested(lab: Lab, atlas: Atlas) -> Figures:
    """Return the accuracy on the test worms, in the mean and of each."""
    return detailed(lab.evaluated(atlas, lab.test))
