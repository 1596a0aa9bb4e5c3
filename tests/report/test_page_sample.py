"""Which specimens of a large cohort are on the page."""

import numpy as np
import pytest

from eutely.report import page
from eutely.report.words import Check
from eutely.results import Report, Shown


def shown(number: int, consistency: float, outlier: str = "") -> Shown:
    count = 10
    return Shown(
        f"worm{number}",
        np.zeros((count, 3)),
        np.zeros(count, np.int32) - 1,
        np.full(count, np.nan),
        np.arange(count),
        consistency=consistency,
        outlier=outlier,
    )


def cohort(count: int) -> Report:
    """Return a report in which specimen 7 stands out, and specimen 3 is the least consistent."""
    return Report(
        specimens=tuple(
            shown(k, 0.1 if k == 3 else 0.9 + 0.001 * k, "odd" if k == 7 else "")
            for k in range(count)
        )
    )


def test_a_small_cohort_is_on_the_page_as_a_whole() -> None:
    assert page.sampled(cohort(12)) == tuple(range(12))
    assert page.sampled(Report()) == ()


def test_a_large_cohort_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_NUCLEI", 60)
    kept = page.sampled(cohort(20))
    assert len(kept) == 6
    assert {3, 7, 19} <= set(kept)  # the least consistent, the outlier, the most consistent
    assert list(kept) == sorted(kept)
    report = page.with_specimens(cohort(20), kept)
    assert [one.name for one in report.specimens] == [f"worm{number}" for number in kept]


def test_more_outliers_than_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_NUCLEI", 25)
    odd = Report(specimens=tuple(shown(k, 0.5, "odd") for k in range(9)))
    assert page.sampled(odd) == (0, 1)


def test_checks_point_to_specimens_on_the_page() -> None:
    checks = [Check("bad", "odd", "", (7, 8)), Check("good", "fine", "")]
    assert [check.specimens for check in page.among(checks, (3, 7))] == [(1,), ()]
