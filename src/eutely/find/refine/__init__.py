"""From posed specimens to cells that agree in all of them, and to the atlas, without any name."""

from eutely.find.refine.steps import refine
from eutely.cells import Cohort
from eutely.align.target import choose_targets

__all__ = ["Cohort", "choose_targets", "refine"]
