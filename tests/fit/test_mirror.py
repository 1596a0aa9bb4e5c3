"""Mirror images: how symmetric an atlas is, and which specimens of a series are mirrored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import eutely
from eutely.fit.hypothesis import CERTAIN, MIRRORED
from eutely.fit.match import Fit
from eutely.fit.mirror import (
    ASYMMETRIC,
    MIRROR,
    MIXED,
    UNRELATED,
    asymmetry,
    both_hands,
    mirror_images,
    mirror_log_odds,
    mirror_probabilities,
    unlike_most,
)
from eutely.fit.model import model_of_atlas
from eutely.fit.posterior import nucleus_cells
from eutely.fit.rates import Rates
from eutely.solver.softassign import Shares
from toy_animals import lopsided


def test_cells_of_both_sides_are_each_others_mirror_images() -> None:
    atlas = eutely.build(eutely.simulate(6, cells=60), supervised=True, workers=1).atlas
    images = mirror_images(model_of_atlas(atlas))
    other = {"L": "R", "R": "L"}
    names = [name[:-1] + other.get(name[-1], name[-1]) for name in atlas.names]
    found = [atlas.names[image] if image >= 0 else "" for image in images]
    assert np.mean([name == image for name, image in zip(names, found, strict=True)]) > 0.9
    assert (MIRROR * MIRROR == 1).all()
    assert MIRROR.prod() == -1


def test_only_an_atlas_with_unlike_sides_is_asymmetric() -> None:
    animals = eutely.simulate(8, cells=160, variation=0.5, pose="none", seed=2)
    like, unlike = (
        eutely.build(cohort, supervised=True, workers=1).atlas
        for cohort in ([replace(one, features={}) for one in animals], [*map(lopsided, animals)])
    )
    assert asymmetry(model_of_atlas(like), like.seen) < ASYMMETRIC
    assert asymmetry(model_of_atlas(unlike), unlike.seen) > ASYMMETRIC


def test_specimens_of_a_series_settle_their_handedness_together() -> None:
    def mirrored(*evidence: float) -> list[bool]:
        return (mirror_probabilities(np.array(evidence)) > 0.5).tolist()

    assert mirrored(CERTAIN, -0.3) == [True, True]
    assert mirrored(2.0, 1.5, -1.0) == [True, True, True]
    assert mirrored(0.5, -2.0) == [False, False]
    assert mirrored(0.3) == [False]  # as it is unless there is evidence
    assert mirrored(0.8) == [True]
    assert mirrored(CERTAIN, -CERTAIN, 1.0) == [True, False, True]  # not one series
    assert mirrored(*[3.0] * 9, -9.0) == [True] * 9 + [False]  # all but one
    assert mirrored() == []


def test_many_specimens_of_a_series_share_an_error_and_do_not_make_it_certain() -> None:
    few, many = (mirror_probabilities(np.full(count, 1.0)) for count in (2, 40))
    assert 0.5 < few[0] < many[0] < 0.95  # independent ones: 1 - 1e-17
    settled = mirror_probabilities(np.append(np.full(40, CERTAIN), 0.3))
    assert settled[-1] > 0.95  # what is certain has no error to share


def test_a_specimen_by_itself_has_its_odds_and_the_prior() -> None:
    odds = np.exp(1.3) * MIRRORED / (1 - MIRRORED)
    np.testing.assert_allclose(mirror_probabilities(np.array([1.3])), odds / (1 + odds), rtol=1e-3)


def test_specimens_of_the_atlas_witness_the_handedness_of_their_origin() -> None:
    doubtful = np.array([-0.5])
    alone, known, mixed = (
        mirror_probabilities(doubtful, counts)[0] for counts in ((0, 0), (0, 9), (5, 4))
    )
    assert alone < 0.5 < known
    assert alone - 0.1 < mixed < known  # a microscope of both handednesses tells little
    assert mirror_probabilities(np.array([-15.0]), (0, 9))[0] < 0.5  # evidence can be stronger


def test_a_build_prefers_no_handedness() -> None:
    np.testing.assert_allclose(mirror_log_odds(np.array([1.3])), [1.3], rtol=1e-3)
    odds = np.array([3.0, 2.0, -0.5])
    np.testing.assert_allclose(mirror_log_odds(-odds), -mirror_log_odds(odds), atol=1e-9)
    assert (mirror_log_odds(odds) > 0).all()


def test_one_specimen_unlike_most_is_told_by_its_evidence_and_by_how_related_all_are() -> None:
    others = np.array([-1.4, -1.6, -20.0, -0.8, -1.0, -1.1, -0.7])
    flat, hint, clear = (unlike_most(np.append(others, e), UNRELATED)[-1] for e in (-1.0, 2.3, 9.0))
    assert flat < 0.05 < hint < 0.5 < 0.95 < clear
    assert unlike_most(np.append(others, 2.3), MIXED)[-1] < hint
    # The reference itself is the odd one out.
    reference = unlike_most(np.array([-20.0, *[9.0] * 7]))
    assert reference[0] > 0.99
    assert (reference[1:] < 0.01).all()


def test_a_doubtful_hand_shares_each_nucleus_between_a_cell_and_its_mirror_image() -> None:
    points = np.arange(9.0).reshape(3, 3)
    shares = Shares(
        np.array([0, 1, 2, 3], np.int32), np.array([0, 1, 2], np.int32), np.array([0.9, 0.8, 0.7])
    )
    fit = Fit(points, points, np.zeros((3, 0)), np.arange(3, dtype=np.int32), 0.0,
              Rates(0.1, 0.1), shares=shares)  # fmt: skip
    images = np.array([1, 0, 2], np.int32)
    found = nucleus_cells(*both_hands(fit, images, 0.25))
    np.testing.assert_allclose(found.confidence, [0.75 * 0.9, 0.75 * 0.8, 0.7])
    assert found.other_cells[:, 0].tolist() == [1, 0, -1]  # the cell in the middle is its own image
    np.testing.assert_allclose(found.other_shares[:, 0], [0.25 * 0.9, 0.25 * 0.8, 0.0])
    lost = nucleus_cells(*both_hands(fit, np.array([-1, -1, 2], np.int32), 0.25))
    np.testing.assert_allclose(lost.confidence, found.confidence)
    assert both_hands(fit, images, 0.0) == ([fit], [1.0])
    assert both_hands(fit, None, 0.25) == ([fit], [1.0])
