"""The page: whole with everything in it, and with nothing but an atlas."""

from dataclasses import replace

import pytest

from eutely.errors import EutelyError
from eutely.report import Story, render
from stories import toy_cohort, toy_story


def test_names_cannot_break_the_page() -> None:
    story = toy_story(3, 20)
    evil = replace(story.specimens[0], name="<script>alert(1)</script>")
    page = render(replace(story, specimens=[evil, *story.specimens[1:]]))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_an_atlas_alone_has_a_page() -> None:
    atlas, _ = toy_cohort(3, 20)
    assert "20 cells" in render(Story(atlas, kind="atlas"))


def test_cells_must_be_of_the_atlas() -> None:
    atlas, shown = toy_cohort(3, 20)
    wrong = replace(shown[0], cells=shown[0].cells + 20)
    with pytest.raises(EutelyError, match="numbers of the 20 cells"):
        Story(atlas, specimens=[wrong])
