"""The page: complete with everything in it, and with nothing but an atlas."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from eutely.errors import EutelyError
from eutely.learned import Trial
from eutely.report import render
from eutely.report.page import flat
from eutely.results import Report, Shown
from toy_reports import bare, toy_cohort, toy_report


def data_of(page: str) -> dict:
    script = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert script is not None
    return json.loads(script[1])


def unpack(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def test_names_cannot_break_the_page() -> None:
    atlas, report = toy_report(3, 20)
    evil = replace(report.specimens[0], name="</script><script>alert(1)</script>")
    page = render(atlas, replace(report, specimens=(evil, *report.specimens[1:])))
    assert "<script>alert" not in page
    assert data_of(page)["specimens"][0]["name"] == evil.name


def test_the_page_holds_the_numbers() -> None:
    atlas, report = toy_report(4, 20)
    data = data_of(render(atlas, report))
    assert data["names"] == list(atlas.names)
    np.testing.assert_allclose(
        unpack(data["means"], "<f4").reshape(-1, 3), atlas.means, rtol=1e-5, atol=1e-4
    )
    places = unpack(data["places"], "<u2").reshape(-1, 3) * data["step"] + data["low"]
    positions = np.concatenate([shown.positions for shown in report.specimens])
    np.testing.assert_allclose(places, positions, atol=0.02)
    cells = unpack(data["cells"], "<i4")
    assert cells.tolist() == np.concatenate([shown.cells for shown in report.specimens]).tolist()
    sure = unpack(data["sure"], "u1")
    confidence = np.concatenate([shown.confidence for shown in report.specimens])
    assert ((sure == 255) == np.isnan(confidence)).all()
    known = confidence[np.isfinite(confidence)]
    np.testing.assert_allclose(sure[sure < 255] / 250, known, atol=0.003)


def test_large_ids_are_exact() -> None:
    atlas, shown = toy_cohort(2, 20)
    ids = np.array([0, 2**31 - 1, 2**31, 2**32 + 7, 2**53 - 1, 2**53, *range(14)])
    data = data_of(render(atlas, Report(specimens=(replace(shown[0], ids=ids), shown[1]))))
    assert unpack(data["ids"], "<f8").tolist() == [*ids.tolist(), *shown[1].ids.tolist()]


def test_only_uncertain_nuclei_have_alternatives() -> None:
    atlas, report = toy_report(4, 20)
    others = data_of(render(atlas, report))["others"]
    swapped = [20 + int(np.flatnonzero(report.specimens[1].cells == cell)[0]) for cell in (7, 8)]
    assert {number: others[str(number)] for number in swapped} == {
        swapped[0]: [[8, 60]],
        swapped[1]: [[7, 60]],
    }
    sure = np.concatenate([shown.confidence for shown in report.specimens]) >= 0.9
    assert not any(sure[int(number)] for number in others)


def test_unusual_reports_have_a_page() -> None:
    atlas, shown = toy_cohort(2, 20)
    worm = shown[0]
    nowhere = replace(worm, positions=np.full((20, 3), np.nan), confidence=np.full(20, np.nan))
    empty = Shown(
        "empty", np.zeros((0, 3)), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int64)
    )
    failed = (
        Trial("linear", 0, {}, (float("inf"),)),
        Trial("sparsity", 0, {}, (1.0, float("nan"))),
    )
    page = render(atlas, Report(specimens=(nowhere, empty), trials=failed))
    assert 'id="learning"' not in page
    same = [Trial("linear", number, {}, (-5.0,)) for number in range(3)]
    pareto = [Trial("sparsity", number, {}, (1.0, 2.0)) for number in range(3)]
    assert "<svg" in render(atlas, Report(specimens=(worm,), trials=(*same, *pareto)))


def test_the_page_begins_with_what_to_check() -> None:
    page = render(*toy_report(6, 60))
    assert page.index("What to check") < page.index('id="atlas"')
    assert page.index("3 nuclei have no cell") < page.index('id="atlas"')


def test_stages_of_learning_have_plain_names() -> None:
    page = render(*toy_report(3, 20))
    assert "Stage 2: which assignments to allow" in page
    assert "Fewer assignments or a lower loss" in page


def test_the_total_counts_every_run_of_a_step() -> None:
    atlas, _ = toy_cohort(3, 20)
    page = render(atlas, Report(timings=(("round", 20.0), ("fit", 5.0), ("round", 30.0))))
    assert "55 s in all" in page
    assert page.count(">round<") == 4  # two bars, in the wide and in the slim figure


def test_an_atlas_alone_has_a_page() -> None:
    atlas, _ = toy_cohort(3, 20)
    page = render(atlas, Report(kind="atlas"))
    assert "An atlas of 20 cells" in page
    assert "eutely view ATLAS INPUT" in page
    assert sections(page) == ["atlas", "run"]


def test_no_section_says_only_that_there_is_nothing() -> None:
    atlas, shown = toy_cohort(3, 20)
    page = render(atlas, Report(kind="build", specimens=tuple(map(bare, shown))))
    assert sections(page) == ["atlas", "specimens", "run"]
    assert "eutely evaluate ATLAS INPUT" in page
    assert "<svg" not in page
    everything = render(*toy_report(3, 20))
    assert sections(everything) == [
        "atlas", "specimens", "consistency", "accuracy", "learning", "run"
    ]  # fmt: skip


def sections(page: str) -> list[str]:
    """Return the sections of a page, each of which the menu leads to."""
    found = re.findall(r'<section id="(\w+)">', page)
    assert re.findall(r'<a href="#(\w+)">', page) == found
    return found


def test_a_large_page_is_small_enough_to_send() -> None:
    random = np.random.default_rng(0)
    atlas, _ = toy_cohort(3, 20)
    worms = tuple(
        Shown(
            f"worm{number}",
            random.normal(size=(558, 3)),
            random.integers(0, 20, 558).astype(np.int32),
            random.random(558),
            random.integers(0, 10**6, 558),
            tuple(f"cell{cell}" for cell in range(558)),
        )
        for number in range(100)
    )
    assert len(render(atlas, Report(specimens=worms)).encode()) < 2_000_000


def test_the_page_loads_nothing() -> None:
    page = render(*toy_report(3, 20))
    assert re.findall(r'(?:src|href)="(?!#)', page) == []
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_equal_reports_give_equal_pages() -> None:
    assert render(*toy_report(3, 20)) == render(*toy_report(3, 20))


def test_nested_parameters_become_rows() -> None:
    rows = flat({"a": {"b": 1.23456, "c": [1, 2.5]}, "d": "word", "e": np.eye(2)})
    assert rows == [("a.b", "1.235"), ("a.c", "(1, 2.5)"), ("d", "word"), ("e", "((1, 0), (0, 1))")]


def test_a_report_of_another_atlas_is_refused() -> None:
    atlas, shown = toy_cohort(3, 20)
    wrong = replace(shown[0], cells=shown[0].cells + 20)
    with pytest.raises(EutelyError, match="another atlas"):
        render(atlas, Report(specimens=(wrong,)))


def test_pins_are_listed_and_escaped() -> None:
    atlas, shown = toy_cohort(2, 20)
    pins = (("worm001", 3, "<b>"), ("worm001", 4, ""))
    page = render(atlas, Report(specimens=shown, pins=pins))
    assert "2 pinned nuclei" in page
    assert "<td>3</td><td>&lt;b&gt;</td>" in page
    assert "(no cell)" in page


def test_true_names_keep_their_spelling() -> None:
    atlas, report = toy_report(3, 20)
    lexicon = data_of(render(atlas, report))["lexicon"]
    assert set(lexicon) == set(report.specimens[0].names)
