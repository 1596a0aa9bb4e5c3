"""Which cells specimens of one origin show, and how their features look there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.estimate.origins import blended_scores, presence
from eutely.specimen import Specimen

COLOURS = ("red", "green", "blue")


def test_a_cell_that_most_specimens_have_is_always_there() -> None:
    assert presence(np.array([10, 10, 10, 5])).tolist() == [1.0, 1.0, 1.0, pytest.approx(5 / 9.5)]


def test_scores_are_blended_with_those_of_the_atlas() -> None:
    scores = np.array([[[2.0, 3.0]], [[np.nan, 5.0]]])
    means = np.array([[1.0, 0.0]])  # the second feature is not informative
    assert blended_scores(scores, means, 3.0).tolist() == [[(2.0 + 3.0) / 4, 0.0]]
    nothing = np.full((2, 1, 2), np.nan)
    assert blended_scores(nothing, means, 3.0).tolist() == means.tolist()


@pytest.fixture(scope="module")
def animals() -> list[Specimen]:
    """Simulated animals with a colour of each cell."""
    plain = eutely.simulate(10, cells=90, variation=0.5, pose="none", seed=1)
    names = sorted({name for one in plain for name in one.names or ()})
    colours = np.random.default_rng(5).normal(size=(len(names), 3))
    noise = np.random.default_rng(6)
    return [
        replace(
            one,
            features={
                colour: np.array([colours[names.index(name), k] for name in one.names or ()])
                + 0.2 * noise.normal(size=len(one))
                for k, colour in enumerate(COLOURS)
            },
        )
        for one in plain
    ]


def listed(specimen: Specimen, series: str, *, every: int) -> Specimen:
    """Keep the nuclei of every so manieth name: a laboratory that lists some cells only."""
    names = sorted(specimen.names or ())
    rows = [k for k, name in enumerate(specimen.names or ()) if names.index(name) % every == 0]
    return replace(specimen.take(np.array(rows)), series=series)


def test_a_laboratory_that_lists_some_cells_is_known_by_them(animals: list[Specimen]) -> None:
    whole = [listed(one, "all", every=1) for one in animals[:5]]
    some = [listed(one, "some", every=2) for one in animals[5:9]]
    atlas = eutely.build([*whole, *some], supervised=True, workers=1).atlas
    assert atlas.origins == ("all", "some")
    known = set(some[0].names or ())
    there = np.array([name in known for name in atlas.names])
    by_some = atlas.of_origin("some").origin_presence[:, 0]
    assert by_some[there].min() > 0.9
    assert by_some[~there].max() < 0.25
    assert atlas.of_origin("all").origin_presence.min() > 0.9
    new = listed(animals[9], "some", every=2)
    [by_origin] = eutely.annotate(atlas, [new.without_names()], workers=1)
    assert not {name for name in by_origin.names if name} - known
    right = np.mean([a == b for a, b in zip(by_origin.names, new.names or (), strict=True)])
    [elsewhere] = eutely.annotate(
        atlas, [replace(new, series="elsewhere").without_names()], workers=1
    )
    without = np.mean([a == b for a, b in zip(elsewhere.names, new.names or (), strict=True)])
    assert right >= max(without, 0.9)


def test_nuclei_without_names_may_be_the_cells_that_lack_one(animals: list[Specimen]) -> None:
    named = [replace(one, series="named") for one in animals[:5]]
    cells = sorted(named[0].names or ())
    few = [
        replace(
            one,
            series="few",
            names=tuple(name if cells.index(name) % 3 == 0 else "" for name in one.names or ()),
        )
        for one in animals[5:9]
    ]
    atlas = eutely.build([*named, *few], supervised=True, workers=1).atlas
    assert atlas.of_origin("few").origin_presence.min() > 0.5


def test_an_atlas_of_one_origin_is_as_without_any(animals: list[Specimen]) -> None:
    given = animals[:4]
    one = eutely.build([replace(s, series="ours") for s in given], supervised=True, workers=1).atlas
    assert one.origins == ("ours",)
    assert not one.origin_presence.size
    assert one.of_origin("ours") is one
