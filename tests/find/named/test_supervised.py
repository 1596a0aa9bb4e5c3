"""Supplement D: the base that others are fitted to, and weights that make most nuclei right."""

import numpy as np
import pytest

import eutely
from eutely.annotation import posed
from eutely.config import Config, resolve
from eutely.config.model import Estimate, Learn, Realign
from eutely.execute import open_executor
from eutely.pose import orient
from eutely.find.named import cells_by_name, learn_weights
from eutely.find.named.base import base_maps, maps_to

TRIALS = Learn(trials_linear=0, trials_sparsity=0, trials_offsets=4)


def places(noisy: int | None = None) -> np.ndarray:
    """Return 6 specimens of 30 cells, affine images of each other; one may be noisy."""
    random = np.random.default_rng(3)
    cells = random.normal(size=(30, 3)) * [50, 10, 8]
    found = []
    for number in range(6):
        own = cells @ (np.eye(3) + random.normal(0, 0.1, (3, 3))).T + random.normal(size=3)
        found.append(own + random.normal(0, 3.0 if number == noisy else 0.1, own.shape))
    return np.array(found)


def test_maps_bring_cells_to_those_of_the_base() -> None:
    given = places()
    given[1, 5] = np.nan
    for own, (matrix, shift) in zip(given, maps_to(given, 2), strict=True):
        known = np.isfinite(own[:, 0])
        assert np.abs(own[known] @ matrix.T + shift - given[2, known]).max() < 1


@pytest.mark.parametrize("noisy", [0, 4])
def test_a_noisy_specimen_is_not_the_base(noisy: int) -> None:
    base, maps = base_maps(places(noisy), Estimate())
    assert base != noisy
    np.testing.assert_array_equal(maps[base][0], np.eye(3))


def test_true_correspondence_is_what_specimens_are_aligned_by() -> None:
    cohort = eutely.simulate(specimens=4, cells=40, variation=0.5)
    size = np.array(orient(cohort[0])[0].size)
    poses = [posed(one, size) for one in cohort]
    affine = Config(method="learn", realign=Realign(warp=False))
    found = cells_by_name(cohort, poses, size, 8.0, affine)
    warped = cells_by_name(cohort, poses, size, 8.0, Config(method="learn"))

    def spread(one: np.ndarray) -> float:
        return float(np.nanstd(one, axis=0).mean())

    assert spread(found.places()) < spread(found.places(posed=True))
    assert spread(warped.places()) < spread(found.places())


def test_a_supervised_build_in_the_paper_s_way_learns_weights() -> None:
    train = eutely.simulate(specimens=5, cells=40, variation=0.5)
    config = offsets(TRIALS)
    told: list[str] = []
    built = eutely.build(
        train,
        config=config,
        supervised=True,
        workers=1,
        watch=lambda what, done, total, note: told.append(what),
    )
    assert built.atlas.model == "offsets"
    assert told.count("learning weights") == 4
    assert np.linalg.norm(built.atlas.weights) == pytest.approx(np.sqrt(3))
    assert eutely.evaluate(built.atlas, train, workers=1).mean > 0.95
    equal = offsets(replace_trials(0))
    unlearned = eutely.build(train, config=equal, supervised=True, workers=1)
    np.testing.assert_array_equal(unlearned.atlas.weights, np.ones(3))


def offsets(learn: Learn) -> Config:
    """Return the paper preset with the paper's own model of the atlas."""
    config = resolve(preset="paper", overrides={"atlas.model": "offsets"})
    return config.model_copy(update={"learn": learn})


def replace_trials(count: int) -> Learn:
    return TRIALS.model_copy(update={"trials_offsets": count})


def test_weights_are_no_worse_than_equal_ones() -> None:
    train = eutely.simulate(specimens=4, cells=40, variation=1.0)
    config = offsets(replace_trials(0))
    built = eutely.build(train, config=config, supervised=True, workers=1)
    frames = [fit.places for fit in built.fits]
    radii = [one.radii for one in built.specimens]
    truth = [np.argsort(own).astype(np.int32) for own in built.cells]
    noted: list[float] = []
    with open_executor(1) as executor:
        found = learn_weights(
            built.atlas,
            frames,
            radii,
            truth,
            trials=5,
            executor=executor,
            progress=lambda stage, done, total, lowest: noted.append(lowest),
        )
    assert noted == sorted(noted, reverse=True)
    assert len(noted) == 5
    assert found.shape == (3,)
