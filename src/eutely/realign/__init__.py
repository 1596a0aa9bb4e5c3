"""From a pose to the frame of the atlas: affine maps, the smooth warp, and matching in it."""

from eutely.align.affine import fit_affine
from eutely.realign.expectation import expectation
from eutely.realign.place import Placed, match, place, warped_match
from eutely.align.warp import Warp, fit_warp

__all__ = [
    "Placed",
    "Warp",
    "expectation",
    "fit_affine",
    "fit_warp",
    "match",
    "place",
    "warped_match",
]
