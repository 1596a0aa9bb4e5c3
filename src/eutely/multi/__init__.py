"""Cliques from matchings of all pairs, or directly from costs; losses of matchings."""

from eutely.multi.direct import solve_direct, solve_pairs
from eutely.multi.joint import MultiProblem
from eutely.multi.losses import agreement, cycle_loss, specimen_agreement, synchronisation_loss
from eutely.multi.synchronise import synchronise

__all__ = [
    "MultiProblem",
    "agreement",
    "cycle_loss",
    "solve_direct",
    "solve_pairs",
    "specimen_agreement",
    "synchronisation_loss",
    "synchronise",
]
