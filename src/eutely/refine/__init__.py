"""From posed specimens to cells that agree in all of them, and to the atlas, without any name."""

from eutely.refine.build import refine
from eutely.refine.cohort import Cohort
from eutely.align.target import choose_targets

__all__ = ["Cohort", "choose_targets", "refine"]
