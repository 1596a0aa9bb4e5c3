"""Which specimens were imaged alike, by their series or by the grid of their voxels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.origin import groups_of, origin_of
from eutely.specimen import Specimen
from toy_animals import QUICK, lopsided, mirrored

STEPS = np.array([0.27, 0.27, 1.5])


def points(seed: int, count: int = 150) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, [130.0, 40.0, 30.0], (count, 3))


def on_grid(seed: int, steps: np.ndarray = STEPS, **further: str) -> Specimen:
    whole = (points(seed) / steps).round() * steps
    return Specimen.from_arrays(f"s{seed}", whole.round(4), **{"unit": "um", **further})


def test_the_grid_of_voxels_is_an_origin() -> None:
    found = {origin_of(on_grid(seed)) for seed in range(5)}
    assert found == {"voxels of 0.27 x 0.27 x 1.5 um"}
    assert origin_of(on_grid(0, np.array([0.54] * 3))) == "voxels of 0.54 x 0.54 x 0.54 um"


def test_a_series_that_is_given_comes_first() -> None:
    assert origin_of(on_grid(0, series="Tuesday")) == "Tuesday"


@pytest.mark.parametrize("decimals", [2, 8])
def test_centroids_between_voxels_show_no_origin(decimals: int) -> None:
    anywhere = Specimen.from_arrays("s", points(1).round(decimals), unit="um")
    assert origin_of(anywhere) == ""


def test_voxels_of_unknown_size_show_no_origin() -> None:
    assert origin_of(on_grid(0, np.ones(3), unit="voxel")) == ""
    assert origin_of(on_grid(0, np.ones(3), unit="")) == ""


def test_few_nuclei_or_one_plane_show_no_origin() -> None:
    assert origin_of(on_grid(0).take(np.arange(10))) == ""
    flat = on_grid(0)
    assert origin_of(replace(flat, centroids=flat.centroids * [1, 1, 0])) == ""


def test_groups_hold_every_specimen_once() -> None:
    assert groups_of(["b", "", "a", "b"]) == [[1], [2], [0, 3]]
    assert groups_of([]) == []


def in_series(specimen: Specimen, series: str) -> Specimen:
    return replace(specimen, series=series)


def test_an_atlas_remembers_the_handedness_of_each_origin() -> None:
    """Files of one microscope are mirrored: a build says so, and the next specimen profits."""
    animals = [
        lopsided(one)
        for one in eutely.simulate(specimens=7, cells=120, variation=0.5, pose="none", seed=2)
    ]
    here = [in_series(one, "ours") for one in animals[:4]]
    there = [in_series(mirrored(one), "theirs") for one in animals[4:6]]
    unnamed = [one.without_names() for one in (*here, *there)]
    atlas = eutely.build(unnamed, config=QUICK, workers=1).atlas
    assert atlas.origins == ("ours", "theirs")
    assert atlas.hands_of("ours") == (4, 0)
    assert atlas.hands_of("theirs") == (0, 2)
    assert atlas.hands_of("elsewhere") == (0, 0)
    new = in_series(mirrored(animals[6]), "theirs").without_names()
    [annotation] = eutely.annotate(atlas, [new], workers=1)
    assert annotation.mirrored
