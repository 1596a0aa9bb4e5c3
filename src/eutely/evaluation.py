"""Accuracy against known names: cells named by greedy majority, then nuclei compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError
from eutely.specimen import UNMATCHED, Specimen


def comparable(name: str) -> str:
    """Return ``name`` in the form used for comparison: stripped and in upper case."""
    return name.strip().upper()


def spellings(names: Iterable[Iterable[str]]) -> dict[str, str]:
    """Return for each comparable name its most frequent spelling."""
    counts = Counter(name.strip() for row in names for name in row if name.strip())
    spelt: dict[str, str] = {}
    for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        spelt.setdefault(comparable(name), name)
    return spelt


@dataclass(frozen=True)
class Score:
    """How many of a specimen's named nuclei were given their true name.

    Attributes
    ----------
    specimen
        name of the individual.
    named
        nuclei with a true name.
    correct
        of these, nuclei that were given this name.
    unnamed
        of these, nuclei of a cell that has no name: neither right nor wrong.
    unmatched
        of these, nuclei without a cell.
    """

    specimen: str
    named: int
    correct: int
    unnamed: int = 0
    unmatched: int = 0

    @property
    def wrong(self) -> int:
        """Nuclei that were given another name."""
        return self.named - self.correct - self.unnamed - self.unmatched

    @property
    def accuracy(self) -> float:
        """Fraction of the named nuclei that are correct; NaN if there are none."""
        return self.correct / self.named if self.named else float("nan")


@dataclass(frozen=True)
class Evaluation:
    """The scores of a cohort; the paper reports the mean over specimens."""

    scores: tuple[Score, ...]

    def __repr__(self) -> str:
        mean = f"{self.mean:.1%} of the nuclei right" if len(self.accuracies) else "no names"
        return f"<Evaluation of {len(self.scores)} specimens: {mean}>"

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
                    "wrong": score.wrong,
                    "unnamed": score.unnamed,
                    "unmatched": score.unmatched,
                }
                for score in self.scores
            ],
        }


def evaluation(scores: Iterable[Score]) -> Evaluation:
    """Return the evaluation of scores; at least one specimen must have names."""
    result = Evaluation(tuple(scores))
    if not len(result.accuracies):
        raise EutelyError("no specimen has a named nucleus; accuracy needs a column 'name'")
    return result


def majority_names(
    cells: Sequence[NDArray[np.integer[Any]]], names: Sequence[Sequence[str]], count: int
) -> tuple[str, ...]:
    """Name cells by the greedy majority rule (section 3.3).

    The cell with the largest number of nuclei of one name gets that name; then this cell and all
    nuclei of that name elsewhere are removed, and so on until no name is left. Ties go to the name
    first in alphabetical order, then to the lower cell.

    Parameters
    ----------
    cells
        for each specimen (n,), the cell of each nucleus, or -1.
    names
        for each specimen n names, "" where unknown.
    count
        number of cells.

    Returns
    -------
    names
        one per cell, in the most frequent spelling, "" if no name was left.
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


def score(
    specimen: Specimen, given: Sequence[str], cells: NDArray[np.integer[Any]] | None = None
) -> Score:
    """Compare the names ``given`` (n) to a specimen's nuclei with their true names.

    Nuclei without a true name do not count; a nucleus with a true name but no given name is not
    correct. If the cells (n,) are given, nuclei without a cell, and of a cell without a name, are
    told apart from those with a wrong name.
    """
    truth = [comparable(name) for name in specimen.names or ("",) * len(specimen)]
    right = sum(
        bool(name) and name == comparable(other) for name, other in zip(truth, given, strict=True)
    )
    empty = [bool(name) and not comparable(other) for name, other in zip(truth, given, strict=True)]
    there = np.zeros(len(truth), bool) if cells is None else np.asarray(cells) != UNMATCHED
    unnamed = int((np.array(empty, bool) & there).sum())
    unmatched = 0 if cells is None else sum(empty) - unnamed
    return Score(specimen.name, sum(map(bool, truth)), right, unnamed, unmatched)


def pre_atlas(
    specimens: Sequence[Specimen], cells: Sequence[NDArray[np.integer[Any]]]
) -> Evaluation:
    """Score cliques without an atlas: name them by majority, then each nucleus by its clique.

    Parameters
    ----------
    specimens
        with names.
    cells
        for each specimen (n,), the clique of each nucleus, or -1.
    """
    labels = [specimen.names or ("",) * len(specimen) for specimen in specimens]
    count = 1 + max((int(row.max()) for row in cells if len(row)), default=UNMATCHED)
    # The index -1 of an unmatched nucleus refers to the additional name at the end.
    names = (*majority_names(cells, labels, count), "")
    return evaluation(
        score(specimen, [names[cell] for cell in row], row)
        for specimen, row in zip(specimens, cells, strict=True)
    )
