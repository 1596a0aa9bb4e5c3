"""The first screen in words."""

from dataclasses import replace

import numpy as np
import pytest

from eutely.report.words import checks, duration, headline, tiles
from eutely.results import Report
from toy_reports import bare, toy_cohort, toy_report


def test_the_headline_fits_what_was_done() -> None:
    atlas, report = toy_report(3, 20)
    assert headline(atlas, report) == "20 cells found in 3 specimens"
    assert headline(atlas, replace(report, kind="annotate")) == "3 specimens annotated"
    assert headline(atlas, Report(kind="atlas")) == "An atlas of 20 cells"


def test_checks_begin_with_the_worst() -> None:
    atlas, report = toy_report(6, 60)
    found = checks(atlas, report)
    assert found[0].level == "bad"
    assert report.specimens[-1].name in found[0].what
    assert found[0].specimens == (5,)
    assert any("3 nuclei have no cell" in check.what for check in found)


def test_many_outliers_are_counted_rather_than_listed() -> None:
    atlas, shown = toy_cohort(8, 20)
    outliers = tuple(replace(worm, outlier="its pose is unlikely") for worm in shown)
    bad = [check for check in checks(atlas, Report(specimens=outliers)) if check.level == "bad"]
    assert len(bad) == 7
    assert bad[-1].what == "2 more specimens stand out."


def test_a_run_without_trouble_says_so() -> None:
    atlas, shown = toy_cohort(3, 20)
    fine = tuple(
        replace(worm, cells=np.arange(20), confidence=np.ones(20), outlier="") for worm in shown
    )
    common = replace(atlas, rare=np.zeros(20, bool))
    assert [check.level for check in checks(common, Report(specimens=fine))] == ["good"]


def test_what_is_not_known_has_no_tile() -> None:
    atlas, shown = toy_cohort(3, 20)
    report = Report(specimens=tuple(map(bare, shown)))
    assert [tile.what for tile in tiles(atlas, report)] == ["cells", "specimens"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.123, "0.12 s"), (59.0, "59 s"), (61.2, "1 min 1 s"), (3720.0, "1 h 2 min")],
)
def test_times_are_readable(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_confident_and_uncertain_nuclei_add_up() -> None:
    atlas, report = toy_report(6, 60)
    tile = next(tile for tile in tiles(atlas, report) if tile.what == "confident")
    confidence = np.concatenate([shown.confidence for shown in report.specimens])
    matched = int(np.isfinite(confidence).sum())
    uncertain = int((confidence < 0.5).sum())
    assert tile.value == str(matched - uncertain)
    assert f"{uncertain} uncertain" in tile.more
    assert "mean confidence" in tile.more
