"""Figures for papers: each is drawn, as SVG and PDF, the same bytes every time."""

import matplotlib as mpl
import numpy as np
import pytest

from eutely import plots
from eutely.plots.draw import FIGURES, NothingToShowError, all_figures, ellipses, encoded
from eutely.results import Story
from stories import toy_cohort, toy_story


def test_every_figure_of_a_full_story_is_drawn() -> None:
    story = toy_story(6, 30)
    figures = all_figures(story)
    assert list(figures) == list(FIGURES)
    svg = {name: encoded(figure, "svg").decode() for name, figure in figures.items()}
    assert story.specimens[-1].name in svg["consistency"]  # the outlier, as text
    assert "offsets" in svg["learning"]
    assert encoded(figures["accuracy"], "pdf").startswith(b"%PDF")


def test_equal_stories_give_equal_files() -> None:
    first, second = (encoded(plots.pareto(toy_story(3, 20)), "svg") for _ in range(2))
    assert first == second


def test_an_atlas_alone_has_one_figure() -> None:
    atlas, _ = toy_cohort(3, 20)
    assert list(all_figures(Story(atlas))) == ["atlas"]
    with pytest.raises(NothingToShowError, match="does not hold an evaluation"):
        plots.accuracy(Story(atlas))


def test_the_session_keeps_its_style() -> None:
    before = dict(mpl.rcParams)
    plots.confidence(toy_story(3, 20))
    assert dict(mpl.rcParams) == before


def test_ellipses_have_the_axes_of_their_covariances() -> None:
    turn = np.radians(30)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    wide, high, angle = ellipses((rotation @ np.diag([9.0, 4.0]) @ rotation.T)[None], 2.0)
    assert (wide[0], high[0]) == pytest.approx((12, 8))
    assert angle[0] % 180 == pytest.approx(30)
