"""Groups of animals compared: what was changed is found, whatever order, names and ids."""

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely import Comparison, Design, Specimen
from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.tasks.compare import check_groups
from toy_groups import ENLARGED, LOST, MOVED, toy_groups, true_annotations
from toy_heads import head

QUICK = Design(permutations=999)

Groups = dict[str, list[Specimen]]


@pytest.fixture(scope="module")
def toy() -> tuple[Atlas, Groups]:
    return toy_groups()


@pytest.fixture(scope="module")
def compared(toy: tuple[Atlas, Groups]) -> Comparison:
    atlas, groups = toy
    given = true_annotations(atlas, groups)
    return eutely.compare(atlas, groups, design=QUICK, annotations=given)


def outcome(comparison: Comparison, test: str):
    return next(one for one in comparison.answers[0].cells if one.test == test)


def test_what_was_changed_is_found(compared: Comparison) -> None:
    moved = outcome(compared, "place-relative")
    assert np.flatnonzero(moved.q <= 0.05).tolist() == [MOVED]
    assert moved.low[MOVED] < 1.5 < moved.high[MOVED]
    size = outcome(compared, "size")
    assert ENLARGED in np.flatnonzero(size.q <= 0.05)
    assert size.effect[ENLARGED] == pytest.approx(0.5, abs=0.15)
    presence = outcome(compared, "presence")
    assert presence.effect[LOST] == pytest.approx(-0.75)
    assert np.nanargmin(presence.p) == LOST
    assert presence.p[LOST] < 0.02


def test_tables_have_a_row_for_each_cell_and_test(compared: Comparison) -> None:
    table = compared.to_frame()
    assert list(table) == ["cell", "name", "test", "effect", "low", "high", "p", "q", "doubtful"]
    tests = ["place", "place-relative", "scatter", "presence", "size"]
    assert list(dict.fromkeys(table["test"])) == tests
    assert len(table) == 60 * len(tests)
    assert set(table["doubtful"]) <= {0, 1}
    details = compared.details()
    assert len(details) == len(table)
    assert {"family", "detectable", "dx", "animals in mutant"} <= set(details)
    whole = compared.whole_frame().set_index("measure")
    assert abs(whole.loc["length", "effect"]) < 0.2
    assert {"first letters", "neighbourhood"} == set(compared.set_frame()["kind"])
    assert len(compared.pair_frame()) == len(compared.pairs) > 0


def test_the_order_of_animals_and_nuclei_does_not_matter(
    toy: tuple[Atlas, Groups], compared: Comparison
) -> None:
    atlas, groups = toy
    random = np.random.default_rng(0)
    shuffled = {
        label: [worm.take(random.permutation(len(worm))) for worm in worms]
        for label, worms in groups.items()
    }
    again = eutely.compare(
        atlas, shuffled, design=QUICK, annotations=true_annotations(atlas, shuffled)
    )
    np.testing.assert_allclose(again.to_frame()["p"], compared.to_frame()["p"])
    np.testing.assert_allclose(again.to_frame()["effect"], compared.to_frame()["effect"], atol=1e-6)


def test_animals_are_named_without_their_groups_and_names(toy: tuple[Atlas, Groups]) -> None:
    atlas, groups = toy
    few = {label: worms[:4] for label, worms in groups.items()}
    design = Design(permutations=99)
    first = eutely.compare(atlas, few, design=design, workers=1)
    bare = {
        label: [replace(worm.without_names(), name=f"x{k}") for k, worm in enumerate(worms)]
        for label, worms in few.items()
    }
    again = eutely.compare(atlas, bare, design=design, workers=1)
    np.testing.assert_array_equal(first.cells.places, again.cells.places)
    assert first.to_frame().equals(again.to_frame())
    named = eutely.compare(atlas, few, design=Design(permutations=99, given_names=True), workers=1)
    assert (named.cells.weights[named.cells.weights > 0] > 0.99).mean() > 0.95


def test_groups_that_are_the_other_way_round_have_the_same_p(
    toy: tuple[Atlas, Groups], compared: Comparison
) -> None:
    atlas, groups = toy
    given = true_annotations(atlas, groups)
    turned = eutely.compare(atlas, dict(reversed(groups.items())), design=QUICK, annotations=given)
    size = outcome(turned, "size")
    assert size.effect[ENLARGED] == pytest.approx(1 / 1.5 - 1, abs=0.1)
    assert np.sign(outcome(turned, "presence").effect[LOST]) == 1
    assert outcome(turned, "place-relative").q[MOVED] <= 0.05


