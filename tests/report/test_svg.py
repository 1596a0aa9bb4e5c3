"""Axes with round numbers, whatever the data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.report.charts import duration
from eutely.report.svg import Frame, label, ticks


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    marks = ticks(low, low + span)
    assert 2 <= len(marks) <= 12
    slack = 1e-6 * span + 1e-9 * abs(low)
    assert all(low - slack <= mark <= low + span + slack for mark in marks)


def test_numbers_have_the_decimals_they_need() -> None:
    assert label(97.5, 2.5) == "97.5"
    assert label(1000.0, 250.0) == "1,000"
    assert label(0.125, 0.025) == "0.125"


def test_a_single_value_has_an_axis() -> None:
    frame = Frame((3, 3), (0, 0))
    frame.axes("x", "y")
    assert frame.left < frame.across(3) < frame.width
    assert "<text" in frame.svg("a figure")


def test_words_in_a_figure_are_escaped() -> None:
    frame = Frame((0, 1), (0, 1))
    frame.dot(0.5, 0.5, "<b>")
    assert "<b>" not in frame.svg('"quoted"')


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.123, "0.12 s"), (59.0, "59 s"), (61.2, "1 min 1 s"), (3720.0, "1 h 2 min")],
)
def test_times_are_told_as_people_do(seconds: float, words: str) -> None:
    assert duration(seconds) == words
