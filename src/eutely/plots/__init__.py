"""Figures of an atlas and of a report: `compute` gives their numbers, `draw` draws them."""

from eutely.plots import compute
from eutely.plots.draw import accuracy, atlas, confidence, consistency, learning, pareto

__all__ = ["accuracy", "atlas", "compute", "confidence", "consistency", "learning", "pareto"]
