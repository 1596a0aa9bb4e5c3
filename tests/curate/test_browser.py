"""The page in a real Chromium: by mouse, by keyboard, in two tabs, with a killed server."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import chromium
from eutely.io.pins import read_pins
from toy_curation import EVIL, toy_folder

pytest.importorskip("uvicorn", reason="uvicorn is not installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.mktemp("toy") / "annotated", evil=True, volumes=True)


class Server:
    """``eutely curate`` in a process of its own."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        code = "from eutely.cli import main; main()"
        words = ["curate", str(folder), "--no-browser", "--port", str(port), *options]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.split(":")[2].split("/")[0])

    def stop(self, number: int = signal.SIGINT) -> str:
        """Send a signal; return the rest of the output."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)[0]


@pytest.fixture(scope="module")
def served(made: Path) -> Iterator[tuple[Path, Server]]:
    server = Server(made, "--author", "ann")
    yield made, server
    line = server.stop()
    assert line.startswith("stopped; ")
    assert "pins.csv" in line
    assert server.process.returncode == 130


class Page:
    """A window of the browser at the page, with what it complained about."""

    def __init__(self, browser: Any, address: str, width: int = 1400) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 950})
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        self.ready()

    def ready(self) -> None:
        """Wait for the first question."""
        self.until("window.eutely?.desk.open && eutely.desk.row >= 0 && eutely.scene.scale > 0")

    def ask(self, expression: str, given: Any = None) -> Any:
        """Evaluate JavaScript in the page."""
        return self.page.evaluate(f"(given) => ({expression})", given)

    def until(self, expression: str, given: Any = None) -> None:
        """Wait until an expression is true; the page allows no evaluation of text by itself."""
        self.settled(lambda: bool(self.ask(f"!!({expression})", given)), expression)

    def settled(self, test: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + 60
        while not test():
            assert time.monotonic() < end, f"waited for {what}: {self.messages} {self.state()}"
            self.page.wait_for_timeout(30)

    def state(self) -> Any:
        """Return what the page shows, for failures."""
        desk = "eutely.desk"
        parts = ("number", "revision", "solved", "asked", "reached", "queue.length")
        listed = ", ".join(f"{desk}.open.{part}" for part in parts)
        saved = "document.getElementById('saved').textContent"
        return self.ask(f"[location.hash, {desk}.row, {listed}, {saved}]")

    def answered(self) -> None:
        """Wait until the last correction is on disk and the specimen matched again."""
        self.until(
            "document.getElementById('saved').textContent !== 'saving …' && "
            "eutely.desk.open.solved === eutely.desk.open.revision && "
            "eutely.desk.open.asked === eutely.desk.open.solved"
        )

    @property
    def row(self) -> int:
        return int(self.ask("eutely.desk.row"))

    def cell(self, row: int) -> int:
        return int(self.ask("eutely.desk.open.cells[given]", row))

    def id(self, row: int) -> int:
        return int(self.ask("eutely.desk.open.ids[given]", row))


@pytest.fixture
def window(served: tuple[Path, Server], browser: Any) -> Iterator[Page]:
    page = Page(browser, served[1].address)
    yield page
    assert page.messages == []
    assert all(url.startswith(served[1].address) for url in page.requests if url != "data:,")
    page.page.close()


def pins(served: tuple[Path, Server]) -> dict[int, Any]:
    path = served[0] / "pins.csv"
    return {key[1]: cell for key, cell in read_pins(path).items()} if path.exists() else {}


def test_correct_by_mouse_undo_and_redo(window: Page, served: tuple[Path, Server]) -> None:
    row = int(window.ask("eutely.desk.open.queue.find(({row}) => "
                         "eutely.desk.open.others[row].length).row"))  # fmt: skip
    window.page.mouse.click(*place(window, row))
    window.until("eutely.desk.row === given", row)
    other = int(window.ask("eutely.desk.open.others[given][0][0]", row))
    before = window.cell(row)
    window.page.locator("#card .choice").first.click()
    window.answered()
    assert window.cell(row) == other
    assert window.page.locator("#saved").inner_text() == "saved"
    assert window.id(row) in pins(served)
    assert "you said so" in window.page.locator("#changes").inner_text()
    window.page.click("#undo")
    window.until("eutely.desk.open.redo")
    window.answered()
    assert window.cell(row) == before
    assert window.id(row) not in pins(served)
    window.page.click("#redo")
    window.until("!eutely.desk.open.redo")
    window.answered()
    assert window.cell(row) == other
    window.page.keyboard.press("u")
    window.until("eutely.desk.open.redo")
    window.answered()


def place(window: Page, row: int) -> tuple[float, float]:
    """Bring a nucleus to the front and return its position in the window."""
    window.ask(
        "(eutely.pick(given, true), eutely.scene.zoomAt(4, 0, 0), eutely.pick(given, true), 0)", row
    )
    window.page.wait_for_timeout(100)
    x, y = window.ask(
        """(() => {
            const view = eutely.scene, box = view.stage.getBoundingClientRect();
            const body = eutely.cells.count + given;
            for (let step = 0; step < 60; step++) {
                view.draw();
                const { x, y } = view.where(body);
                if (view.pick(x, y) === body) break;
                view.rotate(0.1, 0.07);
            }
            view.draw();
            const { x, y } = view.where(body);
            return [box.left + x, box.top + y];
        })()""",
        row,
    )
    window.ask("(eutely.pick(-1), 0)")
    return x, y


def test_the_keyboard_alone_suffices(window: Page, served: tuple[Path, Server]) -> None:
    keys = window.page.keyboard
    first = window.row
    name = window.page.locator("#card h2").inner_text()
    keys.press("Enter")  # the name is right
    window.answered()
    assert window.id(first) in pins(served)
    assert window.row != first  # the next question
    assert name != ""
    row = window.row
    keys.press("t")
    keys.type("no ce")
    assert window.page.locator("#completions li").first.inner_text().startswith("no cell")
    keys.press("Enter")
    window.answered()
    assert window.cell(row) == -1
    assert pins(served)[window.id(row)] == ""
    keys.press("u")
    window.until("eutely.desk.open.redo")
    window.answered()
    here = window.row
    keys.press("j")
    assert window.row != here
    keys.press("k")
    assert window.row == here
    keys.press("?")
    assert window.page.locator("#keys").is_visible()
    keys.press("Escape")
    window.page.locator("#keys").wait_for(state="hidden")
    keys.press("]")
    window.until("eutely.desk.open.number === 1 && eutely.desk.row >= 0")
    keys.press("[")
    window.until("eutely.desk.open.number === 0 && eutely.desk.row >= 0")


def test_completion_swaps_and_unknown_names(window: Page, served: tuple[Path, Server]) -> None:
    keys = window.page.keyboard
    row = window.row
    cell = window.cell(row)
    other = int(window.ask("eutely.desk.open.cells.findIndex((cell, row) => cell >= 0 && "
                           "row !== given && !eutely.desk.pinned.has(row))", row))  # fmt: skip
    wanted = window.cell(other)
    title = window.ask("eutely.cells.names[given]", wanted)
    keys.press("s")  # swap, and type with which
    assert "Swap" in window.page.locator("#card .mode").inner_text()
    keys.press("t")
    keys.type(title.lower())
    keys.press("Enter")
    window.answered()
    assert [window.cell(row), window.cell(other)] == [wanted, cell]
    assert {window.id(row), window.id(other)} <= set(pins(served))
    keys.press("Control+z")
    window.until("eutely.desk.open.redo")
    window.answered()
    keys.press("/")
    keys.type("nobody")
    assert window.page.locator("#completions").inner_text() == "the atlas has no cell called nobody"
    keys.press("Enter")
    assert "no cell called nobody" in window.page.locator("#saved").inner_text()
    keys.press("Escape")
    assert window.page.locator("#name").input_value() == ""
    keys.press("t")
    keys.type(title[:2])
    listed = window.page.locator("#completions li span").all_inner_texts()
    assert len(listed) > 1
    assert all(title[:2].lower() in each.lower() for each in listed)
    keys.press("ArrowDown")
    assert "chosen" in window.page.locator("#completions li").nth(1).get_attribute("class")
    keys.press("Escape")


def test_a_name_is_text_everywhere(window: Page) -> None:
    row = int(window.ask("eutely.desk.open.cells.indexOf(0)"))
    window.ask("(eutely.pick(given, true), 0)", row)
    assert window.page.locator("#card h2").inner_text() == EVIL
    window.page.keyboard.press("t")
    window.page.keyboard.type("<img")
    assert window.page.locator("#completions li span").first.inner_text() == EVIL
    assert window.page.locator("#card img, #queue img, #completions img, #tip img").count() == 0
    assert "hacked" not in window.page.title()
    window.page.keyboard.press("Escape")


def test_slices_show_the_nucleus_and_lead_to_others(window: Page) -> None:
    window.page.locator("#slices canvas").nth(2).wait_for()
    row = window.row
    box = window.page.locator("#slices canvas").first.bounding_box()
    window.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert window.row == row


def test_a_nucleus_without_an_outline_is_marked(window: Page) -> None:
    """An image without labels: a cross around the centre of the slice, which stays as it is."""
    shown = window.page.evaluate("""() => {
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 96;
        const ink = canvas.getContext("2d");
        drawCross(ink, canvas);
        const { data } = ink.getImageData(0, 0, 96, 96);
        return [[48, 48], [58, 48], [36, 48], [48, 58], [48, 36], [58, 58]].map(
            ([x, y]) => data[4 * (96 * y + x) + 3]);
    }""")
    assert shown == [0, 255, 255, 255, 255, 0]


def test_a_reload_keeps_all_and_two_tabs_see_each_other(
    window: Page, served: tuple[Path, Server], browser: Any
) -> None:
    other = Page(browser, served[1].address)
    row = window.row
    window.page.keyboard.press("Enter")
    window.answered()
    other.until("eutely.desk.pinned.has(given)", row)
    assert other.row == row  # nothing moves under a person's hands
    other.page.keyboard.press("j")
    second = other.row
    assert second != row
    other.page.keyboard.press("Enter")
    other.answered()
    window.until("eutely.desk.pinned.has(given)", second)
    settled = {window.id(row), window.id(second)}
    assert settled <= set(pins(served))
    window.page.reload()
    window.ready()
    assert window.ask("given.every((row) => eutely.desk.pinned.has(row))", [row, second])
    # A window that has not seen a change cannot overwrite it.
    third = window.row
    other.ask("(eutely.desk.open.revision = 0, eutely.settle([[given, -1]]), 0)", row)
    other.until("document.getElementById('saved').textContent.includes('another window')")
    other.until("eutely.desk.pinned.get(given) >= 0", row)
    assert pins(served)[window.id(row)] != ""
    assert third >= 0
    assert [text for text in other.messages if "409" not in text] == []
    other.page.close()


def test_a_window_goes_on_beside_others_and_takes_nothing_back_that_it_has_not_seen(
    served: tuple[Path, Server], browser: Any, window: Page
) -> None:
    other = Page(browser, served[1].address)
    other.ask("(location.hash = 1, 0)")
    other.until("eutely.desk.open.number === 1 && eutely.desk.row >= 0")
    window.page.keyboard.press("Enter")
    window.answered()
    # Corrections of other specimens, not seen yet, are no conflict; keys pressed at once neither.
    stale = "eutely.desk.open.revision = 0"
    rows = other.ask("eutely.desk.open.queue.slice(0, 3).map(({ row }) => row)")
    other.ask(f"({stale}, given.forEach((row) => eutely.settle([[row, -1]])), 0)", rows)
    other.until("document.getElementById('saved').textContent === 'saved'")
    other.answered()
    assert {other.id(row) for row in rows} <= set(pins(served))
    other.page.close()
    # An undo of what the window has not seen is.
    before = pins(served)
    third = Page(browser, served[1].address)
    third.ask("(location.hash = 1, 0)")
    third.until("eutely.desk.open.number === 1 && eutely.desk.row >= 0")
    third.ask(f"({stale}, document.dispatchEvent(new KeyboardEvent('keydown', {{key: 'u'}})), 0)")
    third.until("document.getElementById('saved').textContent.includes('another window, nucleus')")
    assert pins(served) == before
    third.page.close()


def test_a_foreign_page_can_neither_read_nor_write(
    served: tuple[Path, Server], browser: Any, tmp_path: Path
) -> None:
    before = pins(served)
    page = browser.new_page()
    evil = tmp_path / "evil.html"
    evil.write_text("<p>evil</p>")
    page.goto(evil.as_uri())
    results = page.evaluate(
        """async (address) => {
            const attempt = (promise) => promise.then((answer) => answer.text(), () => "refused");
            const body = JSON.stringify({ cells: [[1, -1]], seen: 1000 });
            const path = `${address}specimens/0/correct`;
            const send = (headers) => fetch(path, { method: "POST", headers, body });
            return [
                await attempt(fetch(`${address}specimens`)),
                await attempt(send({ "content-type": "application/json" })),
                await attempt(send({ "content-type": "text/plain" })),
            ];
        }""",
        served[1].address,
    )
    assert results == ["refused"] * 3
    assert pins(served) == before
    page.close()


def listed(window: Page) -> list[str]:
    """Return the names of the questions on the page, in their order."""
    return window.page.locator("#queue .row span").all_inner_texts()


def test_the_question_on_the_card_is_the_first_of_the_list(window: Page) -> None:
    keys = window.page.keyboard
    card = window.page.locator("#card h2")
    before = listed(window)
    assert before[0] == card.inner_text()
    keys.press("j")  # passed over: it comes last
    assert listed(window) == [*before[1:], before[0]] or len(before) == 12
    assert listed(window)[0] == before[1] == card.inner_text()
    keys.press("k")
    assert listed(window)[:2] == before[:2]
    assert card.inner_text() == before[0]
    keys.press("Enter")
    window.answered()
    assert listed(window)[0] == card.inner_text()
    keys.press("u")
    window.answered()


def test_at_the_goal_enter_goes_on(made: Path, tmp_path: Path, browser: Any) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    server = Server(copy, "--until", "0")  # the goal is reached at once
    window = Page(browser, server.address)
    assert window.ask("eutely.desk.open.reached")
    for _ in range(2):
        row = window.row
        window.page.keyboard.press("Enter")
        window.answered()
        assert window.row != row
    window.page.close()
    server.stop()


@pytest.mark.parametrize("width", [1400, 390])
def test_the_nucleus_and_its_name_are_in_the_picture(
    served: tuple[Path, Server], browser: Any, width: int
) -> None:
    window = Page(browser, served[1].address, width)
    assert window.page.locator("#specimen-stage .legend").count() == 0  # it covers no nucleus
    assert window.page.locator("#legend").inner_text() != ""
    window.page.keyboard.press("g")
    where = "eutely.scene.where(given)"
    cells_ = int(window.ask("eutely.cells.count"))
    stage = window.ask("[eutely.scene.stage.clientWidth, eutely.scene.stage.clientHeight]")
    for body in (cells_ + window.row, window.cell(window.row)):
        spot = window.ask(where, body)
        assert 0 < spot["x"] < stage[0]
        assert spot["y"] - spot["half"] > 15  # room for its name above
        assert spot["y"] < stage[1] - 10
    window.page.close()


def test_lists_are_as_wide_as_a_phone(served: tuple[Path, Server], browser: Any) -> None:
    window = Page(browser, served[1].address, 390)
    assert window.ask("document.documentElement.scrollWidth") <= 390
    widths = {window.page.locator(place_).bounding_box()["width"] for place_ in ("#card", "#queue")}
    assert len(widths) == 1
    assert window.page.locator("header").bounding_box()["height"] < 150  # it stays in sight
    assert window.page.locator("#undo").is_visible()
    window.page.close()


@pytest.mark.parametrize("width", [1400, 820])
def test_everything_fits_on_a_screen_and_a_tablet(
    served: tuple[Path, Server], browser: Any, width: int
) -> None:
    window = Page(browser, served[1].address, width)
    assert window.ask("document.documentElement.scrollWidth") <= width
    for place_ in ("#goal", "#card h2", "#card .actions", "#queue .row", "#specimen-stage"):
        box = window.page.locator(place_).first.bounding_box()
        assert box["width"] > 20
        assert box["x"] + box["width"] <= width + 1
    window.page.close()


def test_a_killed_server_loses_nothing(made: Path, tmp_path: Path, browser: Any) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "annotated"))
    (folder / "pins.csv").unlink(missing_ok=True)
    server = Server(folder)
    window = Page(browser, server.address)
    row = window.row
    window.page.keyboard.press("Enter")
    window.until("document.getElementById('saved').textContent === 'saved'")
    server.stop(signal.SIGKILL)  # as soon as the page says so
    assert server.process.returncode == -signal.SIGKILL
    assert [key[1] for key in read_pins(folder / "pins.csv")] == [window.id(row)]
    window.until("document.getElementById('saved').textContent.includes('does not answer')")
    window.page.close()
    again = Server(folder, "--read-only", port=server.port)
    second = Page(browser, again.address)
    assert second.ask("eutely.desk.pinned.has(given)", row)
    assert second.page.locator("#card .actions").count() == 0
    second.page.close()
    assert again.stop() == "stopped; read-only: nothing was changed\n"
    assert os.path.exists(folder / "pins.csv")


def test_nuclei_are_coloured_by_ganglion(tmp_path: Path, browser: Any) -> None:
    from typer.testing import CliRunner

    from eutely.cli import app
    from eutely.io.tables import write_table
    from toy_heads import head

    write_table(head("worm", seed=1), tmp_path / "worm.csv")
    words = ["annotate", "celegans-adult-head", str(tmp_path / "worm.csv"), "-o"]
    assert CliRunner().invoke(app, [*words, str(tmp_path / "named")]).exit_code == 0
    server = Server(tmp_path / "named")
    page = Page(browser, server.address)
    assert page.page.locator("#paint [value=group]").inner_text() == "ganglion"
    page.page.select_option("#paint", "group")
    shown = page.page.locator("#legend .item").all_inner_texts()
    assert shown[-1] == "other"
    assert "lateral ganglion" in shown
    same = "groupHue(eutely.desk.open.cells[given]).join() === tint(given).join()"
    assert page.ask(same, 3)
    assert page.messages == []
    page.page.close()
    server.stop()
