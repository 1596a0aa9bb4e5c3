"""The numbers behind the figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.atlas import Atlas
from eutely.evaluation import Score, evaluation
from eutely.learned import Trial
from eutely.plots import compute
from eutely.specimen import Specimen
from toy_reports import toy_cohort

points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20)


@given(points)
def test_no_trial_beats_one_on_the_front(pairs: list[tuple[int, int]]) -> None:
    trials = [Trial("s", number, {}, pair) for number, pair in enumerate(pairs)]
    (front,) = compute.pareto_fronts(trials, {})
    for pair, on in zip(pairs, front.on_front, strict=True):
        beaten = any(a <= pair[0] and b <= pair[1] and (a, b) != pair for a, b in pairs)
        assert on == (not beaten)


def test_the_curve_is_the_best_so_far() -> None:
    losses = {2: 4.0, 0: 5.0, 1: 3.0}  # in the order in which the trials ended
    (curve,) = compute.learning_curves(
        [Trial("s", number, {}, (loss,)) for number, loss in losses.items()]
    )
    assert curve.losses.tolist() == [5, 3, 4]
    assert curve.best.tolist() == [5, 3, 3]


def test_the_chosen_trial_is_found_by_its_number() -> None:
    trials = [Trial("s", number, {}, (number, -number)) for number in (4, 7, 9)]
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


def test_dots_lie_inside_the_violin() -> None:
    values = np.random.default_rng(0).beta(9, 1, 40)
    shape = compute.violin(tuple(map(str, range(40))), values)
    assert (np.abs(shape.offsets) <= np.interp(values, shape.grid, shape.density)).all()
    assert shape.offsets.min() < 0 < shape.offsets.max()


def test_confused_cells_are_counted() -> None:
    atlas, shown = toy_cohort(6, 20)
    first, second = (atlas.names[cell] for cell in (7, 8))
    rows = compute.confusions(atlas, shown)
    counts = {(row.name, row.taken_for): (row.times, row.of) for row in rows}
    assert counts[first, second] == counts[second, first] == (3, 6)
    accuracy = compute.cell_accuracy(atlas, shown)
    assert accuracy[7] == accuracy[8] == 0.5


def test_a_cell_without_a_name_is_not_no_cell() -> None:
    atlas, shown = toy_cohort(6, 20)
    names = list(atlas.names)
    nameless, names[3] = names[3], ""
    rows = compute.confusions(atlas.named(names), shown)
    times = {row.taken_for: row.times for row in rows if row.name == nameless}
    assert times["cell 3"] == 6 - times.get("", 0)


def test_a_nucleus_without_a_cell_is_wrong() -> None:
    rows = compute.confusions(*toy_cohort(6, 20))
    assert sum(row.taken_for == "" for row in rows) == 3


def test_confidence_is_averaged_over_specimens() -> None:
    atlas, shown = toy_cohort(2, 20)
    fixed = [
        replace(worm, cells=np.full(20, -1, np.int32), confidence=np.full(20, np.nan))
        for worm in shown
    ]
    for worm, value in zip(fixed, (0.5, 1.0), strict=True):
        worm.cells[4], worm.confidence[4] = 3, value
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


def test_ganglia_are_the_groups_of_neurons() -> None:
    names = ["AVAL", "avar", "RMED", "I1L", "VD13", "cell"]
    assert compute.cell_groups(names) == [
        "lateral ganglion", "lateral ganglion", "anterior ganglion", "pharynx, anterior bulb",
        "preanal ganglion", "",
    ]  # fmt: skip
    lineage = ["ABal", "ABar", "ABpl", "Dx", "Dy", "Dz", "E"]
    assert compute.cell_groups(lineage)[3] == "D…"
    assert len(compute._ganglia()) == 302


def test_own_colours_are_between_the_darkest_and_the_brightest() -> None:
    values = np.linspace(0, 100, 41)
    worm = Specimen.from_arrays(
        "w", np.random.default_rng(0).normal(size=(41, 3)),
        features={"red_mean": values, "G": 7 - values, "GFP": values},
    )  # fmt: skip
    colours = compute.own_colours(worm)
    assert colours.dtype == np.uint8
    assert colours[0, 0] < colours[20, 0] < colours[-1, 0] == 255
    assert colours[0, 1] == 255 > colours[-1, 1]
    assert len(set(colours[:, 2].tolist())) == 1  # blue is not known
    same = compute.own_colours(worm.renamed({"red_mean": "R"}))
    assert (same == colours).all()
    assert compute.own_colours(worm.renamed({"G": "-"})).shape == (0, 3)
    atlas = Atlas.load("celegans-adult-head")
    assert compute.mean_colours(atlas).shape == (195, 3)
    assert compute.mean_colours(Atlas.load("celegans-l1")).shape == (0, 3)
