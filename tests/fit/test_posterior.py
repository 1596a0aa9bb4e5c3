"""Where a specimen lies, and what its nuclei are: one distribution over all fits."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eutely
from eutely.annotation import Annotation
from eutely.costs.near import FREE, NOBODYS
from eutely.fit.evidence import PLACED, Weighed
from eutely.fit.hypothesis import Prior
from eutely.fit.match import Fit
from eutely.fit.model import model_of_atlas
from eutely.fit.posterior import CERTAIN, Posterior, Target, nucleus_cells, place
from eutely.fit.rates import Rates
from eutely.io.annotations import write_annotations
from eutely.solver.softassign import Rules, Shares, centres_of, soft_assign
from toy_bodies import CELLS, atlas_of_bodies, bodies, posed, right, turned


@pytest.fixture(scope="module")
def annotations() -> list[Annotation]:
    cohort = eutely.simulate(specimens=6, cells=60, seed=4, missing=0.05, spurious=0.05, shift=1.0)
    built = eutely.build(cohort, supervised=True, workers=1)
    new = eutely.simulate(3, cells=60, seed=9, missing=0.05, spurious=0.05, shift=1.0)
    return eutely.annotate(built.atlas, new, workers=1)


def test_probabilities_of_a_nucleus_sum_to_at_most_one(annotations: list[Annotation]) -> None:
    for annotation in annotations:
        total = [sum(share for _, share in others) for others in annotation.alternatives]
        assert (np.nan_to_num(annotation.confidence) + total <= 1 + 1e-9).all()
        assert (np.nan_to_num(annotation.confidence) >= 0).all()


def test_the_chosen_cell_is_the_likeliest_unless_another_nucleus_has_it(
    annotations: list[Annotation],
) -> None:
    for annotation in annotations:
        taken = set(annotation.cells[annotation.cells >= 0].tolist())
        for contested, others in zip(annotation.contested, annotation.alternatives, strict=True):
            if contested:
                assert others[0][0] in taken
        assert annotation.contested.mean() < 0.05


def a_fit(*cells: int, mirrored: bool = False, certainty: float = 1.0) -> Fit:
    """Return a fit of some nuclei to as many cells, the cell of each with this probability."""
    warped = POINTS * ([1.0, 1.0, -1.0] if mirrored else [1.0, 1.0, 1.0])
    nuclei = np.full(len(POINTS), -1, np.int32)
    for nucleus, cell in enumerate(cells):
        if cell >= 0:
            nuclei[cell] = nucleus
    seen = np.flatnonzero(nuclei >= 0)
    starts = np.searchsorted(seen, np.arange(len(nuclei) + 1))
    shares = Shares(starts, nuclei[seen], np.full(len(seen), certainty))
    scores = np.zeros((len(POINTS), 0))
    return Fit(warped, warped, scores, nuclei, 0.0, Rates(0.1, 0.1), shares=shares)


POINTS = np.concatenate([np.zeros((1, 3)), np.eye(3)])
"""Four nuclei of which the mirror image is none by a turn."""


def mixture(*fits: Fit, logs: list[float], mirrored_by: float = 0.5) -> Posterior:
    """Return the mixture of fits with such logarithms of their probabilities, fully trusted."""
    prior, sure = Prior.of(1.0, same=1.0), tuple(np.ones(len(POINTS)) for _ in fits)
    weighed = tuple(Weighed(fit, log, 1.0) for fit, log in zip(fits, logs, strict=True))
    return Posterior(POINTS, prior, weighed, sure, mirrored_by)


def test_what_other_fits_say_is_doubt_and_an_alternative() -> None:
    one, other = a_fit(0, 1, 2, 3), a_fit(0, 1, 3, 2, mirrored=True)
    nuclei = mixture(one, other, logs=[0.0, 5.0], mirrored_by=0.3).nucleus_cells()
    np.testing.assert_array_equal(nuclei.cells, [0, 1, 2, 3])
    np.testing.assert_allclose(nuclei.confidence, [1.0, 1.0, 0.7, 0.7])
    np.testing.assert_array_equal(nuclei.other_cells[:, 0], [-1, -1, 3, 2])
    np.testing.assert_allclose(nuclei.other_shares[:, 0], [0.0, 0.0, 0.3, 0.3])


def test_fits_of_one_handedness_weigh_by_their_probabilities() -> None:
    same = mixture(a_fit(0, 1, 2, 3), a_fit(1, 0, 2, 3), logs=[0.0, -2.0], mirrored_by=0.9)
    np.testing.assert_allclose(same.weights[0] / same.weights[1], np.exp(2.0))
    assert same.best == 0
    assert not same.mirrored
    assert same.mirror_odds == -CERTAIN


def test_handedness_weighs_by_what_is_known_of_it_and_not_by_its_number_of_fits() -> None:
    as_is, image = a_fit(0, 1, 2, 3), a_fit(0, 1, 3, 2, mirrored=True)
    worse = a_fit(1, 0, 2, 3)
    found = mixture(as_is, worse, image, logs=[3.0, 1.0, 0.0], mirrored_by=0.8)
    np.testing.assert_allclose(found.weights.sum(), 1.0)
    np.testing.assert_allclose(found.weights[2], 0.8)
    np.testing.assert_allclose(found.weights[0] / found.weights[1], np.exp(2.0))
    assert found.best == 2
    assert found.mirrored
    assert replace(found, mirrored_by=0.2).best == 0
    np.testing.assert_allclose(found.mirror_odds, -np.logaddexp(3.0, 1.0))


@given(
    weights=st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=4),
    certainty=st.floats(0.0, 1.0),
    data=st.data(),
)
def test_the_mixture_of_fits_sums_to_at_most_one(
    weights: list[float], certainty: float, data: st.DataObject
) -> None:
    orders = [data.draw(st.permutations([-1, -1, 0, 1, 2, 3])) for _ in weights]
    fits = [a_fit(*order[:4], certainty=certainty) for order in orders]
    shares = (np.array(weights) / sum(weights)).tolist()
    trust = np.array([1.0, 0.5, 0.1, 0.0])
    nuclei = nucleus_cells(fits, shares, trust)
    total = np.nan_to_num(nuclei.confidence) + nuclei.other_shares.sum(axis=1)
    assert (total <= trust + 1e-9).all()
    assert (nuclei.other_shares >= 0).all()


def test_little_trust_is_little_confidence_and_no_alternative_instead() -> None:
    nuclei = nucleus_cells([a_fit(0, 1, 2, 3), a_fit(0, 1, 3, 2)], [0.75, 0.25], 0.4)
    np.testing.assert_allclose(nuclei.confidence, [0.4, 0.4, 0.3, 0.3])
    np.testing.assert_allclose(nuclei.other_shares.sum(axis=1), [0.0, 0.0, 0.1, 0.1])


def test_what_another_posterior_says_of_the_other_handedness_is_kept() -> None:
    as_is, image = a_fit(0, 1, 2, 3), a_fit(0, 1, 3, 2, mirrored=True)
    both = mixture(as_is, image, logs=[0.0, -1.0], mirrored_by=0.25)
    again = mixture(as_is, logs=[2.0], mirrored_by=0.25)
    joined = again.beside(both)
    assert joined.hands.tolist() == [False, True]
    np.testing.assert_allclose(joined.weights, [0.75, 0.25])
    assert joined.best == 0
    assert len(again.beside(mixture(as_is, logs=[0.0])).weighed) == 1


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.of(model_of_atlas(atlas_of_bodies()))


AS_IS = Prior.of(1.0, same=1.0, hands=(False,))


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("roll", [0.0, 77.0, 180.0, 250.0])
def test_a_rolled_or_turned_specimen_is_placed(target: Target, roll: float, back: bool) -> None:
    """None of the given poses is right; rolls all around are tried as well."""
    (body,) = bodies(1, seed=3)
    first = turned(body, roll, back)
    found = place(target, posed(first, first * [1.0, -1.0, -1.0]), AS_IS)
    assert right(found.fit, np.arange(CELLS)) > 0.95
    assert np.abs(found.fit.warped - target.model.means).mean() < 3
    assert not found.mirrored
    assert found.trust.mean() > 0.9
    assert found.support is not None
    assert found.support > PLACED


@pytest.mark.parametrize("hands", [(False,), (True,)])
def test_a_handedness_that_is_known_is_kept(target: Target, hands: tuple[bool, ...]) -> None:
    (body,) = bodies(1, seed=3)
    found = place(target, posed(body), Prior.of(1.0, same=1.0, hands=hands))
    assert set(found.hands.tolist()) == set(hands)
    assert found.one_handed


def test_the_order_of_nuclei_does_not_matter_to_the_place(target: Target) -> None:
    (body,) = bodies(1, seed=3)
    order = np.random.default_rng(0).permutation(CELLS)
    plain, mixed = place(target, posed(body), AS_IS), place(target, posed(body[order]), AS_IS)
    np.testing.assert_array_equal(mixed.fit.cells, plain.fit.cells[order])
    np.testing.assert_allclose(mixed.trust, plain.trust[order], atol=1e-6)


def test_pins_are_respected_by_all_fits(target: Target) -> None:
    (body,) = bodies(1, seed=3)
    pins = np.full(CELLS, FREE, np.int32)
    pins[4], pins[20] = 30, NOBODYS
    found = place(target, posed(body), Prior.of(1.0, same=1.0), pins)
    for fit, *_ in found.weighed:
        assert fit.nuclei[30] == 4
        assert 20 not in fit.nuclei
    nuclei = found.nucleus_cells()
    assert nuclei.cells[4] == 30
    assert nuclei.cells[20] == -1
    assert nuclei.other_shares[20].sum() == 0


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.6), (0.5, 1.0), (0.2, 0.8)])
def test_a_part_is_placed_in_its_view(target: Target, low: float, high: float) -> None:
    (body,) = bodies(1, seed=3)
    share = (body[:, 0] - body[:, 0].min()) / np.ptp(body[:, 0])
    kept = np.flatnonzero((share >= low) & (share <= high))
    part = turned(body[kept], 33.0, back=False)
    fit = place(target, posed(part - part.mean(axis=0)), AS_IS).fit
    assert right(fit, kept) > 0.9
    assert fit.part is not None
    assert fit.part[kept].mean() > 0.8


def test_converged_shares_are_those_of_all_permutations() -> None:
    """Two cells, two nuclei: the likelier order decides, as softly as balancing has it."""
    places = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    points = np.array([[0.2, 0, 0], [0.9, 0, 0]])
    centres = centres_of(np.repeat(0.25 * np.eye(3)[None], 2, axis=0))
    shares = soft_assign(places, centres, points, Rules(c0=60.0), converged=True)
    table = np.zeros((2, 2))
    table[np.repeat([0, 1], np.diff(shares.starts)), shares.points] = shares.values
    costs = 0.5 * ((places[:, None] - points[None]) ** 2).sum(axis=2) / 0.25
    gain = costs[0, 1] + costs[1, 0] - costs[0, 0] - costs[1, 1]
    expected = 1 / (1 + np.exp(-gain / 2))
    np.testing.assert_allclose(np.diagonal(table), expected, atol=2e-3)
    np.testing.assert_allclose(table.sum(axis=0), 1.0, atol=2e-3)


@st.composite
def distributions(draw: st.DrawFn) -> Annotation:
    """An annotation of four nuclei whose shares are any that sum to at most 1."""
    cells, confidence, alternatives = [], [], []
    for nucleus in range(4):
        shares = draw(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5))
        total = max(sum(shares), 1.0)
        matched = draw(st.booleans())
        rest = sorted(((share / total) for share in shares[1:]), reverse=True)
        cells.append(nucleus if matched else -1)
        confidence.append(shares[0] / total if matched else np.nan)
        alternatives.append(tuple((10 + at, share) for at, share in enumerate(rest)))
    return Annotation(
        "worm", np.arange(4), np.array(cells, np.int32), ("",) * 4, np.array(confidence),
        tuple(alternatives), 0.0, np.zeros((4, 3)),
    )  # fmt: skip


def check_table(annotation: Annotation, listed: int, folder: Path) -> list[str]:
    """Check the table of an annotation; return its column contested."""
    names = [""] * 100
    write_annotations([annotation.with_alternatives(listed)], names, folder)
    with (folder / f"{annotation.specimen}.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        shares = [
            float(pair.split(":")[1]) for pair in filter(None, row["alternatives"].split(";"))
        ]
        assert len(shares) <= listed
        if shares and row["confidence"] and row["contested"] == "0":
            assert shares[0] <= float(row["confidence"]) + 6e-3  # three digits are written
    return [row["contested"] for row in rows]


@given(annotation=distributions())
def test_no_alternative_is_above_the_confidence_unless_it_is_said(
    annotation: Annotation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However many alternatives are listed; a nucleus without a cell has the rest of its shares."""
    columns = [check_table(annotation, n, tmp_path_factory.getbasetemp()) for n in (0, 1, 5)]
    assert columns[0] == columns[1] == columns[2]
    for contested, cell, confidence, others in zip(
        columns[0], annotation.cells, annotation.confidence, annotation.alternatives, strict=True
    ):
        shares = [share for _, share in others]
        own = 1 - sum(shares) if cell < 0 else confidence
        assert contested == str(int(max(shares, default=-1.0) > own))


def test_tables_of_animals_say_what_is_contested(
    annotations: list[Annotation], tmp_path: Path
) -> None:
    for annotation in annotations:
        columns = [check_table(annotation, n, tmp_path) for n in (0, 3)]
        assert columns[0] == columns[1] == list(map(str, annotation.contested.astype(int)))
