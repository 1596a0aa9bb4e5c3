import numpy as np
import pytest

from eutely import simulate
from eutely.simulation.segmentation import Flaws, Nuclei, segmented


def cohort(**flaws):
    return simulate(8, 300, seed=1, **flaws)


def pair(gap):
    """Return two unit balls, ``gap`` apart along x; the second is twice as large."""
    return Nuclei(
        ["small", "large"],
        np.array([[0.0, 0, 0], [gap, 0, 0]]),
        np.array([[1.0, 1, 1], [2, 2, 2]]),
        np.tile(np.eye(3), (2, 1, 1)),
    )


def test_missing_rate_is_honoured():
    share = np.mean([len(worm) for worm in cohort(missing=0.2)]) / 300
    assert share == pytest.approx(0.8, abs=0.03)


def test_spurious_nuclei_have_no_name():
    worms = cohort(spurious=1.1)
    assert np.mean([worm.names.count("") for worm in worms]) / 300 == pytest.approx(1.1, abs=0.03)
    assert all(len(set(worm.names) - {""}) == 300 for worm in worms)


def test_one_half_of_a_split_nucleus_keeps_its_name():
    worms = cohort(split=0.2)
    assert np.mean([worm.names.count("") for worm in worms]) / 300 == pytest.approx(0.2, abs=0.03)
    assert all(len(set(worm.names) - {""}) == 300 for worm in worms)


def test_merged_nuclei_lose_one_name_of_two():
    worms = cohort(merged=0.1)
    assert np.mean([len(worm) for worm in worms]) / 300 == pytest.approx(0.91, abs=0.03)
    assert all(len(set(worm.names)) == len(worm) and "" not in worm.names for worm in worms)


def test_names_are_never_given_twice():
    for worm in cohort(missing=0.1, spurious=0.1, split=0.2, merged=0.2):
        named = [name for name in worm.names if name]
        assert len(named) == len(set(named))


def test_moments_of_a_merged_pair():
    seen = segmented(pair(3.0), Flaws(merged=1.0), np.random.default_rng(0))
    assert seen.names == ["large"]
    assert seen.centroids[0] == pytest.approx([3 * 8 / 9, 0, 0])
    across = np.sqrt((1 + 8 * 4) / 9)
    assert seen.radii[0, 1:] == pytest.approx([across, across])
    assert seen.radii[0, 0] == pytest.approx(np.sqrt(across**2 + 5 * 9 * 8 / 81))
    assert np.abs(seen.axes[0, 0]) == pytest.approx([1, 0, 0])


def test_halves_of_a_split_nucleus_have_the_moments_of_the_whole():
    ball = pair(100.0).take(np.array([1]))
    seen = segmented(ball, Flaws(split=1.0), np.random.default_rng(0))
    assert sorted(seen.names) == ["", "large"]
    assert seen.centroids.mean(axis=0) == pytest.approx([100, 0, 0])
    spread = np.einsum("nac,na,nad->ncd", seen.axes, seen.radii**2 / 5, seen.axes).mean(axis=0)
    spread += np.cov(seen.centroids.T, bias=True)
    assert spread == pytest.approx(np.eye(3) * 4 / 5)


def test_size_of_measurement_errors():
    clean, shifted = cohort(), cohort(shift=2.0, radius_noise=0.1)
    wrong, ratio = [], []
    for true, noisy in zip(clean, shifted, strict=True):
        assert true.names == noisy.names
        wrong.append(noisy.centroids - true.centroids)
        ratio.append(np.log(noisy.radii.prod(axis=1) / true.radii.prod(axis=1)))
    assert np.std(wrong) == pytest.approx(2.0, rel=0.05)
    assert np.std(ratio) == pytest.approx(0.1 * np.sqrt(3), rel=0.05)
    assert all((np.diff(worm.radii, axis=1) <= 0).all() for worm in shifted)


def test_more_errors_of_one_kind_leave_the_others_where_they_were():
    some = cohort(missing=0.1)[0]
    more = cohort(missing=0.1, spurious=0.5, split=0.3)[0]
    assert set(some.names) == set(more.names) - {""}
