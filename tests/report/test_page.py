"""The page: whole with everything in it, and with nothing but an atlas."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from eutely.errors import EutelyError
from eutely.report import Shown, Story, Trial, render
from eutely.report.page import flat
from eutely.report.words import checks, headline
from stories import toy_cohort, toy_story


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def unpack(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def test_names_cannot_break_the_page() -> None:
    story = toy_story(3, 20)
    evil = replace(story.specimens[0], name="</script><script>alert(1)</script>")
    page = render(replace(story, specimens=[evil, *story.specimens[1:]]))
    assert "<script>alert" not in page
    assert data_of(page)["specimens"][0]["name"] == evil.name


def test_the_page_holds_the_numbers() -> None:
    story = toy_story(4, 20)
    data = data_of(render(story))
    assert data["names"] == list(story.atlas.names)
    np.testing.assert_allclose(
        unpack(data["means"], "<f4").reshape(-1, 3), story.atlas.means, rtol=1e-5, atol=1e-4
    )
    places = unpack(data["places"], "<u2").reshape(-1, 3) * data["step"] + data["low"]
    truth = np.concatenate([one.positions for one in story.specimens])
    np.testing.assert_allclose(places, truth, atol=0.02)
    cells = unpack(data["cells"], "<i4")
    assert cells.tolist() == np.concatenate([one.cells for one in story.specimens]).tolist()
    sure = unpack(data["sure"], "u1")
    given = np.concatenate([one.confidence for one in story.specimens])
    assert ((sure == 255) == np.isnan(given)).all()
    np.testing.assert_allclose(sure[sure < 255] / 250, given[np.isfinite(given)], atol=0.003)


def test_only_uncertain_nuclei_tell_what_else_they_may_be() -> None:
    story = toy_story(4, 20)
    others = data_of(render(story))["others"]
    swapped = [20 + int(np.flatnonzero(story.specimens[1].cells == cell)[0]) for cell in (7, 8)]
    assert {number: others[str(number)] for number in swapped} == {
        swapped[0]: [[8, 60]],
        swapped[1]: [[7, 60]],
    }
    sure = np.concatenate([one.confidence for one in story.specimens]) >= 0.9
    assert not any(sure[int(number)] for number in others)


def test_odd_stories_have_a_page() -> None:
    atlas, shown = toy_cohort(2, 20)
    lone = shown[0]
    nowhere = replace(lone, positions=np.full((20, 3), np.nan), confidence=np.full(20, np.nan))
    empty = Shown("empty", np.zeros((0, 3)), np.zeros(0, np.int32))
    trials = [Trial("linear", 0, [float("inf")]), Trial("sparsity", 0, [1.0, float("nan")])]
    page = render(Story(atlas, specimens=[nowhere, empty], trials=trials))
    assert "No trials were run" in page
    same = [Trial("linear", number, [-5.0]) for number in range(3)]
    pareto = [Trial("sparsity", number, [1.0, 2.0]) for number in range(3)]
    assert "<svg" in render(Story(atlas, specimens=[lone], trials=same + pareto))


def test_the_first_screen_says_what_to_check() -> None:
    story = toy_story(6, 60)
    assert headline(story) == "60 cells found in 6 specimens"
    found = checks(story)
    assert found[0].level == "bad"
    assert story.specimens[-1].name in found[0].what
    assert found[0].specimens == (5,)
    assert any("3 nuclei have no cell" in one.what for one in found)
    page = render(story)
    assert page.index("What to check") < page.index('id="atlas"')


def test_a_run_without_trouble_says_so() -> None:
    atlas, shown = toy_cohort(3, 20)
    whole = atlas.names
    fine = [
        replace(one, cells=np.arange(20), confidence=np.ones(20), outlier="", names=whole)
        for one in shown
    ]
    story = Story(replace(atlas, rare=np.zeros(20, bool)), specimens=fine)
    assert [one.level for one in checks(story)] == ["good"]
    assert "Nothing stands out." in render(story)


def test_stages_of_learning_have_plain_names() -> None:
    page = render(toy_story(3, 20))
    assert "Stage 2: which assignments to allow" in page
    assert "Fewer assignments or a lower loss" in page


def test_an_atlas_alone_has_a_page() -> None:
    atlas, _ = toy_cohort(3, 20)
    page = render(Story(atlas, kind="atlas"))
    assert "An atlas of 20 cells" in page
    assert "This page was made from an atlas alone" in page
    assert "No trials were run" not in page


def test_what_a_reader_would_miss_is_told() -> None:
    atlas, shown = toy_cohort(3, 20)
    plain = [Shown(one.name, one.positions, one.cells) for one in shown]
    page = render(Story(atlas, kind="build", specimens=plain))
    assert "No trials were run" in page
    assert "No accuracy" in page
    assert "<svg" not in page


def test_a_large_page_is_small_enough_to_send() -> None:
    random = np.random.default_rng(0)
    atlas, _ = toy_cohort(3, 20)
    count, cells = 100 * 558, random.integers(0, 20, 100 * 558).astype(np.int32)
    worms = [
        Shown(
            f"worm{number}",
            random.normal(size=(558, 3)),
            cells[558 * number : 558 * (number + 1)],
            random.random(558),
            random.integers(0, 10**6, 558),
            [f"cell{cell}" for cell in range(558)],
        )
        for number in range(100)
    ]
    assert sum(map(len, worms)) == count
    assert len(render(Story(atlas, specimens=worms)).encode()) < 2_000_000


def test_the_page_loads_nothing() -> None:
    page = render(toy_story(3, 20))
    assert re.findall(r'(?:src|href)="(?!#)', page) == []
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_the_same_story_gives_the_same_page() -> None:
    assert render(toy_story(3, 20)) == render(toy_story(3, 20))


def test_nested_parameters_become_rows() -> None:
    rows = flat({"a": {"b": 1.23456, "c": [1, 2.5]}, "d": "word", "e": np.eye(2)})
    assert rows == [("a.b", "1.235"), ("a.c", "(1, 2.5)"), ("d", "word"), ("e", "((1, 0), (0, 1))")]


def test_cells_must_be_of_the_atlas() -> None:
    atlas, shown = toy_cohort(3, 20)
    wrong = replace(shown[0], cells=shown[0].cells + 20)
    with pytest.raises(EutelyError, match="numbers of the 20 cells"):
        Story(atlas, specimens=[wrong])
    with pytest.raises(EutelyError, match="names for 20 nuclei"):
        replace(shown[0], names=["A"])
