"""Make the screenshots of the documentation from the folder of ``eutely demo``.

    eutely demo -o demo && python docs/images/screens.py demo

Needs Chromium and playwright; ``curate`` as second argument makes those of ``eutely curate``
instead (needs eutely[curate]), ``compare`` that of ``eutely compare``, of the example in
docs/compare.md, and ``napari`` that of the plugin (needs eutely[napari] and a screen, for example
that of xvfb-run).
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import PIL.Image

HERE = Path(__file__).parent
SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def eutely(*words: object) -> None:
    """Run a command of eutely."""
    code = "from eutely.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *map(str, words)], check=True)


def report(demo: Path) -> None:
    """Take pictures of the page of a run whose cells have names."""
    from playwright.sync_api import sync_playwright

    run = demo / "screens"
    shutil.copytree(demo / "run", run, dirs_exist_ok=True)
    shutil.copy(demo / "named.h5", run / "atlas.h5")
    eutely("report", run, "-q")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=SOFTWARE
        )
        page = browser.new_page(viewport={"width": 1280, "height": 850})
        page.goto((run / "report.html").resolve().as_uri())
        page.wait_for_function("window.eutely && eutely.atlas.scale > 0")
        page.wait_for_timeout(500)
        shoot(page, HERE / "report.png")
        page.locator("#specimens").scroll_into_view_if_needed()
        page.evaluate("document.getElementById('specimens').scrollIntoView()")
        page.locator("#doubtful .row").nth(3).click()
        page.wait_for_timeout(500)
        shoot(page, HERE / "report-specimen.png", {"x": 0, "y": 42, "width": 1280, "height": 620})
        browser.close()


def compare(demo: Path) -> None:
    """Take a picture of the page of the example of docs/compare.md."""
    from playwright.sync_api import sync_playwright

    place = demo / "compare"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    page_text = (HERE.parent / "compare.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", page_text, re.M | re.S)
    eutely("simulate", "-o", place / "worms", "--specimens", 10, "--cells", 80, "-q")
    eutely("build", place / "worms", "-o", place / "run", "--supervised", "-q")
    here = Path.cwd()
    os.chdir(place)
    for language, text in blocks[:3]:
        if language == "python":
            exec(compile(text, "compare.md", "exec"), {})
        else:
            eutely(*text.split()[1:])
    os.chdir(here)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=SOFTWARE
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1560})
        page.goto((place / "compared" / "compare.html").resolve().as_uri())
        page.wait_for_timeout(3000)
        shoot(page, HERE / "compare.png")
        browser.close()


def curate(demo: Path) -> None:
    """Take pictures of a curation: a question, and what an answer changed."""
    from playwright.sync_api import sync_playwright

    volumes = demo / "curate-volumes"
    if not volumes.exists():
        options = (
            "--specimens",
            2,
            "--seed",
            7,
            "--shift",
            2,
            "--format",
            "tif",
            "--voxel-size",
            1,
        )
        eutely("simulate", "-o", volumes, *options)
    words = ["curate", demo / "named.h5", volumes, "-o", demo / "curated", "--no-browser"]
    code = "from eutely.cli import main; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=SOFTWARE
        )
        page = browser.new_page(viewport={"width": 1400, "height": 960})
        page.goto(address)
        page.locator("#queue .row").first.wait_for(timeout=300_000)
        page.locator("#slices canvas").first.wait_for()
        page.locator("#queue .row").first.click()
        page.wait_for_timeout(1500)
        shoot(page, HERE / "curate.png")
        page.keyboard.press("1")
        page.locator("#changes table").wait_for()
        page.wait_for_timeout(1500)
        shoot(page, HERE / "curate-changes.png", {"x": 970, "y": 50, "width": 430, "height": 760})
        browser.close()
    server.send_signal(signal.SIGINT)
    server.wait()


def shoot(page: object, path: Path, clip: dict[str, float] | None = None) -> None:
    """Save a picture of the window with a palette: a third of the size."""
    page.screenshot(path=path, clip=clip)  # type: ignore[attr-defined]
    shrink(path)


def shrink(path: Path) -> None:
    """Give a picture a palette."""
    picture = PIL.Image.open(path).convert("RGB")
    rare = PIL.Image.Quantize.MAXCOVERAGE  # a red nucleus is few pixels, and what one looks for
    picture.quantize(256, rare, dither=PIL.Image.Dither.NONE).save(path, optimize=True)


def napari(demo: Path) -> None:
    """Take a picture of the plugin at an uncertain nucleus."""
    import napari
    from qtpy.QtWidgets import QApplication

    from eutely.napari.reader import read_layers
    from eutely.napari.widget import Check

    volumes = demo / "volumes"
    if not volumes.exists():
        options = ("--specimens", 1, "--seed", 1, "--format", "tif", "--voxel-size", 1.5)
        eutely("simulate", "-o", volumes, *options)
        eutely("annotate", demo / "named.h5", volumes, "-o", volumes / "named")
    viewer = napari.Viewer(title="eutely")
    viewer.window.resize(1280, 760)
    widget = Check(viewer)
    viewer.window.add_dock_widget(widget, name="Check names", area="right")
    for data, options, kind in read_layers(str(volumes / "worm001.tif")):
        getattr(viewer, f"add_{kind}")(data, **options)
    widget.list.setCurrentRow(2)
    widget.camera.zoom = 9
    for _ in range(20):
        QApplication.processEvents()
        time.sleep(0.1)
    viewer.screenshot(str(HERE / "napari.png"), canvas_only=False, flash=False)
    shrink(HERE / "napari.png")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if "napari" in sys.argv[2:]:
        napari(place)
    elif "curate" in sys.argv[2:]:
        curate(place)
    elif "compare" in sys.argv[2:]:
        compare(place)
    else:
        report(place)
