"""Supplement D: the base that others are fitted to, and weights that make most nuclei right."""

import logging
from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.align.shared import harmonised, shared_maps
from eutely.config import Config, resolve
from eutely.config.model import Estimate, Learn
from eutely.errors import EutelyError
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


def test_shared_cells_undo_mirror_images_and_do_not_stretch_parts() -> None:
    given = places()
    expected = given.copy()
    given[[1, 4]] *= [1.0, 1.0, -1.0]
    given[2, expected[2, :, 0] < 0] = np.nan  # a front half
    maps = shared_maps(given)
    assert [fit is not None and bool(np.linalg.det(fit[0]) < 0) for fit in maps] == [
        False, True, False, False, True, False,
    ]  # fmt: skip
    moved = [points @ fit[0].T + fit[1] for points, fit in zip(given, maps, strict=True) if fit]
    apart = np.nanstd(moved, axis=0)
    assert apart.mean() < 1.0  # of a body 50 long; the ridge leaves some of the shear
    assert np.ptp(np.nanmean(moved, axis=0), axis=0) == pytest.approx(
        np.ptp(np.mean(expected, axis=0), axis=0), rel=0.2
    )


def test_a_specimen_that_shares_nothing_has_no_map() -> None:
    given = places()
    given[3, 3:] = np.nan
    assert [fit is None for fit in shared_maps(given)] == [False, False, False, True, False, False]


def test_a_named_build_takes_mirrored_and_partial_specimens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cohort = eutely.simulate(specimens=9, cells=60, variation=0.5, pose="none", seed=4)
    changed = []
    for number, one in enumerate(cohort[:8]):
        along = one.centroids[:, 0]
        shown = along > np.quantile(along, 0.4) if number in (2, 3) else along > -np.inf
        factors = [1.0, -1.0, 1.0] if number in (1, 5) else [1.0, 1.0, 1.0]
        changed.append(replace(one, centroids=one.centroids * factors).take(np.flatnonzero(shown)))
    with caplog.at_level(logging.INFO, logger="eutely"):
        built = eutely.build(changed, supervised=True, workers=1)
    assert [fit.mirrored for fit in built.fits] == [number in (1, 5) for number in range(8)]
    assert caplog.text.count(": mirrored") == 2
    assert built.outliers == {}
    whole = eutely.build(cohort[:8], supervised=True, workers=1).atlas
    new = cohort[8:]
    accuracies = [eutely.evaluate(one, new, workers=1).mean for one in (built.atlas, whole)]
    assert accuracies[0] >= accuracies[1] - 0.04
    np.testing.assert_allclose(built.atlas.size, whole.size, rtol=0.15)


def test_a_cohort_that_does_not_hang_together_is_one_line() -> None:
    first, second, other = eutely.simulate(specimens=3, cells=40, variation=0.5)
    other = replace(other, names=tuple(f"other {name}" for name in other.names or ()))
    with pytest.raises(EutelyError, match="does not hang together"):
        eutely.build([first, second, other], supervised=True, workers=1)


def test_scores_are_harmonised_over_microscopes() -> None:
    random = np.random.default_rng(2)
    cells = random.normal(size=(40, 3))
    nuclei = [np.arange(40, dtype=np.int32)] * 6
    points = [random.normal(size=(40, 3)) for _ in range(6)]
    scores = []
    for here in points:
        mixing = np.diag(random.uniform(0.5, 2, 3)) + random.normal(0, 0.15, (3, 3))
        gradient = random.normal(0, 0.3, (3, 3))
        scores.append(cells @ mixing + here @ gradient + random.normal(size=3))

    def information(values: object) -> float:
        table = np.array(values)
        between = table.mean(axis=0).var(axis=0)
        return float((between / table.var(axis=0).mean(axis=0)).min())

    assert information(harmonised(scores, nuclei, points)) > 5 * information(scores)
    empty = [np.zeros((40, 0))] * 6
    assert harmonised(empty, nuclei, points)[0].shape == (40, 0)
