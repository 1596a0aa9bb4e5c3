"""Rigid pre-alignment: barycentre, size, body axes, head or tail, and roll, as ranked poses."""

from eutely.pose.hypotheses import orient
from eutely.pose.pose import Pose, strays
from eutely.pose.stand import Oriented, anonymous, framed, oriented, posed
from eutely.pose.straighten import straighten

__all__ = [
    "Oriented",
    "Pose",
    "anonymous",
    "framed",
    "orient",
    "oriented",
    "posed",
    "straighten",
    "strays",
]
