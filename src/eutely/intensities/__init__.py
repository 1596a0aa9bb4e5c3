"""Intensities of nuclei: which voxels belong to each (`regions`), what an image has there."""

from eutely.intensities.measure import STATISTICS, ImageBlock, intensities
from eutely.intensities.regions import Regions, RunCollector, inside, shells

__all__ = [
    "STATISTICS", "ImageBlock", "Regions", "RunCollector", "inside", "intensities", "shells",
]  # fmt: skip
