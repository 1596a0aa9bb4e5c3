"""The matching problems of all pairs as one problem, and that of groups with groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import chosen_items, pair_list, total_cost
from eutely.cliques import Cliques, Matchings
from eutely.errors import ProblemError
from eutely.problem import PairProblem

UNPLACED = -1
"""Label of a nucleus that has no clique yet."""


class Piece(NamedTuple):
    """The problem of one pair of specimens g < h, its quadratic costs also as a list."""

    g: int
    h: int
    problem: PairProblem
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    costs: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class MultiProblem:
    """Find cliques whose matchings have the lowest cost, summed over the problems of all pairs.

    Attributes
    ----------
    sizes
        (N,) int32, nuclei of each specimen.
    pieces
        the problems of pairs. A pair without a problem has no costs and forbids nothing; in the
        others, an assignment that is no candidate is forbidden.
    """

    sizes: NDArray[np.int32]
    pieces: tuple[Piece, ...]

    @classmethod
    def from_pairs(cls, problems: Iterable[tuple[int, int, PairProblem]]) -> MultiProblem:
        """Combine problems of pairs: (g, h, problem) with g < h."""
        known: dict[int, int] = {}
        pieces: dict[tuple[int, int], Piece] = {}
        for g, h, problem in problems:
            if not 0 <= g < h:
                raise ProblemError(f"problem of specimens {g} and {h}; expected 0 <= g < h")
            if (g, h) in pieces:
                raise ProblemError(
                    f"two problems of specimens {g} and {h}, expected at most one; remove one"
                )
            for specimen, size in ((g, problem.n_left), (h, problem.n_right)):
                if known.setdefault(specimen, size) != size:
                    raise ProblemError(
                        f"specimen {specimen} has {size} nuclei in problem ({g}, {h}) and "
                        f"{known[specimen]} in another; expected the same number everywhere"
                    )
            pieces[g, h] = Piece(g, h, problem, *pair_list(problem.arrays))
        sizes = [known.get(specimen, 0) for specimen in range(max(known, default=-1) + 1)]
        return cls(np.array(sizes, np.int32), tuple(pieces[key] for key in sorted(pieces)))

    def evaluate(self, cliques: Cliques) -> tuple[float, int]:
        """Return the cost of ``cliques``, and the number of their assignments that are forbidden.

        Forbidden assignments do not count towards the cost.
        """
        total, forbidden = 0.0, 0
        matchings = cliques.to_matchings([(piece.g, piece.h) for piece in self.pieces])
        for pair, piece in enumerate(self.pieces):
            partners = matchings.of(pair)
            items = chosen_items(piece.problem.arrays, partners)
            total += float(total_cost(piece.problem.arrays, items))
            forbidden += int(np.count_nonzero((items < 0) & (partners >= 0)))
        return total, forbidden

    def matchings(self, partners: Sequence[NDArray[np.int32]]) -> Matchings:
        """Combine one matching per piece, with the assignments that the candidates allow."""
        allowed = {}
        for piece in self.pieces:
            table = np.zeros((piece.problem.n_left, piece.problem.n_right), dtype=bool)
            table[piece.problem.arrays.owners, piece.problem.arrays.labels] = True
            allowed[piece.g, piece.h] = table
        return Matchings.from_pairs(
            self.sizes, dict(zip(allowed, partners, strict=True)), allowed=allowed
        )


@dataclass(frozen=True, eq=False)
class JointSolution:
    """Consistent matchings of more than two graphs.

    Attributes
    ----------
    cliques
        nuclei of one cell each; ``cliques.table(2)`` lists those of two graphs or more.
    matchings
        (g, h) -> (n_g,) int32, the node of h of each node of g, or -1.
    objective
        its cost, without forbidden assignments.
    forbidden
        number of assignments that are no candidates.
    bound
        no matchings of the pairs cost less, consistent or not; None unless requested.
    """

    cliques: Cliques
    matchings: dict[tuple[int, int], NDArray[np.int32]]
    objective: float
    forbidden: int
    bound: float | None

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", at least {self.bound:.6g}"
        count = len(self.cliques.table(2))
        return f"<JointSolution: {count} cliques, objective {self.objective:.6g}{bound}>"


class Groups(NamedTuple):
    """Nuclei of some specimens in groups, at most one nucleus per specimen in each group.

    Attributes
    ----------
    labels
        for each specimen (n,) int32, the group of each nucleus; -1 for other specimens.
    size
        number of groups.
    """

    labels: list[NDArray[np.int32]]
    size: int

    def holds(self, specimen: int) -> bool:
        """Return whether nuclei of a specimen are in the groups."""
        return bool((self.labels[specimen] != UNPLACED).any())


def problem_of(joint: MultiProblem, left: Groups, right: Groups) -> PairProblem:
    """Return the problem of matching groups of some specimens with groups of others.

    The cost of two groups is the sum of the costs between their members; they are candidates if
    every member may be matched with every member of the other group. Groups of specimens without a
    common problem are no candidates.

    Parameters
    ----------
    joint
        all problems of pairs.
    left, right
        groups of nuclei; no specimen is in both.
    """
    shape = left.size, right.size
    wanted = np.zeros(shape, np.int64)
    meetings = np.zeros(left.size * right.size, np.int64)
    linear = np.zeros(left.size * right.size)
    known: list[tuple[Piece, NDArray[np.int64]]] = []
    for piece in joint.pieces:
        p = piece.problem.arrays
        if left.holds(piece.g) and right.holds(piece.h):
            rows, columns = left.labels[piece.g][p.owners], right.labels[piece.h][p.labels]
            wanted[np.ix_(left.labels[piece.g], right.labels[piece.h])] += 1
        elif left.holds(piece.h) and right.holds(piece.g):
            rows, columns = left.labels[piece.h][p.labels], right.labels[piece.g][p.owners]
            wanted[np.ix_(left.labels[piece.h], right.labels[piece.g])] += 1
        else:
            continue
        code = rows.astype(np.int64) * right.size + columns
        meetings += np.bincount(code, minlength=len(meetings))
        linear += np.bincount(code, p.linear, minlength=len(linear))
        known.append((piece, code))
    (codes,) = np.nonzero((meetings == wanted.ravel()) & (meetings > 0))
    number = np.full(len(meetings), -1, np.int32)
    number[codes] = np.arange(len(codes), dtype=np.int32)
    pairs, costs = [np.zeros((0, 2), np.int32)], [np.zeros(0, np.float32)]
    for piece, code in known:
        ends = number[code]
        first, second = ends[piece.first], ends[piece.second]
        kept = (first >= 0) & (second >= 0)
        pairs.append(np.stack([first[kept], second[kept]], axis=1))
        costs.append(piece.costs[kept])
    return PairProblem.from_arrays(
        shape,
        np.stack(np.divmod(codes, max(right.size, 1)), axis=1),
        linear[codes],
        np.concatenate(pairs),
        np.concatenate(costs),
    )
