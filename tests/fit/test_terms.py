"""A term of the cost of a nucleus being a cell, added from outside, as docs/extending.md says."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import eutely
from eutely.atlas import Atlas
from eutely.candidates import Candidates, PairCosts
from eutely.config import resolve
from eutely.fit import match
from eutely.fit.match import Term, term_costs
from eutely.specimen import Specimen
from toy_frames import in_canonical_order

FORBIDDEN = 1e6


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    train = eutely.simulate(specimens=6, cells=50, variation=0.5)
    config = resolve(overrides={"refine.folds": 2})
    return eutely.build(train, config=config, supervised=True, workers=1).atlas


@pytest.fixture(scope="module")
def specimen() -> Specimen:
    """Return a new specimen, its rows in the order in which terms see them."""
    return in_canonical_order(eutely.simulate(specimens=1, cells=50, variation=0.5, seed=3))[0]


def forbidding(cell: int, nucleus: int) -> Term:
    """Return a term by which one nucleus cannot be one cell."""

    def on(pairs: Candidates) -> NDArray[np.float64]:
        return FORBIDDEN * ((pairs.centres == cell) & (pairs.points == nucleus))

    return lambda model, fit: PairCosts(on, least=0.0)


def cells_of(atlas: Atlas, specimen: Specimen) -> NDArray[np.int32]:
    return eutely.annotate(atlas, [specimen], workers=1)[0].cells


def test_a_term_from_outside_changes_the_annotation(
    atlas: Atlas, specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cells_of(atlas, specimen)
    nucleus = 17
    cell = int(before[nucleus])
    assert cell >= 0
    monkeypatch.setattr(match, "TERMS", [*match.TERMS, forbidding(cell, nucleus)])
    after = cells_of(atlas, specimen)
    assert after[nucleus] != cell
    assert (after == before).mean() > 0.8
    monkeypatch.undo()
    np.testing.assert_array_equal(cells_of(atlas, specimen), before)


def test_a_term_that_adds_nothing_changes_nothing(
    atlas: Atlas, specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cells_of(atlas, specimen)
    monkeypatch.setattr(match, "TERMS", [*match.TERMS, lambda model, fit: None])
    np.testing.assert_array_equal(cells_of(atlas, specimen), before)


def test_terms_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def constant(value: float) -> Term:
        return lambda model, fit: PairCosts.of_table(np.full((2, 3), value))

    nothing: Term = lambda model, fit: None  # noqa: E731
    for terms, expected in (
        ([], None),
        ([nothing], None),
        ([constant(1.0)], 1.0),
        ([nothing, constant(1.0), constant(2.5), nothing], 3.5),
    ):
        monkeypatch.setattr(match, "TERMS", terms)
        total = term_costs(None, None)  # type: ignore[arg-type]
        if expected is None:
            assert total is None
        else:
            assert total is not None
            np.testing.assert_array_equal(total.on(Candidates.every(2, 3)), np.full(6, expected))
            assert np.all(total.least <= expected)
