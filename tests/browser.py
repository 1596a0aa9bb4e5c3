"""A real Chromium for tests of pages; tests are skipped where there is none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a running browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on this machine; install it, or set CHROMIUM to its path")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=SOFTWARE)
        yield running
        running.close()
