"""From cells to the atlas: robust Gaussians, cells that predict each other, crowding."""

from eutely.estimate.atlas import atlas_of, estimate
from eutely.estimate.gaussians import Gaussians, robust_gaussians
from eutely.estimate.joint import Joint, independent_gaussians, joint_gaussians, prior_gaussians

__all__ = [
    "Gaussians",
    "Joint",
    "atlas_of",
    "estimate",
    "independent_gaussians",
    "joint_gaussians",
    "prior_gaussians",
    "robust_gaussians",
]
