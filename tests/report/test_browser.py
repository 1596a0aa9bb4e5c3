"""The page in a real browser: it draws, reacts to mouse and keyboard, and loads nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import chromium, until
from eutely.report import render
from eutely.results import Report
from toy_reports import toy_cohort, toy_report


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


class Opened:
    """A page, with the messages and requests it made while it was open."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        until(self.page, "window.eutely && eutely.atlas.scale > 0")

    def place(self, view: str, body: int) -> tuple[float, float]:
        """Scroll to a body and return its position in the window."""
        self.page.locator(f"#{view}-stage").scroll_into_view_if_needed()
        x, y = self.page.evaluate(
            """([view, body]) => {
                const viewer = eutely[view], box = viewer.stage.getBoundingClientRect();
                viewer.draw();
                const { x, y } = viewer.where(body);
                return [box.left + x, box.top + y];
            }""",
            [view, body],
        )
        return x, y

    def colours(self, view: str) -> int:
        """Return the number of colours in the picture."""
        return int(
            self.page.evaluate(
                """(view) => {
                    const viewer = eutely[view], gl = viewer.gl;
                    viewer.draw();
                    const [w, h] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
                    const pixels = new Uint8Array(4 * w * h);
                    gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
                    return new Set(new Uint32Array(pixels.buffer)).size;
                }""",
                view,
            )
        )


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(*toy_report()), encoding="utf-8")
    page = Opened(browser, path)
    yield page
    # After all tests: no message of an error, and no request besides the page.
    assert page.messages == []
    assert page.requests == [path.as_uri()]


def test_both_pictures_are_drawn(opened: Opened) -> None:
    assert opened.colours("atlas") > 1000
    assert opened.colours("specimen") > 1000


def test_hovering_shows_what_a_cell_is(opened: Opened) -> None:
    # The foremost cell: nothing can hide it.
    front = opened.page.evaluate(
        """() => {
            const depths = [...Array(60).keys()].map((cell) => eutely.atlas.where(cell).depth);
            return depths.indexOf(Math.max(...depths));
        }"""
    )
    opened.page.mouse.move(*opened.place("atlas", front))
    shown = opened.page.locator("#tip").inner_text()
    assert toy_report()[0].names[front] in shown
    assert "seen in 6 of 6 specimens" in shown
    assert "spread" in shown
    opened.page.mouse.move(2, 2)
    assert opened.page.locator("#tip").is_hidden()


def test_search_finds_a_cell(opened: Opened) -> None:
    name = toy_report()[0].names[11]
    opened.page.fill("#find", name.lower())
    assert opened.page.evaluate("eutely.state.cell") == 11
    assert name in opened.page.locator("#card").inner_text()
    x, y = opened.place("atlas", 11)
    box = opened.page.locator("#atlas-stage").bounding_box()
    assert abs(x - box["x"] - box["width"] / 2) < 2
    assert abs(y - box["y"] - box["height"] / 2) < 2
    opened.page.fill("#find", "cell 12")  # by its number
    assert opened.page.evaluate("eutely.state.cell") == 12
    opened.page.fill("#find", "nobody")
    assert opened.page.locator("#found").inner_text() == "no such cell"
    opened.page.click("#atlas-reset")
    assert opened.page.evaluate("eutely.state.cell") == -1


def test_the_begin_of_a_name_is_enough(opened: Opened) -> None:
    names = sorted(toy_report()[0].names)
    begin = names[0][:2]
    several = [name for name in names if name.startswith(begin)]
    assert len(several) > 1
    opened.page.fill("#find", begin.lower())
    assert several[0] in opened.page.locator("#found").inner_text()
    for number in (0, 1):  # Enter goes from one to the next
        opened.page.press("#find", "Enter")
        chosen = opened.page.evaluate("eutely.state.cell")
        assert toy_report()[0].names[chosen] == several[number]
    assert opened.page.locator("#found").inner_text() == f"{several[1]}, 2 of {len(several)}"
    opened.page.fill("#find", "nobody")
    opened.page.press("#find", "Enter")
    assert opened.page.locator("#found").inner_text() == "no such cell"
    opened.page.click("#atlas-reset")
    assert opened.page.locator("#found").inner_text() == ""


@pytest.mark.parametrize("paint", ["group", "spread", "seen", "confidence", "accuracy", "name"])
def test_cells_can_be_coloured_by(opened: Opened, paint: str) -> None:
    opened.page.select_option("#paint", paint)
    assert opened.colours("atlas") > 500
    assert bool(opened.page.locator("#atlas-legend").inner_text()) == (paint != "name")


def test_the_slider_goes_through_the_specimens(opened: Opened) -> None:
    opened.page.locator("#slider").fill("2")
    assert opened.page.evaluate("eutely.state.specimen") == 2
    assert "confirmed by others" in opened.page.locator("#facts").inner_text()
    opened.page.locator("circle[data-specimen='5']").first.click()
    assert opened.page.evaluate("eutely.state.specimen") == 5
    assert "Check: " in opened.page.locator("#warning").inner_text()


