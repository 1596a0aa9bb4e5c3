"""Matchings of all pairs to cliques, by synchronisation or directly from costs; their losses."""

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
