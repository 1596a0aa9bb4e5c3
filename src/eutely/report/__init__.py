"""One page, one file: what a build or an annotation found, to look at."""

from eutely.report.page import render
from eutely.results import Shown, Story, Trial

__all__ = ["Shown", "Story", "Trial", "render"]
