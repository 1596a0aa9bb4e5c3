"""A real Chromium for tests of pages.

Where there is none, tests are skipped; with EUTELY_BROWSER=required, as on CI, they fail.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a running browser."""
    required = os.environ.get("EUTELY_BROWSER") == "required"
    if required:
        import playwright.sync_api as api
    else:
        api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        missing = "no Chromium on this machine; install it, or set CHROMIUM to its path"
        pytest.fail(missing) if required else pytest.skip(missing)
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=SOFTWARE)
        yield running
        running.close()


def until(page: Any, condition: str, seconds: float = 30.0) -> None:
    """Wait for a condition, asked from outside: a page's policy forbids it to evaluate texts."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, f"never true: {condition}"
        page.wait_for_timeout(50)
