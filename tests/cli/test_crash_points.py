"""A sample of `benchmarks/safety/crash.py`: ended, or without space, at single uses of files."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eutely.io.exchange import export_atlas
from eutely.io.pins import Change, append_pins, read_pins
from eutely.io.whole import new_text
from eutely.io.written import tables_in
from toy_curation import toy_folder
from toy_reports import toy_cohort

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="processes of POSIX"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from safety import crash

    return crash


def survive(crash: Any, place: Path, folder: str, work: Callable[[], object], every: int = 1):
    """Disturb some work in a folder of ``place``; return the number of moments that were tried."""
    rows = crash.commanded(crash.Command("work", work, folder), place, every)
    assert [row["first faults"] for row in rows] == ["", ""]
    assert all(row["ended early"] for row in rows)
    return sum(row["points"] for row in rows)


def three_files(content: str) -> None:
    with tables_in(Path("out"), content) as aside:
        for name in ("one.csv", "report.html", "two.csv"):
            with new_text(aside / name) as file:
                file.write(f"{name} {content}</body>")


def test_files_of_a_commit_are_all_old_or_all_new(crash: Any, tmp_path: Path) -> None:
    place = tmp_path / "place"
    crash.run(partial(three_files, "first"), crash.copied(BENCHMARKS / "safety", place))
    crash.noted(place / "out" / "report.html")
    assert survive(crash, place, "out", partial(three_files, "second")) >= 40


def test_pins_of_a_person_are_never_lost(crash: Any, tmp_path: Path) -> None:
    pins = tmp_path / "place" / "annotated" / "pins.csv"
    pins.parent.mkdir(parents=True)
    pins.write_text("specimen,id,name,remark\nworm,1,A,surely\n")

    def work() -> None:
        path = Path("annotated/pins.csv")
        if ("worm", 2) not in read_pins(path):
            append_pins([Change("worm", 2, "B", "ann", "2026-01-01T00:00:00Z")], path)

    assert survive(crash, tmp_path / "place", "annotated", work) >= 10


def test_an_exported_atlas_is_there_or_not(crash: Any, tmp_path: Path) -> None:
    atlas, _ = toy_cohort(3, 20)
    (tmp_path / "place").mkdir()

    def work() -> None:
        if not Path("exported").exists():
            export_atlas(atlas, Path("exported"))

    assert survive(crash, tmp_path / "place", "exported", work) >= 20


def test_a_curated_folder_keeps_what_was_acknowledged(crash: Any, tmp_path: Path) -> None:
    place = tmp_path / "place"
    toy_folder(place / "annotated", 2, 20)
    pins = "specimen,id,name,cell,remark\nworm001,1,,1,surely\n"
    (place / "annotated" / "pins.csv").write_text(pins)
    crash.noted(place / "annotated" / "report.html")
    assert survive(crash, place, "annotated", crash.curated, every=5) >= 12


def test_a_build_ends_in_the_same_bytes(crash: Any, tmp_path: Path) -> None:
    rows = crash.survey(tmp_path, ["build"], every=19)
    assert sum(row["points"] for row in rows) >= 8
    assert [row["first faults"] for row in rows] == ["", ""]


def test_a_fault_is_seen(crash: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are replaced one by one are found to be of two generations."""

    def one_by_one() -> None:
        for name in ("one.csv", "two.csv"):
            Path("out").mkdir(exist_ok=True)
            with tables_in(Path("out")) as aside, new_text(aside / name) as file:
                file.write(f"{name} second")

    place = tmp_path / "place"
    crash.run(partial(three_files, "first"), crash.copied(BENCHMARKS / "safety", place))
    rows = crash.commanded(crash.Command("work", one_by_one, "out"), place, 1)
    assert all("one.csv of after" in row["first faults"] for row in rows)
