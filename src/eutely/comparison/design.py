"""Who is compared with whom, given what else differs between the animals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eutely.errors import CompareError, expect_whole

Array = NDArray[np.float64]

FEWEST = 3
"""Animals that a group needs."""

SAME = 1e-6
"""Share of the variance of the group that covariates must leave."""

MOST_PERMUTATIONS = 10_000_000
"""Permutations that may be asked for."""

Value = str | float


@dataclass(frozen=True)
class Design:
    """How groups of animals are compared.

    Attributes
    ----------
    covariates
        column -> specimen -> value. Numbers are regressed out; texts are batches: animals are
        exchanged only with animals of the same batch.
    trend
        take the groups for an order, such as ages, and test the trend over all of them; otherwise
        each group is compared with the first one.
    cell_groups
        column -> name of the cell -> set of cells, to compare sets as well.
    given_names
        nuclei that have a name in the input are that cell, without doubt.
    adapt
        name all animals as one series, see `eutely.annotate`; by default each by itself.
    permutations
        of the animals; all of them where there are fewer.
    seed
        of the permutations.
    """

    covariates: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    trend: bool = False
    cell_groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    given_names: bool = False
    adapt: bool | None = False
    permutations: int = 10_000
    seed: int = 0

    def __repr__(self) -> str:
        words = [*self.covariates, *self.cell_groups, *["trend"] * self.trend]
        listed = f"{', '.join(words[:4])}{', ...' if len(words) > 4 else ''}; " if words else ""
        return f"<Design: {listed}{self.permutations} permutations>"

    def __post_init__(self) -> None:
        expect_whole("permutations", self.permutations, CompareError)
        expect_whole("seed", self.seed, CompareError)
        for key in ("covariates", "cell_groups"):
            if not isinstance(getattr(self, key), Mapping):
                raise CompareError(f"{key}: expected a dict, see the documentation of Design")
        if not 19 <= self.permutations <= MOST_PERMUTATIONS:
            raise CompareError(
                f"permutations: {self.permutations}; give 19 (p = 0.05 at best) to "
                f"{MOST_PERMUTATIONS:,}"
            )
        if self.seed < 0:
            raise CompareError(f"seed {self.seed} is negative; give 0 or more")


@dataclass(frozen=True, eq=False)
class Contrast:
    """A question about ``n`` animals.

    Attributes
    ----------
    name
        such as "mutant against wild type".
    labels
        the two groups, the reference first; of a trend all groups.
    rows
        (n,) int64, the animals among all measured ones.
    groups
        (n,) int64, the label of each.
    values
        (n,) float64, 0 and 1, or the value of a trend: effects are per unit.
    nuisance
        (n, q) float64, an intercept, batches and covariates.
    batches
        (n,) int64, animals that may be exchanged have the same number.
    """

    name: str
    labels: tuple[str, ...]
    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    values: Array
    nuisance: Array
    batches: NDArray[np.int64]

    @property
    def residual(self) -> Array:
        """(n,), the values as far as nuisance does not explain them."""
        fitted, *_ = np.linalg.lstsq(self.nuisance, self.values, rcond=None)
        return np.asarray(self.values - self.nuisance @ fitted)


def contrasts(
    labels: Sequence[str], animals: Sequence[str], specimens: Sequence[str], design: Design
) -> list[Contrast]:
    """Return the questions that a design asks.

    Parameters
    ----------
    labels
        the groups, in order, the reference first.
    animals
        N labels, the group of each animal.
    specimens
        N names, by which covariates are looked up.
    design
        of the comparison.
    """
    sizes = Counter(animals)
    if len(labels) < 2:
        raise CompareError(f"one group ({labels[0] if labels else 'none'}); give two or more")
    for label in labels:
        if sizes[label] < FEWEST:
            raise CompareError(
                f"group '{label}' has {sizes[label]} animals that can be used, expected at least "
                f"{FEWEST}"
            )
    number = {label: k for k, label in enumerate(labels)}
    group = np.array([number[label] for label in animals], dtype=np.int64)
    if design.trend:
        if len(labels) < 3:
            raise CompareError(f"a trend needs three groups or more, there are {len(labels)}")
        values = _levels(labels)[group]
        name = f"trend over {', '.join(labels)}"
        return [_contrast(name, tuple(labels), np.arange(len(group)), group, values, specimens,
                          design)]  # fmt: skip
    found = []
    for other in range(1, len(labels)):
        rows = np.flatnonzero((group == 0) | (group == other))
        side = (group[rows] == other).astype(np.int64)
        pair = (labels[0], labels[other])
        name = f"{pair[1]} against {pair[0]}"
        found.append(_contrast(name, pair, rows, side, side.astype(np.float64), specimens, design))
    return found


def _levels(labels: Sequence[str]) -> Array:
    """Return the values of ordered groups: their labels if these are numbers, or 0, 1, 2, .."""
    try:
        values = np.array([float(label) for label in labels])
    except ValueError:
        return np.arange(len(labels), dtype=np.float64)
    return values if np.isfinite(values).all() else np.arange(len(labels), dtype=np.float64)


def _contrast(
    name: str,
    labels: tuple[str, ...],
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
    values: Array,
    specimens: Sequence[str],
    design: Design,
) -> Contrast:
    columns: list[Array] = [np.ones(len(rows))]
    batches = np.zeros(len(rows), dtype=np.int64)
    for key, table in design.covariates.items():
        given = [_value(table, specimens[row], key) for row in rows.tolist()]
        numbers = _numbers(given)
        if numbers is not None:
            scale = float(numbers.std())
            if scale > 0:
                columns.append((numbers - numbers.mean()) / scale)
        else:
            kinds = {kind: k for k, kind in enumerate(dict.fromkeys(map(str, given)))}
            batch = np.array([kinds[str(value)] for value in given])
            _, batches = np.unique(batches * len(kinds) + batch, return_inverse=True)
    columns += [
        (batches == number).astype(np.float64) for number in range(1, int(batches.max()) + 1)
    ]
    result = Contrast(name, labels, rows, groups, values, np.stack(columns, axis=1), batches)
    spread = float(np.var(values))
    if not spread > 0 or float(np.mean(result.residual**2)) < SAME * spread:
        raise CompareError(
            f"{name}: the covariates {', '.join(design.covariates)} say which group an animal is "
            "in, so that no difference is that of the group; leave one out"
        )
    return result


def _value(table: Mapping[str, Value], specimen: str, key: str) -> Value:
    value = table.get(specimen)
    if value is None or value == "" or value != value:
        raise CompareError(f"{specimen} has no value of the covariate '{key}'; give one to each")
    return value


def _numbers(given: Sequence[Value]) -> Array | None:
    """Return values as numbers, or None if one is a text."""
    try:
        numbers = np.array([float(value) for value in given])
    except ValueError:
        return None
    if not np.isfinite(numbers).all():
        raise CompareError("covariates must be finite numbers or texts; one is infinite")
    return numbers
