import numpy as np
import pytest

from eutely import read
from eutely.pose import orient
from poses import best_rolls, consensus, errors, positions, random_motions, rotation_to


@pytest.fixture(scope="module")
def worms(data):
    return random_motions(read(data / "rapcat/train100") + read(data / "rapcat/test2"), seed=1)


@pytest.fixture(scope="module")
def poses(worms):
    return [orient(worm.without_names()) for worm in worms]


def test_real_worms_against_a_reference_worm(worms, poses):
    target = positions(worms[0])
    truths = [rotation_to(worm, target) for worm in worms]
    heads, rolls, _ = errors(poses, truths, frame=poses[0][0].rotation)
    assert len(worms) == 200
    assert heads[:, 0].all()
    two = best_rolls(heads, rolls, first=2)
    assert (two <= 15).mean() >= 0.98
    assert np.median(two) <= 5


def test_real_worms_against_their_consensus(worms, poses):
    mean = consensus(worms)
    truths = [rotation_to(worm, mean) for worm in worms]
    heads, rolls, tilts = errors(poses, truths)
    assert heads[:, 0].all()
    assert tilts[:, 0].max() < 2
    one = best_rolls(heads, rolls, first=1)
    assert np.median(one) < 1.5
    assert (one <= 15).all()


def test_real_embryos_are_told_apart_by_four_poses(data):
    embryos = random_motions(read(data / "epic" / "epic_350cell.csv"), seed=2)
    mean = consensus(embryos)
    heads, rolls, _ = errors(
        [orient(embryo.without_names()) for embryo in embryos],
        [rotation_to(embryo, mean) for embryo in embryos],
    )
    assert (best_rolls(heads, rolls, first=4) <= 15).mean() >= 0.98