def test_an_uncertain_nucleus_is_one_click_away(opened: Opened) -> None:
    opened.page.locator("#slider").fill("1")
    first = opened.page.locator("#doubtful .row").first
    assert "5%" in first.inner_text()
    first.click()
    cell, nucleus = opened.page.evaluate("[eutely.state.cell, eutely.state.nucleus]")
    assert cell in (7, 8)
    # Bodies: 60 cells, then the nuclei of this specimen, which follow the 60 of another specimen.
    opened.page.evaluate("(body) => eutely.specimen.onHover(body, 9, 9)", nucleus - 60 + 60)
    other = toy_report()[0].names[15 - cell]
    assert f"or {other} (60%)" in opened.page.locator("#tip").inner_text()


def test_large_ids_are_shown_in_full(browser: Any, tmp_path: Path) -> None:
    atlas, (worm, *_) = toy_cohort(3, 20)
    large = replace(worm, ids=2**53 - np.arange(20))
    path = tmp_path / "large.html"
    path.write_text(render(atlas, Report(specimens=(large,))), encoding="utf-8")
    opened = Opened(browser, path)
    opened.page.evaluate("eutely.specimen.onHover(20 + 1, 9, 9)")  # after the bodies of 20 cells
    assert f"nucleus {2**53 - 1} of {worm.name}" in opened.page.locator("#tip").inner_text()


def test_an_atlas_alone_draws(browser: Any, tmp_path: Path) -> None:
    atlas, _ = toy_cohort(3, 20)
    path = tmp_path / "atlas.html"
    path.write_text(render(atlas, Report(kind="atlas")), encoding="utf-8")
    opened = Opened(browser, path)
    assert opened.colours("atlas") > 500
    assert opened.messages == []
    assert opened.requests == [path.as_uri()]


def test_a_phone_shows_controls_beside_the_view_and_readable_charts(
    browser: Any, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    atlas, report = toy_report(6, 20)
    long = replace(report, command="eutely build a/long/path/of/specimens --preset default -o run")
    path.write_text(render(atlas, long), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll(".frame")].map((frame) => {
            const tools = frame.querySelector(".tools").getBoundingClientRect();
            return tools.bottom > frame.querySelector(".stage").getBoundingClientRect().top;
        })"""
    )
    assert overlaps == [False, False]
    assert page.evaluate(
        "[...document.querySelectorAll('.checks')].every((e) => e.scrollHeight <= e.clientHeight)"
    )
    covered = page.evaluate(
        """() => {
            const button = document.querySelector("[data-copy=command]").getBoundingClientRect();
            return [...document.querySelector("#command").getClientRects()]
                .some((line) => line.right > button.left);
        }"""
    )
    assert not covered
    sizes = page.evaluate(
        """() => [...document.querySelectorAll("figure svg")].filter((svg) => svg.clientWidth > 0)
            .map((svg) => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
    )
    assert len(sizes) >= 6
    assert min(sizes) >= 9  # pixels of the text of the charts
    page.close()


def test_the_small_view_of_a_notebook_shows_a_cell_under_the_mouse(
    browser: Any, tmp_path: Path
) -> None:
    atlas, _ = toy_report()
    bad = atlas.named(["<img src=x onerror=alert(1)>", *atlas.names[1:]])
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html>{bad._repr_html_()}", encoding="utf-8")
    page = browser.new_page(viewport={"width": 800, "height": 700})
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("canvas.scene").wait_for()
    inside = page.frames[1]
    until(inside, "small.scale > 0")
    x, y = inside.evaluate("(small.draw(), [small.where(0).x, small.where(0).y])")
    box = page.locator("iframe").bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    frame.locator("#tip:not([hidden]) b").wait_for()
    assert frame.locator("#tip b").text_content() == "<img src=x onerror=alert(1)>"
    assert frame.locator("img").count() == 0
    assert [url for url in requests if not url.startswith("file:")] in ([], ["about:srcdoc"])
    page.close()


def test_nuclei_and_cells_have_their_own_colours(browser: Any, tmp_path: Path) -> None:
    """Red nuclei beside red cells: what a NeuroPAL laboratory looks at."""
    atlas, report = toy_report()
    scores = np.where(np.arange(len(atlas)) % 2, 3.0, -3.0)[:, None] * [1.0, -1.0]
    atlas = replace(atlas, features=("R", "green"), feature_means=scores)
    reds = np.tile(np.array([[255, 30, 30]], np.uint8), (60, 1))
    shown = [replace(one, colours=reds[: len(one)]) for one in report.specimens]
    path = tmp_path / "report.html"
    path.write_text(render(atlas, replace(report, specimens=tuple(shown))), encoding="utf-8")
    page = Opened(browser, path)
    page.page.select_option("#paint", "own")
    assert page.page.evaluate("rgb(cells.colours, 1)[0] > 3 * rgb(cells.colours, 1)[1]")
    assert page.page.evaluate("rgb(cells.colours, 0)[1] > 3 * rgb(cells.colours, 0)[0]")
    page.page.select_option("#nuclei-paint", "own")
    assert page.page.evaluate("rgb(nuclei.own, 7).map((value) => Math.round(255 * value))") == [
        255, 30, 30,
    ]  # fmt: skip
    assert page.colours("specimen") > 300
    assert page.messages == []


def test_colours_that_are_not_known_are_not_offered(opened: Opened) -> None:
    assert opened.page.locator("#paint [value=own]").count() == 0
    assert opened.page.locator("#nuclei-paint [value=own]").count() == 0
