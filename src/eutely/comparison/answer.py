"""All tests of one contrast: of cells, sets of cells, pairs and whole animals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.comparison.body import pair_shifts
from eutely.comparison.design import Contrast
from eutely.comparison.doubt import (
    UNSURE,
    exchanged_names,
    resting_on_doubt,
    uncertain_absences,
    uncertain_cells,
)
from eutely.comparison.effects import Interval, detectable, effects_of, intervals, spread_residuals
from eutely.comparison.exchange import with_exchanged_names
from eutely.comparison.measured import Measured, medians
from eutely.comparison.permutations import Permutations
from eutely.comparison.relative import Positions, positions, relative
from eutely.comparison.scores import (
    LEVEL,
    Result,
    Scores,
    benjamini_hochberg,
    result_of,
    scores_of,
)
from eutely.comparison.sets import CellSet, set_means

Array = NDArray[np.float64]

PLACE, RELATIVE, SCATTER, PRESENCE, SIZE = "place", "place-relative", "scatter", "presence", "size"
"""Tests that every comparison has, besides those of features."""

PAIR, WHOLE = "pair", "whole animal"
"""Tests of left-right pairs, and of measures of the whole animal."""

SURVIVING = 0.01
"""Level at which a finding must be significant, by itself, when names are exchanged. The highest of
0, 0.01, 0.05, 0.2 at which less than 5% of the findings in training worms are false (20 animals,
shifts of one spacing: 3.6, 4.6, 5.6, 5.9%)."""

SETTLING_ROUNDS = 2
"""Rounds of leaving out cells that moved as neighbours of others."""

MOST_MOVED = 0.3
"""Share of the cells that may be left out: of more, nobody can say who moved."""

SPACINGS, RATIO, NUCLEI, MEASURED = "spacings", "ratio", "nuclei", "as measured"
"""Units of effects; a ratio is the change relative to the first group: 0.1 is 10% more."""


class Outcome(NamedTuple):
    """Results of one test for ``m`` things: cells, sets, pairs, or measures of the whole animal.

    Attributes
    ----------
    test
        its name.
    unit
        of effects.
    effect, low, high
        (m,) float64, differences with their 95% intervals; NaN where not known.
    p, q, family, pooled
        (m,) float64, see `eutely.comparison.scores.Result`.
    detectable
        (m,) float64, effect that is found family-wise in 80% of experiments like this.
    doubtful
        (m,) bool, whether the finding rests on doubtful names.
    shifts
        (m, 3) float64 in the unit of the atlas, for places; (m, 0) otherwise.
    maxima, highest
        (B,) and float, the largest statistics of permutations, and the observed one.
    """

    test: str
    unit: str
    effect: Array
    low: Array
    high: Array
    p: Array
    q: Array
    family: Array
    pooled: Array
    detectable: Array
    doubtful: NDArray[np.bool_]
    shifts: Array
    maxima: Array
    highest: float


class Answer(NamedTuple):
    """Results of all tests of one contrast.

    Attributes
    ----------
    contrast
        question.
    exact, permutations
        whether all permutations were computed, and how many.
    cells, sets, pairs, whole
        outcomes by test; those of sets, pairs and whole animals are in the order of ``Comparison``.
    any_difference
        p-value of there being any difference in any cell and test.
    """

    contrast: Contrast
    exact: bool
    permutations: int
    cells: tuple[Outcome, ...]
    sets: tuple[Outcome, ...]
    pairs: tuple[Outcome, ...]
    whole: tuple[Outcome, ...]
    any_difference: float


class _Asked(NamedTuple):
    """A contrast with its permutations."""

    contrast: Contrast
    exchanged: Permutations

    def outcome(
        self, test: str, unit: str, values: Array, found: Scores, *, deflate: float = 1.0
    ) -> Outcome:
        """Test values (n, m, d) and measure their differences."""
        result = self.result(found, deflate)
        effects = effects_of(values, found, self.contrast)
        bounds = intervals(effects)
        reach = detectable(effects, result.threshold, len(values))
        if unit == RATIO:
            bounds = Interval(*(np.expm1(np.clip(bound, -50, 50)) for bound in bounds))
            reach = np.expm1(np.clip(reach, -50, 50))
        shifts = effects.shifts if values.shape[2] == 3 else np.zeros((values.shape[1], 0))
        nothing = np.zeros(values.shape[1], dtype=np.bool_)
        ps = (result.p, result.q, result.family, result.pooled)
        last = (result.maxima, result.highest)
        return Outcome(test, unit, *bounds, *ps, reach, nothing, shifts, *last)

    def result(self, found: Scores, deflate: float = 1.0) -> Result:
        """Test scores (n, m, d), with the permutations of all cells together if there are many."""
        animals, things = found.weights.shape
        pooled = things >= 2 * animals**0.5
        return result_of(found, self.contrast, self.exchanged, pooled=pooled, deflate=deflate)

    def surviving(self, outcome: Outcome, again: Scores) -> Outcome:
        """Return an outcome whose findings are tested again.

        Those that do not stay significant by themselves (`SURVIVING`) get the larger p of both;
        what is no finding keeps its p, and where nothing is found, nothing changes.
        """
        result = self.result(again)
        known, moved = np.isfinite(outcome.p), outcome.q <= LEVEL
        fallen = moved & ~(result.pooled <= SURVIVING)

        def larger(one: Array, other: Array) -> Array:
            return np.where(fallen, np.maximum(one, np.nan_to_num(other, nan=1.0)), one)

        pooled, q = larger(outcome.pooled, result.pooled), outcome.q.copy()
        q[known] = benjamini_hochberg(pooled[known])
        p, family = larger(outcome.p, result.p), larger(outcome.family, result.family)
        return outcome._replace(p=p, pooled=pooled, family=family, q=q)

    def scored(
        self, values: Array, weights: Array, prior: Array | None = None, clip: bool = True
    ) -> Scores:
        """Return scores of values (n, m, d)."""
        return scores_of(values, weights, self.contrast.nuisance, prior, clip)

    def scatter(self, values: Array, found: Scores) -> Outcome:
        """Test whether places (n, m, d) scatter more in a group, around its own centre."""
        rows, groups = len(values), len(self.contrast.labels)
        lengths = spread_residuals(values, found, self.contrast)[..., None]
        # Animals of a group share its centre: their distances vary together, by this factor.
        free = (rows - self.contrast.nuisance.shape[1] - groups + 1) / rows
        scores = self.scored(lengths, found.weights)
        return self.outcome(SCATTER, RATIO, lengths, scores, deflate=max(free, 0.1))


def answer(
    atlas: Atlas,
    cells: Measured,
    contrast: Contrast,
    exchanged: Permutations,
    things: tuple[Sequence[CellSet], Sequence[tuple[int, int]], Mapping[str, Array]] = ((), (), {}),
    here: Positions | None = None,
) -> Answer:
    """Return the results of all tests of a contrast.

    Parameters
    ----------
    atlas
        whose cells are compared.
    cells
        all animals.
    contrast
        question about some of them.
    exchanged
        its permutations.
    things
        sets of cells, left-right pairs, and measures of whole animals; by default none.
    here
        places of the animals of the contrast, if they are known already: they do not depend on the
        groups.
    """
    sets, pairs, whole = things
    asked = _Asked(contrast, exchanged)
    if here is None:
        here = positions(atlas, _animals(cells, contrast.rows))
    here = _settled(atlas, asked, here, cells.weights)
    weights = cells.weights[contrast.rows]
    outcomes = list(_cell_tests(atlas, cells, asked, here))
    tests = [one for one in outcomes if np.isfinite(one.p).any()]
    return Answer(
        contrast,
        exchanged.exact,
        len(exchanged.values),
        tuple(outcomes),
        tuple(_set_tests(cells, asked, here, list(sets))) if sets else (),
        (_pair_test(cells, asked, weights, pairs),) if pairs else (),
        tuple(_whole_tests(asked, whole)) if whole else (),
        any_difference(tests, exchanged),
    )


def any_difference(outcomes: Sequence[Outcome], exchanged: Permutations) -> float:
    """Return the p-value of the strongest finding of all tests together.

    Each test's largest statistic becomes a rank among permutations; the best rank over all tests is
    compared with the best ranks of permutations, which are the same animals for all tests.
    """
    if not outcomes:
        return float("nan")
    count = len(exchanged.values)
    best = np.full(count, np.inf)
    observed = np.inf
    for one in outcomes:
        ordered = np.sort(one.maxima)
        best = np.minimum(best, count - np.searchsorted(ordered, one.maxima * (1 - 1e-9)))
        reached = count - int(np.searchsorted(ordered, one.highest * (1 - 1e-9)))
        observed = min(observed, reached + (0 if exchanged.exact else 1))
    exceeding = np.array([int((best <= observed).sum())])
    return float(exchanged.p_values(exceeding)[0])


def _settled(atlas: Atlas, asked: _Asked, here: Positions, weights: Array) -> Positions:
    """Return places relative to neighbours that did not move themselves.

    Cells that are found to have moved predict no others any more. Where none is found, nothing
    changes: the chance of any false finding stays what it was.
    """
    known = weights[asked.contrast.rows]
    for _ in range(SETTLING_ROUNDS):
        found = asked.scored(here.relative, known, atlas.conditionals)
        result = result_of(found, asked.contrast, asked.exchanged, pooled=True, deflate=1.0)
        moved = np.flatnonzero((result.q <= LEVEL) & (here.predicting > 0).any(axis=0))
        if not len(moved) or len(moved) > MOST_MOVED * len(atlas):
            break
        here = here.without(moved)
    return here


def _animals(cells: Measured, rows: NDArray[np.int64]) -> Measured:
    """Return some of the animals."""
    return Measured(
        tuple(cells.specimens[row] for row in rows.tolist()),
        cells.places[rows],
        cells.weights[rows],
        cells.counts[rows],
        {key: table[rows] for key, table in cells.values.items()},
        {key: level[rows] for key, level in cells.levels.items()},
        cells.logarithmic,
        cells.spacing,
    )


def _in_spacings(outcome: Outcome, spacing: float) -> Outcome:
    fields = ("effect", "low", "high", "detectable")
    return outcome._replace(**{key: getattr(outcome, key) / spacing for key in fields})


def _cell_tests(atlas: Atlas, cells: Measured, asked: _Asked, here: Positions) -> list[Outcome]:
    """Return the outcomes of all tests of single cells."""
    contrast = asked.contrast
    weights, counts = cells.weights[contrast.rows], cells.counts[contrast.rows]
    unsure = uncertain_cells(weights, contrast)
    possible = uncertain_cells(weights, contrast, UNSURE)
    results = []
    for test, values, prior in (
        (PLACE, here.displaced, atlas.covariances),
        (RELATIVE, here.relative, atlas.conditionals),
    ):
        found = asked.scored(values, weights, prior)
        outcome = asked.outcome(test, SPACINGS, values, found)
        if (outcome.q <= LEVEL).any():
            moved = outcome.q <= LEVEL
            other = with_exchanged_names(atlas, here, weights, moved, cells.spacing)
            other = other if test == PLACE else other - here.field
            outcome = asked.surviving(outcome, asked.scored(other, weights, prior))
        effects = effects_of(values, found, contrast)
        doubt = unsure | resting_on_doubt(values, found, weights, contrast, outcome.q)
        doubt |= exchanged_names(effects, here.means, outcome.q, outcome.p, possible)
        results.append(_in_spacings(outcome, cells.spacing)._replace(doubtful=doubt))
    results.append(asked.scatter(here.relative, found)._replace(doubtful=unsure))
    present = counts[..., None]
    found = asked.scored(present, np.ones_like(counts), clip=False)
    outcome = asked.outcome(PRESENCE, NUCLEI, present, found)
    doubt = uncertain_absences(counts, weights, here.means, contrast)
    results.append(outcome._replace(doubtful=doubt))
    for key, table in cells.values.items():
        values = table[contrast.rows][..., None]
        found = asked.scored(values, weights)
        outcome = asked.outcome(key, _unit(cells, key), values, found)
        doubt = unsure | resting_on_doubt(values, found, weights, contrast, outcome.q)
        results.append(outcome._replace(doubtful=doubt))
    return results


def _unit(cells: Measured, key: str) -> str:
    return RATIO if key in cells.logarithmic else MEASURED


def _set_tests(
    cells: Measured, asked: _Asked, here: Positions, sets: list[CellSet]
) -> list[Outcome]:
    """Return the outcomes of tests of sets of cells."""
    rows = asked.contrast.rows
    weights = cells.weights[rows]
    outside = _outside(here, weights, sets)
    results = []
    for test, values in ((PLACE, here.displaced), (RELATIVE, outside)):
        means, totals = (
            set_means(values, weights, sets) if test == PLACE else (values, _totals(weights, sets))
        )
        found = asked.scored(means, totals)
        outcome = asked.outcome(test, SPACINGS, means, found)
        results.append(_in_spacings(outcome, cells.spacing))
    counts = cells.counts[rows][..., None]
    means, _ = set_means(counts, np.ones_like(weights), sets)
    found = asked.scored(means, np.ones(means.shape[:2]), clip=False)
    results.append(asked.outcome(PRESENCE, NUCLEI, means, found))
    for key, table in cells.values.items():
        values = table[rows][..., None]
        typical = medians(values[..., 0].T, 0.0)
        means, totals = set_means(values - typical[None, :, None], weights, sets)
        results.append(asked.outcome(key, _unit(cells, key), means, asked.scored(means, totals)))
    return results


def _totals(weights: Array, sets: list[CellSet]) -> Array:
    return np.stack([weights[:, entry.cells].mean(axis=1) for entry in sets], axis=1)


def _outside(here: Positions, weights: Array, sets: list[CellSet]) -> Array:
    """Return (n, s, 3), mean displacements of sets minus those that cells around them predict."""
    result = np.full((len(weights), len(sets), 3), np.nan)
    kinds = list(dict.fromkeys(entry.kind for entry in sets))
    for kind in kinds:
        member = np.full(len(here.means), -1, dtype=np.int64)
        inside = [number for number, entry in enumerate(sets) if entry.kind == kind]
        for number in inside:
            member[sets[number].cells] = number
        apart = relative(here.displaced, here.predicting, here.means, member)
        means, _ = set_means(apart, weights, [sets[number] for number in inside])
        result[:, inside] = means
    return result


def _pair_test(
    cells: Measured, asked: _Asked, weights: Array, pairs: Sequence[tuple[int, int]]
) -> Outcome:
    """Test whether left and right cells lie otherwise to each other."""
    values = pair_shifts(cells.places[asked.contrast.rows], pairs)
    left, right = np.array(pairs, dtype=np.int64).T
    both = np.minimum(weights[:, left], weights[:, right])
    outcome = asked.outcome(PAIR, SPACINGS, values, asked.scored(values, both))
    doubt = uncertain_cells(both, asked.contrast)
    return _in_spacings(outcome, cells.spacing)._replace(doubtful=doubt)


def _whole_tests(asked: _Asked, whole: Mapping[str, Array]) -> list[Outcome]:
    """Test measures of whole animals."""
    values = np.stack([column[asked.contrast.rows] for column in whole.values()], axis=1)
    found = asked.scored(values[..., None], np.isfinite(values).astype(np.float64))
    return [asked.outcome(WHOLE, MEASURED, values[..., None], found)]
