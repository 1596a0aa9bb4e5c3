"""Whole specimens of a series that outnumber the parts of an atlas are named by each other too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.execute import Executor
from eutely.fit.posterior import Posterior
from eutely.series.together import matched_together
from eutely.specimen import Specimen

COUNT = 12
"""Specimens of the series."""

TOGETHER = "eutely.tasks.annotate.matched_together"


@pytest.fixture(scope="module")
def cohort() -> list[Specimen]:
    return eutely.simulate(specimens=6 + COUNT, cells=60, variation=0.5)


@pytest.fixture(scope="module")
def parts(cohort: list[Specimen]) -> Atlas:
    """An atlas of parts, few of which showed the front."""
    atlas = eutely.build(cohort[:6], supervised=True, workers=1).atlas
    return replace(atlas, shown=np.full(len(atlas), 6.0))


@pytest.fixture(scope="module")
def series(cohort: list[Specimen]) -> list[Specimen]:
    return [replace(one.without_names(), series="new") for one in cohort[6:]]


def counting(calls: list[int], change: float = 0.0) -> Callable[..., Any]:
    """Return `matched_together` that counts its specimens, and changes their support."""

    def matched(atlas: Atlas, results: Sequence[Posterior], executor: Executor) -> list[Posterior]:
        calls.append(len(results))
        after = matched_together(atlas, results, executor)
        return [
            replace(new, supports=((old.support or 0.0) + change, *new.supports[1:]))
            for old, new in zip(results, after, strict=True)
        ]

    return matched


def annotated(atlas: Atlas, series: list[Specimen], **options: Any) -> list[Annotation]:
    return eutely.annotate(atlas, series, workers=1, **options)


def test_likelier_fits_by_each_other_are_taken(
    parts: Atlas, series: list[Specimen], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(TOGETHER, counting(calls, change=1.0))
    likelier = annotated(parts, series)
    assert calls == [COUNT]
    monkeypatch.setattr(TOGETHER, counting(calls, change=-1.0))
    kept = annotated(parts, series)
    for one, other in zip(likelier, kept, strict=True):
        assert other.support is not None
        assert one.support == pytest.approx(other.support + 1.0)
        assert (one.cells == other.cells).mean() > 0.9


def test_specimens_that_are_not_likelier_keep_their_fits(
    parts: Atlas, series: list[Specimen], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TOGETHER, counting([], change=-1.0))
    kept = annotated(parts, series)
    monkeypatch.setattr("eutely.tasks.annotate.outnumber", lambda *_: False)
    for one, other in zip(kept, annotated(parts, series), strict=True):
        np.testing.assert_array_equal(one.cells, other.cells)
        np.testing.assert_array_equal(one.confidence, other.confidence)


def test_a_specimen_with_pins_keeps_its_fit(
    parts: Atlas, series: list[Specimen], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TOGETHER, counting([], change=1.0))
    free = annotated(parts, series)
    pins = {(series[2].name, int(series[2].ids[5])): ""}
    pinned = annotated(parts, series, pins=pins)
    assert pinned[2].cells[5] == -1
    assert pinned[2].support is not None
    assert free[2].support is not None
    assert pinned[2].support < free[2].support - 0.5
    np.testing.assert_array_equal(pinned[3].cells, free[3].cells)


@pytest.mark.parametrize("kind", ["whole", "many", "alone"])
def test_no_others_are_matched_by_each_other(
    parts: Atlas, series: list[Specimen], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """By an atlas of whole specimens, of more specimens, or each by itself."""
    calls: list[int] = []
    monkeypatch.setattr(TOGETHER, counting(calls))
    atlas = {
        "whole": replace(parts, shown=np.zeros(0)),
        "many": replace(parts, specimens=COUNT),
    }.get(kind, parts)
    annotated(atlas, series, **({"adapt": False} if kind == "alone" else {}))
    assert calls == []
