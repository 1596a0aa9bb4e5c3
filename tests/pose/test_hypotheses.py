import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from eutely import Specimen
from eutely.errors import SpecimenError
from eutely.pose import orient
from poses import roll


#        tail                 head
#     .    .    .   . . ........      y: dense side up
#      .      .    .  . ........      z: every nucleus off the midline has a partner at -z
def toy_worm(seed: int, pairs: int = 100) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shares = (np.arange(pairs) + 0.5) / pairs
    x = 300 * rng.permutation(shares) ** 0.4
    y = 40 * rng.permutation(shares) ** 0.3
    z = rng.uniform(3, 15, pairs)
    half = np.column_stack([x, y, z])
    return np.vstack([half, half * [1, 1, -1]])


def specimen(points, **more) -> Specimen:
    return Specimen.from_arrays("toy", points, **more)


def turned(seed: int) -> np.ndarray:
    return Rotation.random(rng=np.random.default_rng(seed)).as_matrix()


def angle(rotation: np.ndarray) -> float:
    return float(np.degrees(Rotation.from_matrix(rotation).magnitude()))


seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_the_first_pose_is_the_canonical_one(seed):
    worm = toy_worm(seed)
    turn = turned(seed)
    pose = orient(specimen(worm @ turn.T + 500))[0]
    error = pose.rotation @ turn
    assert error[0, 0] > np.cos(np.radians(5))
    assert abs(roll(error)) < 5
    assert pose.centre == pytest.approx(turn @ worm.mean(axis=0) + 500)
    assert pose.size[0] == pytest.approx(worm[:, 0].std(), rel=0.01)


@given(seeds, seeds, st.floats(0.01, 100))
def test_poses_turn_shift_and_grow_with_the_specimen(seed, other, scale):
    turn, shift = turned(other), turned(seed)[0] * 100
    # In a perfectly symmetric body hypotheses across the symmetry plane would tie.
    worm = toy_worm(seed, 30) + np.random.default_rng(seed).normal(0, 1, (60, 3))
    still, moved = orient(specimen(worm)), orient(specimen(scale * (worm @ turn.T + shift)))
    assert len(still) == len(moved)
    for pose in still:
        alike = [
            candidate
            for candidate in moved
            if angle(candidate.rotation @ turn @ pose.rotation.T) < 1e-3
        ]
        assert len(alike) == 1
        assert alike[0].score == pytest.approx(pose.score, abs=1e-6)
        assert alike[0].size == pytest.approx(np.multiply(scale, pose.size))
        assert alike[0].centre == pytest.approx(scale * (turn @ pose.centre + shift))


@given(seeds)
def test_order_ids_names_and_radii_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    worm = toy_worm(seed, 20)
    order = rng.permutation(len(worm))
    other = specimen(
        worm[order], ids=order + 7, radii=rng.random(len(worm)), names=[str(i) for i in order]
    )
    for first, second in zip(orient(specimen(worm)), orient(other), strict=True):
        assert np.array_equal(first.rotation, second.rotation)
        assert np.array_equal(first.centre, second.centre)
        assert (first.size, first.score) == (second.size, second.score)


def test_the_list_holds_every_ambiguity_and_no_mirror_image():
    poses = orient(specimen(toy_worm(0)))
    assert len(poses) == 8
    assert [pose.score for pose in poses] == sorted((pose.score for pose in poses), reverse=True)
    for pose in poses:
        assert pose.rotation @ pose.rotation.T == pytest.approx(np.eye(3))
        assert np.linalg.det(pose.rotation) == pytest.approx(1)
    first = poses[0].rotation
    ahead = [pose.rotation @ first.T for pose in poses if (pose.rotation @ first.T)[0, 0] > 0]
    rolls = np.sort(np.abs([roll(pose) for pose in ahead]))
    assert rolls == pytest.approx([0, 90, 90, 180], abs=45)
    assert rolls[[0, 3]] == pytest.approx([0, 180])
    assert len(ahead) == 4
    # Half a turn comes second: the symmetry plane is sure here, the dense side less so.
    assert abs(roll(poses[1].rotation @ first.T)) == pytest.approx(180)


