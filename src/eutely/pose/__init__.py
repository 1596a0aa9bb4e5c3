"""Rigid pre-alignment: barycentre, size, body axes, head or tail, and roll, as ranked poses."""

from eutely.pose.hypotheses import orient
from eutely.pose.pose import Pose
from eutely.pose.straighten import straighten

__all__ = ["Pose", "orient", "straighten"]
