"""From a PairProblem to a matching, its objective and a lower bound: one technique per file."""

from eutely.solver.solver import EFFORTS, Effort, Solution, solve, solve_dense

__all__ = ["EFFORTS", "Effort", "Solution", "solve", "solve_dense"]