def test_doubtful_names_are_marked(toy: tuple[Atlas, Groups]) -> None:
    atlas, groups = toy
    given = true_annotations(atlas, groups, confidence=0.4)
    doubtful = eutely.compare(atlas, groups, design=QUICK, annotations=given)
    assert outcome(doubtful, "place-relative").doubtful[MOVED]


def test_more_than_two_groups(toy: tuple[Atlas, Groups]) -> None:
    atlas, groups = toy
    third = {**groups, "third": groups["control"][4:], "control": groups["control"][:4]}
    given = true_annotations(atlas, third)
    several = eutely.compare(atlas, third, design=Design(permutations=99), annotations=given)
    assert [one.contrast.name for one in several.answers] == [
        "mutant against control",
        "third against control",
    ]
    assert set(several.to_frame()["group"]) == {"mutant", "third"}
    trend = Design(permutations=99, trend=True)
    ordered = eutely.compare(atlas, third, design=trend, annotations=given)
    assert len(ordered.answers) == 1


def test_sets_of_cells_by_a_column(toy: tuple[Atlas, Groups]) -> None:
    atlas, groups = toy
    kinds = {name: "moved" if cell == MOVED else "other" for cell, name in enumerate(atlas.names)}
    for cell in range(4):
        kinds[atlas.names[cell]] = "moved"
    given = true_annotations(atlas, groups)
    design = Design(permutations=99, cell_groups={"kind": kinds})
    found = eutely.compare(atlas, groups, design=design, annotations=given).set_frame()
    assert set(found.loc[found["kind"] == "kind", "set"]) == {"moved", "other"}


def test_a_bad_design_is_told_before_animals_are_named(
    toy: tuple[Atlas, Groups], monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas, groups = toy

    def never(*_: object, **__: object) -> None:
        raise AssertionError("animals were named")

    monkeypatch.setattr("eutely.tasks.compare.annotate", never)
    day = {one.name: label for label, worms in groups.items() for one in worms}
    cases = {
        "none of its 1 cells is in the atlas": Design(cell_groups={"kind": {"nobody": "x"}}),
        "the covariates day say which group": Design(covariates={"day": day}),
        "a trend needs three groups": Design(trend=True),
    }
    for words, design in cases.items():
        with pytest.raises(EutelyError, match=words):
            eutely.compare(atlas, groups, design=design)


def test_bad_groups_are_one_line(toy: tuple[Atlas, Groups]) -> None:
    atlas, groups = toy
    control = groups["control"]
    cases = {
        "group 'mutant' has 2 animals, expected at least 3": {
            **groups,
            "mutant": groups["mutant"][:2],
        },
        "are the same nuclei": {"control": control, "mutant": control},
        "1 group; give two": {"control": control},
    }
    for words, bad in cases.items():
        with pytest.raises(EutelyError, match=words) as error:
            check_groups(bad)
        assert "\n" not in str(error.value)
    cloud = [
        Specimen.from_arrays(f"cloud{k}", np.random.default_rng(k).normal(size=(15, 3)))
        for k in range(3)
    ]
    other = [replace(one, unit=control[0].unit) for one in cloud]
    with pytest.raises(EutelyError, match="group 'mutant': 3 of 3 animals do not fit the atlas"):
        eutely.compare(atlas, {"control": control[:3], "mutant": other}, design=QUICK, workers=1)


def test_messages_call_animals_by_their_names(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "eutely")
    wrong = {"R": "B", "B": "R"}
    groups = {
        label: [head(f"{label}{n}", seed=10 * k + n).renamed(wrong) for n in range(3)]
        for k, label in enumerate(("wild", "mutant"))
    }
    atlas = Atlas.load("celegans-adult-head")
    eutely.compare(atlas, groups, design=Design(permutations=99), workers=1)
    [line] = [line for line in caplog.messages if "are exchanged" in line]
    names = line.split(": ")[0].removesuffix(" and 3 more").split(", ")
    assert len(names) == 3
    assert set(names) <= {one.name for animals in groups.values() for one in animals}
