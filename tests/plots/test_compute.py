"""What figures show, checked by numbers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.evaluation import Score, evaluation
from eutely.plots import compute
from eutely.results import Trial
from stories import toy_cohort, toy_story

points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20)


@given(points)
def test_nobody_beats_a_trial_on_the_front(pairs: list[tuple[int, int]]) -> None:
    trials = [Trial("s", number, pair) for number, pair in enumerate(pairs)]
    (front,) = compute.pareto_fronts(trials, {})
    for own, on in zip(pairs, front.on_front, strict=True):
        beaten = any(a <= own[0] and b <= own[1] and (a, b) != own for a, b in pairs)
        assert on == (not beaten)


def test_the_curve_is_the_best_so_far() -> None:
    losses = {2: 4.0, 0: 5.0, 1: 3.0}  # in the order in which they happened to end
    (curve,) = compute.learning_curves([Trial("s", n, [v]) for n, v in losses.items()])
    assert curve.losses.tolist() == [5, 3, 4]
    assert curve.best.tolist() == [5, 3, 3]


def test_the_chosen_trial_is_found_by_its_number() -> None:
    trials = [Trial("s", number, (number, -number)) for number in (4, 7, 9)]
    (front,) = compute.pareto_fronts(trials, {"s": 7})
    assert front.chosen == 1
    assert front.on_front.all()


def test_specimens_are_ranked_and_outliers_marked() -> None:
    _, shown = toy_cohort(4, 20)
    ranked = compute.consistency([replace(shown[0], consistency=float("nan")), *shown[1:]])
    assert len(ranked.values) == 3
    assert (np.diff(ranked.values) >= 0).all()
    assert ranked.names[0] == shown[-1].name
    assert ranked.marked.tolist() == [True, False, False]


def test_equal_accuracies_have_an_outline() -> None:
    shape = compute.accuracy(evaluation([Score("a", 10, 9), Score("b", 10, 9), Score("c", 0, 0)]))
    assert shape.names == ("a", "b")
    assert shape.density.max() == 1
    assert shape.grid[0] < 0.9 < shape.grid[-1]


def test_confused_cells_are_counted() -> None:
    story = toy_story(6, 20)
    first, second = (story.atlas.names[cell].upper() for cell in (7, 8))
    found = {(row.name, row.taken_for): (row.times, row.of) for row in _confusions(story)}
    assert found[first, second] == found[second, first] == (3, 6)
    accuracy = compute.cell_accuracy(story.atlas, story.specimens)
    assert accuracy[7] == accuracy[8] == 0.5


def _confusions(story):
    return compute.confusions(story.atlas, story.specimens)


def test_a_cell_without_a_name_is_not_no_cell() -> None:
    story = toy_story(6, 20)
    names = list(story.atlas.names)
    lost, names[3] = names[3].upper(), ""
    rows = compute.confusions(story.atlas.named(names), story.specimens)
    found = {row.taken_for: row.times for row in rows if row.name == lost}
    assert found["cell 3"] == 6 - found.get("", 0)


def test_a_nucleus_without_a_cell_is_wrong() -> None:
    story = toy_story(6, 20)
    lost = [row for row in _confusions(story) if row.taken_for == ""]
    assert len(lost) == 3


def test_confidence_is_averaged_over_specimens() -> None:
    atlas, shown = toy_cohort(2, 20)
    fixed = [
        replace(one, cells=np.zeros(20, np.int32) - 1, confidence=np.full(20, np.nan))
        for one in shown
    ]
    for one, value in zip(fixed, (0.5, 1.0), strict=True):
        one.cells[4], one.confidence[4] = 3, value
    mean = compute.cell_confidence(atlas, fixed)
    assert mean[3] == 0.75
    assert np.isnan(np.delete(mean, 3)).all()
    assert sorted(compute.confidences(fixed)) == [0.5, 1.0]


def test_spread_is_a_distance() -> None:
    atlas, _ = toy_cohort(3, 20)
    wide = replace(atlas, covariances=np.tile(np.diag([4.0, 4.0, 8.0]), (20, 1, 1)))
    assert compute.spreads(wide) == pytest.approx(np.full(20, 4.0))


def test_the_largest_group_is_split() -> None:
    names = ["AVAL", "AVAR", "AVBL", "AVBR", "DA1", "DA2", "DA3", "X", ""]
    assert compute.groups(names, most=2) == ["A"] * 4 + ["D"] * 3 + ["", ""]
    fine = compute.groups(names, most=6, fewest=2)
    assert fine[:4] == ["AVA", "AVA", "AVB", "AVB"]
    assert compute.groups(["", ""]) == ["", ""]
