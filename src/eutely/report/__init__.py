"""The report of a build or an annotation: one page in one HTML file."""

from eutely.report.page import render

__all__ = ["render"]
