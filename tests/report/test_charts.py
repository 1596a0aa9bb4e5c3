"""Figures of the page: axes with round numbers, whatever the data; escaped text."""

from hypothesis import given
from hypothesis import strategies as st

from eutely.report.charts import Frame, label, ticks, times


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


def test_text_in_a_figure_is_escaped() -> None:
    frame = Frame((0, 1), (0, 1))
    frame.dot(0.5, 0.5, "<b>")
    assert "<b>" not in frame.svg('"quoted"')


def test_every_step_has_a_bar_even_if_it_ran_twice() -> None:
    figure = times((("round", 1.0), ("fit", 2.0), ("round", 4.0)))
    assert figure.count('class="bar"') == 3
    assert [figure.count(f">{text}<") for text in ("round", "1 s", "2 s", "4 s")] == [2, 1, 1, 1]