def test_mirror_images_come_only_when_asked_for():
    worm = specimen(toy_worm(0))
    proper, both = orient(worm), orient(worm, mirrored=True)
    signs = [round(np.linalg.det(pose.rotation)) for pose in both]
    assert signs == [1, -1] * 8
    for pose, same, mirror in zip(proper, both[::2], both[1::2], strict=True):
        assert np.array_equal(pose.rotation, same.rotation)
        assert mirror.score == pose.score
        assert mirror.rotation == pytest.approx(np.diag([1, 1, -1]) @ pose.rotation)


@pytest.mark.parametrize("seed", range(5))
def test_a_bent_twisted_and_badly_segmented_body(seed):
    rng = np.random.default_rng(seed)
    worm = toy_worm(seed, 200)
    worm -= worm.mean(axis=0)
    along = worm[:, 0] / 150
    twist = Rotation.from_euler("x", 12 * along[:, None], degrees=True)
    bent = twist.apply(worm) + np.column_stack([0 * along, 8 * along**2, -10 * along**2])
    kept = bent[rng.random(len(bent)) > 0.09]
    kept += rng.normal(0, 1, kept.shape)
    debris = rng.uniform(kept.min(axis=0), kept.max(axis=0), (20, 3))
    strays = rng.normal(0, 50_000, (3, 3))
    pose = orient(specimen(np.vstack([kept, debris, strays])))[0]
    assert pose.rotation[0, 0] > 0.9
    assert abs(roll(pose.rotation)) < 10
    assert pose.size[0] == pytest.approx(worm[:, 0].std(), rel=0.1)


def test_a_round_body_gets_hypotheses_about_all_axes():
    ball = np.random.default_rng(0).normal(0, 1, (60, 3))
    poses = orient(specimen(ball))
    assert len(poses) == 24
    bodies = np.array([pose.rotation[0] for pose in poses])
    assert np.linalg.matrix_rank(bodies, tol=1e-6) == 3


@given(seeds)
def test_four_nuclei_have_poses(seed):
    poses = orient(specimen(np.random.default_rng(seed).normal(0, 1, (4, 3))))
    assert len(poses) % 8 == 0
    for pose in poses:
        assert np.isfinite(pose.score)
        assert np.linalg.det(pose.rotation) == pytest.approx(1)
        assert pose.rotation @ pose.rotation.T == pytest.approx(np.eye(3), abs=1e-9)


def test_a_flat_body_lies_in_a_symmetry_plane_or_across_one():
    flat = toy_worm(0) * [1, 1, 0] + np.array([0, 0, 9])
    for pose in orient(specimen(flat)):
        assert np.isfinite(pose.score)
        assert np.linalg.det(pose.rotation) == pytest.approx(1)


def test_segments_at_one_place_count_once():
    worm = toy_worm(0)
    heap = np.vstack([worm, np.tile(worm[:1], (50, 1))])
    clean, heaped = orient(specimen(worm))[0], orient(specimen(heap))[0]
    assert np.array_equal(clean.rotation, heaped.rotation)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.eye(3), "3 nuclei at 3 different places, but a pose needs at least 4"),
        (np.zeros((0, 3)), "0 nuclei"),
        (np.full((9, 3), 0.1), "9 nuclei at 1 different places"),
        (np.outer(np.arange(9.0), [1, 2, 3]) / 7 + 1000, "on one line"),
        (np.random.default_rng(1).normal(size=(9, 3)) * 1e-160, "check the unit"),
    ],
)
def test_bodies_without_a_pose_are_refused(points, words):
    with pytest.raises(SpecimenError, match=words):
        orient(specimen(points))


def test_a_clump_of_rejected_segments_does_not_stretch_the_body():
    """Segments that were put at one place, and shaken a little, are no end of the body."""
    worm = toy_worm(3)
    clump = [-150.0, 0.0, 0.0] + np.random.default_rng(0).normal(0, 0.3, (25, 3))
    clean, spoilt = orient(specimen(worm))[0], orient(specimen(np.vstack([worm, clump])))[0]
    assert spoilt.size == pytest.approx(clean.size, rel=0.01)
