"""Accuracy against known names: cells named by greedy majority, then nuclei named right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import UNMATCHED
from eutely.errors import EutelyError
from eutely.specimen import Specimen

def comparable(name: str) -> str:
    """Return ``name`` as it is compared: without surrounding space, in upper case."""
    return name.strip().upper()


def spellings(names: Iterable[Iterable[str]]) -> dict[str, str]:
    """Return for each name as it is compared the way in which it is spelt most often."""
    counts = Counter(name.strip() for row in names for name in row if name.strip())
    found: dict[str, str] = {}
    for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        found.setdefault(comparable(name), name)
    return found


@dataclass(frozen=True)
class Score:
    """How many of one specimen's named nuclei got their own name."""

    specimen: str
    named: int
    correct: int

    @property
    def accuracy(self) -> float:
        """Fraction of the named nuclei that are right; NaN where nothing is named."""
        return self.correct / self.named if self.named else float("nan")


@dataclass(frozen=True)
class Evaluation:
    """The scores of a cohort; the mean over specimens is what the paper reports."""

    scores: tuple[Score, ...]

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """(m,) accuracy of each specimen that has names."""
        return np.array([score.accuracy for score in self.scores if score.named])

    @property
    def mean(self) -> float:
        """Mean accuracy over specimens."""
        return float(self.accuracies.mean())

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as ``eutely evaluate --json`` writes them."""
        values = self.accuracies
        return {
            "accuracy": {
                "mean": float(values.mean()),
                "std": float(values.std()),
                "median": float(np.median(values)),
                "n": len(values),
            },
            "specimens": [
                {
                    "specimen": score.specimen,
                    "accuracy": score.accuracy if score.named else None,
                    "named": score.named,
                    "correct": score.correct,
                }
                for score in self.scores
            ],
        }


def evaluation(scores: Iterable[Score]) -> Evaluation:
    """Collect scores; at least one specimen must have names."""
    found = Evaluation(tuple(scores))
    if not len(found.accuracies):
        raise EutelyError("no specimen has a named nucleus; accuracy needs a column 'name'")
    return found


def majority_names(
    cells: Sequence[NDArray[np.integer[Any]]], names: Sequence[Sequence[str]], count: int
) -> tuple[str, ...]:
    """Name cells by the greedy majority rule (section 3.3).

    The cell that holds the largest number of nuclei of one name gets that name; the cell leaves,
    and so do all nuclei of that name elsewhere; and again, until no name is left. Ties go to the
    name first in the alphabet, then to the lower cell.

    Parameters
    ----------
    cells
        for each specimen (n,), the cell of each nucleus, or -1.
    names
        for each specimen n names, "" where not known.
    count
        number of cells.

    Returns
    -------
    names
        one per cell, in the usual spelling, "" where none was left to give.
    """
    votes: dict[tuple[int, str], int] = {}
    for membership, labels in zip(cells, names, strict=True):
        for cell, label in zip(membership.tolist(), labels, strict=True):
            key = (cell, comparable(label))
            if cell != UNMATCHED and key[1]:
                votes[key] = votes.get(key, 0) + 1
    spelt = spellings(names)
    given = [""] * count
    used: set[str] = set()
    for (cell, label), _ in sorted(votes.items(), key=lambda vote: (-vote[1], *vote[0][::-1])):
        if not given[cell] and label not in used:
            given[cell] = spelt[label]
            used.add(label)
    return tuple(given)


def score(specimen: Specimen, given: Sequence[str]) -> Score:
    """Compare the names ``given`` to a specimen's nuclei (n of them) with its own.

    Nuclei without a name of their own do not count; a nucleus with a name that was given none
    is wrong.
    """
    truth = [comparable(name) for name in specimen.names or ("",) * len(specimen)]
    right = sum(
        bool(own) and own == comparable(other) for own, other in zip(truth, given, strict=True)
    )
    return Score(specimen.name, sum(map(bool, truth)), right)


def pre_atlas(
    specimens: Sequence[Specimen], cells: Sequence[NDArray[np.integer[Any]]]
) -> Evaluation:
    """Score cliques by themselves: they are named by majority, then each nucleus by its clique.

    Parameters
    ----------
    specimens
        with names.
    cells
        for each specimen (n,), the clique of each nucleus, or -1.
    """
    labels = [specimen.names or ("",) * len(specimen) for specimen in specimens]
    count = 1 + max((int(row.max()) for row in cells if len(row)), default=UNMATCHED)
    # One more name at the end is what the index -1 of an unmatched nucleus finds.
    names = (*majority_names(cells, labels, count), "")
    return evaluation(
        score(specimen, [names[cell] for cell in row])
        for specimen, row in zip(specimens, cells, strict=True)
    )
