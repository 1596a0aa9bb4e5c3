"""Figures for papers: each is drawn, as SVG and PDF, the same bytes every time."""

import matplotlib as mpl
import numpy as np
import pytest

from eutely import plots
from eutely.plots.draw import FIGURES, NothingToShowError, all_figures, ellipses, encoded
from eutely.results import Report
from toy_reports import toy_cohort, toy_report


def test_every_figure_of_a_full_report_is_drawn() -> None:
    atlas, report = toy_report(6, 30)
    figures = all_figures(atlas, report)
    assert list(figures) == list(FIGURES)
    svg = {name: encoded(figure, "svg").decode() for name, figure in figures.items()}
    assert report.specimens[-1].name in svg["consistency"]  # the outlier, as text
    assert "offsets" in svg["learning"]
    assert encoded(figures["accuracy"], "pdf").startswith(b"%PDF")


def test_equal_reports_give_equal_files() -> None:
    first, second = (encoded(plots.pareto(toy_report(3, 20)[1]), "svg") for _ in range(2))
    assert first == second


def test_an_atlas_alone_has_one_figure() -> None:
    atlas, _ = toy_cohort(3, 20)
    assert list(all_figures(atlas, Report())) == ["atlas"]
    with pytest.raises(NothingToShowError, match="does not contain an evaluation"):
        plots.accuracy(Report())


def test_the_session_keeps_its_style() -> None:
    before = dict(mpl.rcParams)
    plots.confidence(toy_report(3, 20)[1])
    assert dict(mpl.rcParams) == before


def test_ellipses_have_the_axes_of_their_covariances() -> None:
    turn = np.radians(30)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    wide, high, angle = ellipses((rotation @ np.diag([9.0, 4.0]) @ rotation.T)[None], 2.0)
    assert (wide[0], high[0]) == pytest.approx((12, 8))
    assert angle[0] % 180 == pytest.approx(30)
