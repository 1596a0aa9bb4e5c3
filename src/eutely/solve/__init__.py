"""From a PairProblem to a matching, its objective and a lower bound: one technique a file."""
