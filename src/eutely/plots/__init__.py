"""Figures of an atlas and of how it came about: what they show, and drawing it for papers."""

from eutely.plots import compute
from eutely.plots.draw import accuracy, atlas, confidence, consistency, learning, pareto

__all__ = ["accuracy", "atlas", "compute", "confidence", "consistency", "learning", "pareto"]
