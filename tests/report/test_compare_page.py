"""The page of a comparison: safe texts; in a browser it draws, reacts, and fits a phone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eutely
from browser import chromium, until
from eutely import Comparison, Design
from eutely.plots.compared import comparison_figures, volcano
from eutely.plots.draw import encoded
from eutely.report.compared import render_comparison
from toy_groups import ENLARGED, LOST, MOVED, toy_groups, true_annotations

BAD = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    atlas, groups = toy_groups(9, 60, shift=2.5)
    given = true_annotations(atlas, groups)
    return eutely.compare(atlas, groups, design=Design(permutations=499), annotations=given)


@pytest.fixture(scope="module")
def path(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("page") / "compare.html"
    page.write_text(render_comparison(comparison, "0", "eutely compare"), encoding="utf-8")
    return page


def test_names_are_text(comparison: Comparison) -> None:
    names = (BAD, *comparison.atlas.names[1:])
    atlas = comparison.atlas.named(names)
    labels = ("control", BAD)
    animals = tuple(BAD if label == "mutant" else label for label in comparison.animals)
    contrast = replace(comparison.answers[0].contrast, name=BAD, labels=labels)
    answers = (comparison.answers[0]._replace(contrast=contrast),)
    hostile = replace(comparison, atlas=atlas, labels=labels, animals=animals, answers=answers)
    page = render_comparison(hostile, "0", BAD)
    assert "<img" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_figures_show_the_findings(comparison: Comparison) -> None:
    shown = volcano(comparison.answers[0].cells[1])
    assert shown.test == "place-relative"
    assert shown.cells[shown.found].tolist() == [MOVED]
    assert shown.effects[shown.found][0] > 1
    pytest.importorskip("matplotlib", reason="no matplotlib: pip install 'eutely[plots]'")
    figures = comparison_figures(comparison)
    assert set(figures) == {"volcano", "shifts", "detectable"}
    text = encoded(figures["volcano"], "svg").decode()
    assert comparison.atlas.names[MOVED] in text
    assert text == encoded(comparison_figures(comparison)["volcano"], "svg").decode()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def opened(browser: Any, path: Path) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    until(page, "window.eutely && eutely.testNow && eutely.atlas.scale > 0")
    yield page
    assert messages == []
    assert requests == [path.as_uri()]


def test_arrows_colours_and_dots_are_drawn(opened: Any) -> None:
    assert opened.evaluate("eutely.atlas.threads") == 6  # a line and two for its head
    assert opened.evaluate("document.querySelectorAll('#volcano circle').length") > 50
    assert opened.locator("#summary").inner_text() == "1 finding at 5% FDR"
    opened.select_option("#arrows", "0")
    assert opened.evaluate("eutely.atlas.threads") == 0
    for colour in ("significance", "detectable", "effect"):
        opened.select_option("#paint", colour)
        assert opened.locator("#atlas-legend").inner_text()


def test_the_table_is_searched_and_leads_to_the_points(opened: Any, comparison: Comparison) -> None:
    name = comparison.atlas.names[MOVED]
    opened.fill("#filter", name.lower())
    rows = opened.locator("#cell-table tbody tr")
    assert rows.count() >= 4  # all tests of the cell
    assert "place-relative" in rows.first.inner_text()
    rows.first.locator("button").click()
    assert opened.evaluate("eutely.state.cell") == MOVED
    assert opened.locator("#points-title").inner_text() == name
    assert opened.evaluate("document.querySelectorAll('#points circle').length") == 3 * 18
    opened.select_option("#test", label="size (1)")
    assert opened.evaluate("document.querySelectorAll('#points circle').length") == 18
    opened.fill("#filter", "")
    opened.check("#only")
    assert rows.count() == 1


def test_a_dot_of_the_volcano_plot_selects_its_cell(opened: Any) -> None:
    opened.select_option("#test", label="place-relative (1)")
    opened.locator(f"#volcano circle[data-pick='{MOVED}']").click()
    assert opened.evaluate("eutely.state.cell") == MOVED


def test_a_phone_shows_everything_in_its_width(browser: Any, path: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(path.as_uri())
    until(page, "window.eutely && eutely.testNow")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.evaluate(
        """() => [...document.querySelectorAll("figure svg")].filter((svg) => svg.clientWidth > 0)
            .map((svg) => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
    )
    assert min(sizes) >= 9
    card, legend = (page.locator(name).bounding_box() for name in ("#card", "#atlas-legend"))
    assert card["y"] + card["height"] <= legend["y"]  # neither covers the other
    page.close()


def test_effects_of_the_page_are_those_of_the_table(opened: Any, comparison: Comparison) -> None:
    shown = opened.evaluate("Array.from(eutely.testNow().effect)")
    np.testing.assert_allclose(shown, comparison.answers[0].cells[1].effect, rtol=1e-6)


@pytest.fixture(scope="module")
def quiet(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page of a comparison without a finding about places."""
    atlas, groups = toy_groups(9, 60, shift=0.0)
    given = true_annotations(atlas, groups)
    still = eutely.compare(atlas, groups, design=Design(permutations=499), annotations=given)
    file = tmp_path_factory.mktemp("quiet") / "compare.html"
    file.write_text(render_comparison(still, "0"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(file.as_uri())
    until(page, "window.eutely && eutely.testNow && eutely.atlas.scale > 0")
    yield page
    page.close()


def test_it_opens_on_a_test_with_findings_and_shows_the_first_one(quiet: Any) -> None:
    assert quiet.evaluate("eutely.testNow().found") >= 1
    assert quiet.evaluate("eutely.testNow().test") in ("presence", "size")
    assert quiet.evaluate("eutely.state.cell") in (ENLARGED, LOST)
    assert quiet.evaluate("document.querySelectorAll('#points circle').length") > 0
    legend = quiet.locator("#atlas-legend").inner_text()
    assert "0.00" not in legend
    quiet.select_option("#test", label="place-relative (0)")
    assert quiet.locator("#atlas-legend").inner_text() == "no finding in this test"


def test_findings_lead_to_their_test_and_cell(quiet: Any) -> None:
    for cell, test in ((LOST, "presence"), (ENLARGED, "size"), (LOST, "presence")):
        quiet.locator(f".checks button[data-pick='{cell}'][data-test='{test}']").click()
        assert quiet.evaluate("eutely.state.cell") == cell
        assert quiet.evaluate("eutely.testNow().test") == test
        assert quiet.evaluate("document.getElementById('test').value") == str(
            quiet.evaluate("eutely.chosen.test")
        )


def test_missing_cells_are_said_in_words(quiet: Any) -> None:
    text = quiet.locator(".checks").inner_text()
    assert "is missing more often: " in text
    assert "fewer per animal)" in text
    assert "duplicated" not in text
