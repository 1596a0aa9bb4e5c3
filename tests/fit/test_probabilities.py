"""Confidence and alternatives of a nucleus come from one distribution."""

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
from eutely.fit.evidence import HAND, MIRRORED, rival_weights
from eutely.fit.place import Fit, Rival
from eutely.fit.probabilities import nucleus_cells
from eutely.fit.rates import Rates
from eutely.io.annotations import write_annotations
from eutely.solver.softassign import Rules, Shares, centres_of, soft_assign


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


def a_fit(*rivals: Rival) -> Fit:
    """Return a fit of three nuclei to three cells, each surely its own, and its rivals."""
    points = np.zeros((3, 3))
    shares = Shares(np.arange(4), np.arange(3, dtype=np.int32), np.ones(3))
    nuclei = np.arange(3, dtype=np.int32)
    fit = Fit(points, points, np.zeros((3, 0)), nuclei, 0.0, Rates(0.1, 0.1), shares=shares)
    return replace(fit, rivals=rivals)


def rival(*cells: int, mirrored: bool = False, cost: float = 0.0) -> Rival:
    return Rival(np.array(cells, np.int32), mirrored, cost)


def test_what_rivals_say_otherwise_is_doubt_and_an_alternative() -> None:
    fit = a_fit(rival(0, 1, 2), rival(0, 2, 1, mirrored=True))
    nuclei = nucleus_cells(fit, weights=rival_weights(fit.rivals, mirrored=0.3))
    np.testing.assert_array_equal(nuclei.cells, [0, 1, 2])
    np.testing.assert_allclose(nuclei.confidence, [1.0, 0.7, 0.7])
    np.testing.assert_array_equal(nuclei.other_cells[:, 0], [-1, 2, 1])
    np.testing.assert_allclose(nuclei.other_shares[:, 0], [0.0, 0.3, 0.3])


def test_rivals_weigh_by_their_costs_and_by_how_much_they_differ() -> None:
    assert rival_weights(()) == [1.0]
    one, other = rival_weights((rival(0, 1, 2), rival(0, 1, -1, cost=3.0)))
    np.testing.assert_allclose(one / other, np.exp(3.0))  # they differ in one nucleus
    one, other = rival_weights((rival(*range(50)), rival(*range(1, 51), cost=3.0)))
    np.testing.assert_allclose(one / other, np.exp(3.0 * HAND))
    as_is, mirrored = rival_weights((rival(0, 1, 2), rival(2, 1, 0, mirrored=True)))
    np.testing.assert_allclose(mirrored, MIRRORED)
    np.testing.assert_allclose(as_is + mirrored, 1.0)


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
