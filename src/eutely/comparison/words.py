"""What was done, as a text for the methods section of a paper; and what was found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eutely.comparison.answer import PLACE, PRESENCE, RELATIVE, SCATTER, Answer, Outcome
from eutely.comparison.clusters import FEWEST_OUT
from eutely.comparison.comparison import Comparison, count, effect_words, findings
from eutely.comparison.effects import POWER
from eutely.comparison.relative import NEIGHBOURS
from eutely.comparison.scores import LEVEL, PRIOR

MOST_NAMED = 5
"""Cells that a sentence names."""

TESTS = {
    PLACE: "shifted in the frame of the atlas",
    RELATIVE: "shifted relative to their neighbours",
    SCATTER: "more or less variable in place",
}
"""What a finding of each test says of cells; features: "other in <feature>"."""

SIGNED = {
    PRESENCE: ("missing more often", "there more often, or twice"),
    "size": ("smaller", "larger"),
}
"""The same of tests whose effect has a sign: below 0, and above."""


class Finding(NamedTuple):
    """What a test found, as a sentence whose cells a page can link.

    Attributes
    ----------
    test
        that found it.
    begin, end
        of the sentence, around its cells.
    cells
        (number, name, effect in words) of those that the sentence names.
    """

    test: str
    begin: str
    cells: tuple[tuple[int, str, str], ...]
    end: str

    @property
    def text(self) -> str:
        """The whole sentence."""
        named = ", ".join(f"{name} ({effect})" for _, name, effect in self.cells)
        return f"{self.begin} {named}{self.end}"


NOTHING = "No cell differs at a false discovery rate of 5%."

_SECOND = (
    f" Nuclei that lay out of place at the same place in {FEWEST_OUT} animals or more, of "
    "whatever group, were given to the cell without which the cells around it fitted best."
)

_SURVIVED = (
    " Findings about places were tested again with names exchanged among unsure neighbours and "
    "neighbours that were found to have moved, each cell having the nucleus nearest to its place; "
    "where p was then above 0.01, the larger p counts."
)


def methods(comparison: Comparison, version: str) -> str:
    """Return the methods as paragraphs of plain text, one per line."""
    atlas, design = comparison.atlas, comparison.design
    sizes = [f"{label} (n = {comparison.animals.count(label)})" for label in comparison.labels]
    first = comparison.answers[0]
    named = "as given in the input" if design.given_names else "found"
    together = "as one series" if design.adapt else "each animal by itself"
    exchanged = (
        f"all {first.permutations:,} permutations"
        if first.exact
        else f"{first.permutations:,} random permutations (seed {design.seed})"
    )
    lines = [
        f"We compared {_listed(sizes)} with eutely {version}. Nuclei were matched with an atlas of "
        f"{len(atlas)} cells from {atlas.specimens} specimens; cells were {named}, {together}, "
        "without knowledge of the groups. Each nucleus counted by the confidence of its cell."
        f"{'' if design.given_names else _SECOND}",
        "Places were compared in the frame of the atlas after a smooth warp of each animal "
        f"(place), and relative to the affine field of the {NEIGHBOURS} nearest cells "
        "(place-relative), which removes bend, stretch, scale and smooth deformation. Scatter is "
        "the distance from the group's centre, relative to neighbours. Sizes and features were "
        "taken relative to the median of the animal, on a logarithmic scale where positive. "
        "Lengths are in spacings, the median distance of neighbouring cells "
        f"({_spacing(comparison)}).",
        "For each cell the standardised linear statistic of the group difference, with a "
        f"covariance shrunk towards that of the atlas (counting for {PRIOR:g} animals), was "
        f"compared with {exchanged} of the animals{_restricted(comparison)}. False discovery rates "
        "(q) are those of Benjamini and Hochberg over cells, from the permutation distribution of "
        "all cells; family-wise p-values are by the largest statistic over cells (max-T). "
        "Intervals are 95%. A finding has q <= "
        f"{LEVEL:g}; it is marked doubtful where it rests on uncertain names."
        f"{'' if design.given_names else _SURVIVED}",
    ]
    if design.trend:
        lines.append("Effects are those of a linear trend over the groups, per unit.")
    elif len(comparison.labels) > 2:
        lines.append(f"Each group was compared with {comparison.labels[0]} separately.")
    if comparison.left_out:
        lost = len(comparison.left_out)
        number = "1 animal" if lost == 1 else f"{lost} animals"
        verb = "was" if lost == 1 else "were"
        lines.append(f"{number} could not be placed and {verb} left out.")
    return "\n".join(lines)


def found_words(comparison: Comparison, answer: Answer) -> list[str]:
    """Return what was found in sentences, one or two per test with findings, and the power."""
    lines = [finding.text for finding in found(comparison, answer)]
    return [*(lines or [NOTHING]), power_words(answer)]


def found(comparison: Comparison, answer: Answer) -> list[Finding]:
    """Return what was found, by test: cells of either sign apart, where effects have one."""
    result = []
    for outcome in answer.cells:
        cells = findings(outcome)
        if outcome.test in SIGNED:
            below = outcome.effect[cells] < 0
            parts = list(zip(SIGNED[outcome.test], (cells[below], cells[~below]), strict=True))
        else:
            parts = [(TESTS.get(outcome.test, f"other in {outcome.test}"), cells)]
        result += [
            _finding(comparison, outcome, what, part.tolist()) for what, part in parts if len(part)
        ]
    return result


def _finding(comparison: Comparison, outcome: Outcome, what: str, cells: list[int]) -> Finding:
    doubtful = int(outcome.doubtful[cells].sum())
    verb = f"is {what.replace('their', 'its')}" if len(cells) == 1 else f"are {what}"
    rest = f" and {len(cells) - MOST_NAMED} more" if len(cells) > MOST_NAMED else ""
    return Finding(
        outcome.test,
        f"{len(cells)} of {len(comparison.atlas)} cells {verb}:",
        tuple(
            (cell, comparison.name(cell), effect_words(outcome, cell))
            for cell in cells[:MOST_NAMED]
        ),
        f"{rest}{_doubt(doubtful, len(cells))}.",
    )


def _doubt(doubtful: int, total: int) -> str:
    """Return how many findings rest on doubtful names, as the end of a sentence."""
    if not doubtful:
        return ""
    which = "" if total == 1 else f"; {doubtful} of these"
    return f"{which or ','} on {'a doubtful name' if doubtful == 1 else 'doubtful names'}"


def power_words(answer: Answer) -> str:
    """Return how large a shift would have been found."""
    outcome = next(one for one in answer.cells if one.test == RELATIVE)
    known = outcome.detectable[np.isfinite(outcome.detectable)]
    if not len(known):
        return "There are too few animals to say how large a shift would have been found."
    return (
        f"A shift of {np.median(known):.2f} spacings relative to its neighbours would have been "
        f"found in half of the cells with a probability of {POWER:.0%} (family-wise 5%), one of "
        f"{np.quantile(known, 0.9):.2f} in nine of ten cells."
    )


def headline(comparison: Comparison) -> str:
    """Return the title of the page."""
    numbers = [count(answer) for answer in comparison.answers]
    total = f"{len(comparison.atlas)} cells"
    names = [answer.contrast.name for answer in comparison.answers]
    if len(numbers) == 1:
        verb = "differs" if numbers[0] == 1 else "differ"
        return f"{numbers[0]} of {total} {verb}: {names[0]}"
    return f"{max(numbers)} of {total} differ at most: {'; '.join(names)}"


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else words[0]


def _spacing(comparison: Comparison) -> str:
    return f"{comparison.cells.spacing:.3g} {comparison.atlas.unit}"


def _restricted(comparison: Comparison) -> str:
    batches = int(comparison.answers[0].contrast.batches.max(initial=0)) + 1
    columns = comparison.answers[0].contrast.nuisance.shape[1]
    words = ""
    if batches > 1:
        words += f", exchanged within {batches} batches only"
    if columns > batches:
        words += ", after regression on covariates (Freedman and Lane)"
    return words
