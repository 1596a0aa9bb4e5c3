"""New specimens that are bent, or measured less exactly than those of the atlas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.evaluation import score
from poses import bent, random_motions


@pytest.fixture(scope="module")
def cohort() -> list[eutely.Specimen]:
    return eutely.simulate(specimens=9, cells=150, variation=0.7, pose="none")


@pytest.fixture(scope="module")
def atlas(cohort: list[eutely.Specimen]) -> Atlas:
    return eutely.build(cohort[:6], supervised=True, workers=1).atlas


def annotated(atlas: Atlas, specimen: eutely.Specimen) -> Annotation:
    return eutely.annotate(atlas, [specimen], workers=1)[0]


def right(atlas: Atlas, specimens: list[eutely.Specimen]) -> float:
    return eutely.evaluate(atlas, specimens, adapt=False, workers=1).mean


@pytest.mark.parametrize("degrees", [60.0, 200.0])
def test_a_bend_costs_no_names(atlas: Atlas, cohort: list[eutely.Specimen], degrees: float) -> None:
    new = cohort[6:]
    lying = [replace(one, centroids=bent(one.centroids, degrees)) for one in new]
    assert right(atlas, random_motions(lying, 2)) >= right(atlas, new) - 0.02


def test_errors_of_coordinates_lose_no_nuclei(atlas: Atlas, cohort: list[eutely.Specimen]) -> None:
    random = np.random.default_rng(5)
    for one in cohort[6:]:
        noisy = replace(one, centroids=one.centroids + random.normal(0, 4.0, (len(one), 3)))
        found = annotated(atlas, noisy)
        assert (found.cells >= 0).mean() > 0.98
        assert score(one, found.names).accuracy > 0.9
