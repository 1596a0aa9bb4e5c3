"""From a problem to a matching, its objective and a lower bound: one technique per file."""

from eutely.solver.qap import solve_assignment
from eutely.solver.solver import EFFORTS, Effort, Solution, solve, solve_dense

__all__ = ["EFFORTS", "Effort", "Solution", "solve", "solve_assignment", "solve_dense"]
