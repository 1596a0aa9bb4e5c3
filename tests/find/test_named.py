"""Supplement D: the base that others are fitted to, and weights that make most nuclei right."""

import numpy as np
import pytest

import eutely
from eutely.config import Config, resolve
from eutely.config.model import Estimate, Learn
from eutely.execute import open_executor
from eutely.find.named import base_maps, find, maps_to
from toy_frames import frame_of, in_canonical_order, run_in_memory

TRIALS = Learn(trials_linear=0, trials_sparsity=0, trials_offsets=4)


def places(noisy: int | None = None) -> np.ndarray:
    """Return 6 specimens of 30 cells, affine images of each other; one may be noisy."""
    random = np.random.default_rng(3)
    cells = random.normal(size=(30, 3)) * [50, 10, 8]
    specimens = []
    for number in range(6):
        points = cells @ (np.eye(3) + random.normal(0, 0.1, (3, 3))).T + random.normal(size=3)
        specimens.append(points + random.normal(0, 3.0 if number == noisy else 0.1, points.shape))
    return np.array(specimens)


def test_maps_bring_cells_to_those_of_the_base() -> None:
    given = places()
    given[1, 5] = np.nan
    for points, (matrix, shift) in zip(given, maps_to(given, 2), strict=True):
        known = np.isfinite(points[:, 0])
        assert np.abs(points[known] @ matrix.T + shift - given[2, known]).max() < 1


@pytest.mark.parametrize("noisy", [0, 4])
def test_a_noisy_specimen_is_not_the_base(noisy: int) -> None:
    base, maps = base_maps(places(noisy), Estimate())
    assert base != noisy
    np.testing.assert_array_equal(maps[base][0], np.eye(3))


def test_true_correspondence_is_what_specimens_are_aligned_by() -> None:
    cohort = in_canonical_order(eutely.simulate(specimens=4, cells=40, variation=0.5))
    labels = tuple(one.names or () for one in cohort)

    def spread(values: np.ndarray) -> float:
        return float(np.nanstd(values, axis=0).mean())

    with open_executor(1) as executor:
        run = run_in_memory(Config(method="named"), executor)
        warped, mapped = (
            find(run, frame_of(cohort, smooth=smooth), labels).cells for smooth in (True, False)
        )
    assert spread(mapped.places()) < spread(mapped.places(posed=True))
    assert spread(warped.places()) < spread(mapped.places())


@pytest.mark.parametrize("warp", [True, False])
def test_specimens_are_warped_only_where_the_settings_say_so(warp: bool) -> None:
    """Without a warp every specimen of the atlas is an affine image of its pose."""
    train = eutely.simulate(specimens=4, cells=40, variation=1.0)
    config = resolve(overrides={"realign.warp": warp, "refine.folds": 2})
    labels = tuple(one.names or () for one in in_canonical_order(train))
    with open_executor(1) as executor:
        frame = frame_of(train, smooth=warp)
        cells = find(run_in_memory(config, executor), frame, labels).cells
    errors = []
    for posed, moved in zip(cells.posed, cells.warped, strict=True):
        basis = np.concatenate([posed, np.ones((len(posed), 1))], axis=1)
        errors.append(np.abs(basis @ np.linalg.lstsq(basis, moved)[0] - moved).max())
    assert (max(errors) < 1e-6) == (not warp)
    assert eutely.build(train, config=config, supervised=True, workers=1).atlas.warp == warp


def test_a_supervised_build_of_the_preset_paper_learns_weights() -> None:
    train = eutely.simulate(specimens=5, cells=40, variation=0.5)
    reported: list[str] = []
    built = eutely.build(
        train,
        config=offsets(4),
        supervised=True,
        workers=1,
        progress=lambda what, done, total, note: reported.append(what),
    )
    assert built.atlas.model == "offsets"
    assert reported.count("learning weights") == 4
    assert np.linalg.norm(built.atlas.weights) == pytest.approx(np.sqrt(3))
    assert eutely.evaluate(built.atlas, train, workers=1).mean > 0.95
    unlearned = eutely.build(train, config=offsets(0), supervised=True, workers=1)
    np.testing.assert_array_equal(unlearned.atlas.weights, np.ones(3))


def offsets(trials: int) -> Config:
    """Return the preset of the paper with so many trials of weights."""
    learn = TRIALS.model_copy(update={"trials_offsets": trials})
    return resolve(preset="paper").model_copy(update={"learn": learn})


def test_weights_are_no_worse_than_equal_ones() -> None:
    cohort = in_canonical_order(eutely.simulate(specimens=4, cells=40, variation=1.0))
    labels = tuple(one.names or () for one in cohort)
    notes: list[tuple[str, str]] = []
    with open_executor(1) as executor:
        run = run_in_memory(offsets(5), executor)
        run.progress = lambda what, done, total, note: notes.append((what, note))
        found = find(run, frame_of(cohort, smooth=False), labels)
    right = [int(note.split()[0]) for what, note in notes if what == "learning weights"]
    assert right == sorted(right)
    assert len(right) == 5
    assert found.weights is not None
    assert found.weights.shape == (3,)
