"""Power of comparisons: cells shifted, dropped or enlarged in real worms, for `compare.py`.

Each changed worm is named once, and serves in groups of all sizes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_ind_from_stats

from cohorts import annotations, built_in, dropped_and_enlarged, halves, named_rows, shifted
from eutely import Annotation, Atlas, Design, Specimen
from eutely.comparison.answer import Outcome, answer
from eutely.comparison.design import Contrast, contrasts
from eutely.comparison.measured import Measured, measured
from eutely.comparison.permutations import permutations
from eutely.comparison.scores import benjamini_hochberg
from eutely.comparison.second import renamed
from eutely.evaluation import comparable
from figures import Figures

SETS = {1.0: 5, 2.0: 2, 0.5: 2, 0.25: 1}
"""Shift in spacings -> choices of worms, cells and directions."""

FIRST = 30
"""Seed of the first choice: those of lower seeds were seen while settings were chosen."""

DRAWN = {5: 2, 10: 1, 20: 2, 50: 1}
"""Animals of each group -> choices of them in each set."""

CHANGES = 2
"""Choices of worms and cells that are dropped and enlarged."""

FEWER = 1000
"""Permutations."""

LEVEL = 0.05

EQUAL = (0.05, 0.07)
"""True rates of false findings at which the power of methods is compared."""

Array = NDArray[np.float64]
Cells = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Tested(NamedTuple):
    """One test of one choice of animals.

    Attributes
    ----------
    p, q
        (m,), p-values (1 where not tested) and false discovery rates.
    doubtful
        (m,) bool.
    changed
        (m,) bool, the cells that were changed.
    misnamed
        (m,) bool, cells whose nuclei have a wrong name in more than a quarter of a group.
    """

    p: Array
    q: Array
    doubtful: Mask
    changed: Mask
    misnamed: Mask


def question(first: int, second: int) -> Contrast:
    labels = ["a"] * first + ["b"] * second
    (contrast,) = contrasts(["a", "b"], labels, list(map(str, range(first + second))), Design())
    return contrast


def truly_named(
    atlas: Atlas, specimens: Sequence[Specimen], found: Sequence[Annotation]
) -> list[Annotation]:
    """Return annotations with true names, where eutely put the nuclei."""
    number = {comparable(name): cell for cell, name in enumerate(atlas.names) if name}
    result = []
    for specimen, annotation in zip(specimens, found, strict=True):
        cells = np.full(len(specimen), -1, np.int32)
        for name, row in named_rows(specimen).items():
            cells[row] = number.get(name, -1)
        sure = np.where(cells >= 0, 1.0, np.nan)
        nothing = ((),) * len(specimen)
        result.append(replace(annotation, cells=cells, confidence=sure, alternatives=nothing))
    return result


def t_tests(cells: Measured, rows: Cells, truth: tuple[Mask, Mask]) -> Tested:
    """Return plain t-tests of places (Welch's), the best of three axes times 3."""
    half = len(rows) // 2
    parts = []
    for places in (cells.places[rows[:half]], cells.places[rows[half:]]):
        seen = np.maximum(np.isfinite(places).sum(axis=0), 2)
        mean = np.nansum(places, axis=0) / seen
        square = np.nansum((places - mean) ** 2, axis=0) / (seen - 1)
        parts.append((mean, np.sqrt(square), seen))
    p = np.asarray(ttest_ind_from_stats(*parts[0], *parts[1], equal_var=False).pvalue)
    best = np.minimum(1.0, 3 * np.where(np.isfinite(p), p, 1.0).min(axis=1))
    return Tested(best, benjamini_hochberg(best), np.zeros(len(best), np.bool_), *truth)


def tested(outcome: Outcome, truth: tuple[Mask, Mask]) -> Tested:
    p = np.where(np.isfinite(outcome.pooled), outcome.pooled, 1.0)
    return Tested(p, np.nan_to_num(outcome.q, nan=1.0), outcome.doubtful, *truth)


def chosen_animals(first: int, second: int) -> Iterator[tuple[int, Cells]]:
    """Yield sizes, and random choices of as many animals of each group."""
    for size, draws in DRAWN.items():
        for draw in range(draws if size <= min(first, second) else 0):
            random = np.random.default_rng(draw)
            one, two = random.permutation(first)[:size], random.permutation(second)[:size]
            yield size, np.concatenate([one, first + two])


def summary(several: Sequence[Tested]) -> Figures:
    """Return rates of findings at 5% FDR, and the power at equal true rates of false ones."""
    parts = [_rates(one) for one in several]
    means = {key: _mean([part[key] for part in parts]) for key in parts[0]}
    wrong = [one.misnamed & (one.q <= LEVEL) & ~one.changed for one in several]
    total = sum(int((one.q <= LEVEL).sum()) for one in several)
    count = sum(int(mask.sum()) for mask in wrong)
    marked = sum(int((mask & one.doubtful).sum()) for mask, one in zip(wrong, several, strict=True))
    by_names = {
        "false by names": round(count / max(total, 1), 3),
        "of these doubtful": round(marked / count, 3) if count else None,
    }
    return {"choices": len(several), **means, **by_names, **_equal(several)}


def _rates(one: Tested) -> dict[str, float]:
    found, none = one.q <= LEVEL, float("nan")
    sure = found & ~one.doubtful
    right = one.doubtful[found & one.changed]
    return {
        "found": float(found[one.changed].mean()),
        "false": float((found & ~one.changed).sum() / max(found.sum(), 1)),
        "sure": float(sure[one.changed].mean()),
        "sure false": float((sure & ~one.changed).sum() / max(sure.sum(), 1)),
        "true doubtful": float(right.mean()) if len(right) else none,
    }


def _equal(several: Sequence[Tested]) -> dict[str, float]:
    """Return the largest share of changed cells found at true rates of false findings.

    One threshold of p for all sets together, the one that the true names allow.
    """
    p = np.concatenate([one.p for one in several])
    changed = np.concatenate([one.changed for one in several])
    order = np.argsort(p, kind="stable")
    last = np.append(p[order][1:] > p[order][:-1], True)  # ties are found together
    right, found = np.cumsum(changed[order]), np.arange(1, len(p) + 1)
    result = {}
    for level in EQUAL:
        within = last & (found - right <= level * found)
        best = right[within].max(initial=0)
        result[f"at {level:g}"] = round(float(best / changed.sum()), 3)
    return result


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean of the values that are known, or None."""
    given = [value for value in values if value == value]
    return round(float(np.mean(given)), 3) if given else None


def shift_rows(which: str, distance: float, most: int) -> list[Figures]:
    """Return rows of cells shifted by ``distance`` spacings in at most ``most`` worms."""
    atlas = built_in()
    parts: dict[tuple[str, int, str], list[Tested]] = {}
    for seed in range(FIRST, FIRST + SETS[distance]):
        first, second = halves(seed, most, which)
        changed = shifted(second, distance, seed)
        mask = np.isin(np.arange(len(atlas)), changed.cells)
        for names, cells, wrong in _named(atlas, first, changed.specimens):
            for size, rows in chosen_animals(len(first), len(second)):
                truth = (mask, _misnamed(wrong[rows]))
                plain = t_tests(cells, rows, truth)
                parts.setdefault((names, size, "t-test"), []).append(plain)
                for outcome in _tests(atlas, replace(cells, values={}), rows):
                    if outcome.test in ("place", "place-relative"):
                        key = (names, size, outcome.test)
                        parts.setdefault(key, []).append(tested(outcome, truth))
    return [
        {"names": names, "distance": distance, "animals": size, "test": test, **summary(several)}
        for (names, size, test), several in parts.items()
    ]


def change_rows(which: str, most: int) -> list[Figures]:
    """Return rows of cells dropped in half of the animals, and of enlarged ones."""
    atlas = built_in()
    parts: dict[tuple[str, int, str], list[Tested]] = {}
    for seed in range(FIRST, FIRST + CHANGES):
        first, second = halves(seed, most, which)
        other, cells = dropped_and_enlarged(second, seed)
        for names, table, wrong in _named(atlas, first, other):
            sizes = replace(table, values={"size": table.values["size"]})
            for size, rows in chosen_animals(len(first), len(second)):
                for outcome in _tests(atlas, sizes, rows):
                    if outcome.test in ("presence", "size"):
                        kind = cells[0 if outcome.test == "presence" else 1]
                        mask = np.isin(np.arange(len(atlas)), kind)
                        key = (names, size, outcome.test)
                        truth = (mask, _misnamed(wrong[rows]))
                        parts.setdefault(key, []).append(tested(outcome, truth))
    return [
        {"names": names, "animals": size, "test": test, **summary(several)}
        for (names, size, test), several in parts.items()
    ]


def _named(
    atlas: Atlas, first: Sequence[Specimen], second: Sequence[Specimen]
) -> list[tuple[str, Measured, Mask]]:
    """Return what is measured with names by eutely and with true ones; (N, m), wrong names."""
    everyone = [*first, *second]
    found = [*annotations(first), *annotations(second)]
    true = truly_named(atlas, everyone, found)
    again = renamed(atlas, everyone, found)
    wrong = np.zeros((len(everyone), len(atlas)), dtype=np.bool_)
    for row, (one, other) in enumerate(zip(again, true, strict=True)):
        differ = (one.cells >= 0) & (one.cells != other.cells)
        wrong[row, one.cells[differ]] = True
    return [
        ("found", measured(atlas, everyone, again), wrong),
        ("true", measured(atlas, everyone, true), np.zeros_like(wrong)),
    ]


def _misnamed(wrong: Mask) -> Mask:
    """Return (m,), cells with a wrong name in over a quarter of the first or the second half."""
    half = len(wrong) // 2
    return np.asarray(np.maximum(wrong[:half].mean(axis=0), wrong[half:].mean(axis=0)) > 0.25)


def _tests(atlas: Atlas, cells: Measured, rows: Cells) -> tuple[Outcome, ...]:
    half = len(rows) // 2
    contrast = replace(question(half, half), rows=rows)
    return answer(atlas, cells, contrast, permutations(contrast, FEWER, 0)).cells
