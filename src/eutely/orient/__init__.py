"""Rigid pre-alignment: barycentre, size, body axes, head/tail and roll, as ranked hypotheses."""

from eutely.orient.hypotheses import orient
from eutely.orient.pose import Pose
from eutely.orient.straighten import straighten

__all__ = ["Pose", "orient", "straighten"]
