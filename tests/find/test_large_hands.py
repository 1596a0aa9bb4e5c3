"""Mirror images among bodies of more than 700 cells, which are fitted to the end to be compared."""

from dataclasses import replace

import numpy as np
import pytest

from eutely import simulate
from eutely.config.model import Estimate
from eutely.execute import open_executor
from eutely.find.hands import mirror_images, most_are
from eutely.fit.soft import LARGE
from eutely.frame import Frame
from eutely.pose import anonymous, framed, oriented
from eutely.simulation.plan import body_plan

CELLS = 740
MIRRORED = np.array([False, True, False, True, False])


def frame_of(asymmetry: float, mirrored: np.ndarray) -> Frame:
    """Return a cohort whose cells lie so many spacings off their mirror images, some mirrored."""
    plan = body_plan(CELLS)
    shift = np.random.default_rng(9).standard_normal(plan.centroids.shape)
    plan = replace(plan, centroids=plan.centroids + asymmetry * plan.spacing * shift)
    cohort = [
        replace(one, centroids=one.centroids * [1.0, 1.0, -1.0]) if hand else one
        for one, hand in zip(simulate(len(mirrored), cells=plan, seed=2), mirrored, strict=True)
    ]
    return framed(
        [oriented(anonymous(one, one.name)) for one in cohort], (), scale=True, smooth=True
    )


@pytest.mark.parametrize(
    ("asymmetry", "mirrored"), [(0.3, MIRRORED), (0.3, MIRRORED & False), (0.0, MIRRORED & False)]
)
def test_mirror_images_of_large_bodies_are_found_and_no_others(
    asymmetry: float, mirrored: np.ndarray
) -> None:
    frame = frame_of(asymmetry, mirrored)
    assert len(frame.specimens[0]) > LARGE
    with open_executor(2) as executor:
        found = mirror_images(frame, Estimate(), executor)
    # Relative to the handedness of most: which specimen is the first does not matter.
    assert (found ^ most_are(found) == mirrored).all()
