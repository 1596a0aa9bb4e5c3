"""Channels that are called wrongly are found by the colours of a series, said, and put right."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import eutely
from eutely import Atlas, Specimen
from eutely.cli import app
from eutely.fit.match import Fit
from eutely.io.sources import Files
from eutely.io.tables import write_table
from eutely.series import channels
from eutely.series.channels import Orders, in_true_order, orders_of, renaming
from toy_heads import head

ATLAS = "celegans-adult-head"
WRONG = {
    "R and B": {"R": "B", "B": "R"},
    "R and G": {"R": "G", "G": "R"},
    "all": {"R": "G", "G": "B", "B": "R"},
}


def annotated(specimens: list[Specimen], **options) -> list[eutely.Annotation]:
    return eutely.annotate(ATLAS, [one.without_names() for one in specimens], workers=1, **options)


@pytest.mark.parametrize("kind", WRONG)
def test_channels_that_are_exchanged_are_said_and_put_right(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    worm = head(seed=4, spread=0.6)
    caplog.set_level(logging.WARNING, "eutely")
    [plain] = annotated([worm])
    assert not plain.exchanged
    assert caplog.messages == []
    wrong = worm.renamed(WRONG[kind])
    [found] = annotated([wrong])
    assert found.names == plain.names
    assert found.exchanged == {new: old for old, new in WRONG[kind].items()}
    assert "channels were called wrongly, and are put right" in found.note(Atlas.load(ATLAS))
    [line] = caplog.messages
    assert line.startswith("head: channels ")
    assert " are exchanged: " in line
    [right] = in_true_order([wrong], [found])
    for key, values in worm.features.items():
        assert right.features[key].tolist() == values.tolist()


def test_columns_of_any_name_and_further_statistics_are_put_right() -> None:
    worm = head(seed=4, spread=0.6)
    columns = {f"{key}_mean": values for key, values in worm.features.items()}
    columns |= {f"{key}_sd": values * 0.1 for key, values in worm.features.items()}
    called = replace(worm, features=columns).renamed(
        {"R_mean": "B_mean", "B_mean": "R_mean", "R_sd": "B_sd", "B_sd": "R_sd"}
    )
    [found] = annotated([called])
    assert found.exchanged == {
        "B_mean": "R_mean", "B_sd": "R_sd", "R_mean": "B_mean", "R_sd": "B_sd",
    }  # fmt: skip
    [right] = in_true_order([called], [found])
    assert {key: values.tolist() for key, values in right.features.items()} == {
        key: values.tolist() for key, values in columns.items()
    }


def test_a_series_shares_its_order_but_not_with_columns_of_other_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "eutely")
    wrong = [head(f"w{seed}", seed=seed).renamed(WRONG["R and B"]) for seed in range(4)]
    words = head("words", seed=5).renamed({"R": "red", "G": "green", "B": "blue"})
    found = annotated([*wrong, words])
    assert [bool(one.exchanged) for one in found] == [True] * 4 + [False]
    lines = [line for line in caplog.messages if "exchanged" in line]
    assert lines == [
        "w0, w1, w2 and 1 more: channels B and R are exchanged: B is taken for R, R for B"
    ]


def test_what_is_not_clear_is_said_and_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "eutely")
    worm = head(seed=4).renamed(WRONG["R and B"])
    some = np.random.default_rng(0).permutation(len(worm))[:60]
    few = worm.take(np.sort(some))
    noise = np.random.default_rng(1).normal(0, 900, (3, len(few)))
    features = {key: values + noise[row] for row, (key, values) in enumerate(few.features.items())}
    [found] = annotated([replace(few, features=features)])
    assert not found.exchanged
    orders = Orders.of([(0, 1), (1, 0)], np.array([0.0, 3.0 * np.log(20)]))
    assert not orders.changed
    assert not orders.declared
    pair = Specimen.from_arrays("pair", np.eye(4, 3), features={"R": range(4), "B": range(4)})
    assert orders.told(("B", "R"), pair) == (
        "channels B and R may be exchanged, which is not clear: taken as they are called"
    )


def test_colours_that_tell_nothing_and_none_change_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "eutely")
    worm = head(seed=4)
    noise = np.random.default_rng(2).normal(size=(3, len(worm)))
    [found] = annotated([replace(worm, features=dict(zip("RGB", noise, strict=True)))])
    assert not found.exchanged
    assert not any("exchanged" in line for line in caplog.messages)

    def never(*_: object) -> None:
        raise AssertionError("specimens without two channels cost nothing")

    monkeypatch.setattr(channels, "evidence_of_orders", never)
    annotated([replace(worm, features={})])
    annotated([replace(worm, features={"R": worm.features["R"], "volume": noise[0]})])


def fit(scores: np.ndarray) -> Fit:
    points = np.zeros((len(scores), 3))
    return Fit(points, points, scores, np.zeros(1, np.int32), 0.0, None)  # type: ignore[arg-type]


def test_orders_are_those_of_channels_that_all_specimens_have() -> None:
    known = fit(np.zeros((4, 5)))
    features = ("B", "G", "R", "W", "radius 1")
    found = orders_of(features, [known])
    assert found[0] == (0, 1, 2, 3, 4)
    assert sorted(found) == sorted((*one, 4) for one in permutations(range(4)))
    lacking = fit(np.where(np.arange(5) == 1, np.nan, 0.0) + np.zeros((4, 5)))
    assert {one[1] for one in orders_of(features, [known, lacking])} == {1}
    many = tuple(f"marker{letter}_mean" for letter in "abcdef")
    assert len(orders_of(many, [fit(np.zeros((4, 6)))])) == 1 + 15
    assert orders_of(("size", "age"), [fit(np.zeros((4, 2)))]) == ((0, 1),)


def test_an_order_says_how_columns_should_be_called() -> None:
    worm = Specimen.from_arrays(
        "worm", np.eye(4, 3), features={"red": range(4), "G_mean": range(4), "blue": range(4)}
    )
    assert renaming(("B", "G", "R"), worm, (2, 1, 0)) == {"blue": "red", "red": "blue"}
    assert renaming(("B", "G", "R"), worm, (1, 2, 0)) == {
        "G_mean": "blue", "blue": "red", "red": "G_mean",
    }  # fmt: skip


def test_the_command_says_it_and_writes_columns_as_what_they_are(tmp_path: Path) -> None:
    worm = head("worm", seed=4, spread=0.6)
    write_table(worm.renamed(WRONG["R and B"]), tmp_path / "worm.csv")
    words = ["annotate", ATLAS, str(tmp_path / "worm.csv"), "-o"]
    shown = CliRunner().invoke(app, [*words, str(tmp_path / "out")])
    said = " ".join(shown.output.split())
    assert "worm: channels B and R are exchanged: B is taken for R, R for B" in said
    table = pd.read_csv(tmp_path / "out" / "annotations.csv")
    for key, values in worm.features.items():
        np.testing.assert_allclose(table[key], values)
    shown = CliRunner().invoke(
        app, [*words, str(tmp_path / "word"), "--features-map", "R=R,G=G,B=B"]
    )
    assert shown.exit_code == 0
    assert "exchanged" not in shown.output
    table = pd.read_csv(tmp_path / "word" / "annotations.csv")
    np.testing.assert_allclose(table["R"], worm.features["B"])


def test_slices_show_channels_as_what_they_are() -> None:
    files = Files(channels=("R", "G", "B", "-"))
    names = {"R_mean": "B_mean", "B_mean": "R_mean"}
    assert files.exchanged([names, names]).channels == ("B", "G", "R", "-")
    for some in ([], [names, {}]):
        assert files.exchanged(some) == files
