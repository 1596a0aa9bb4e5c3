"""The order of the channels of a series: which column really holds which feature of an atlas.

Columns are taken for what they are called (`eutely.meaning`). Where channels were called wrongly,
two of them exchanged for instance, nuclei have the colours of other cells. So each order of the
channels is a hypothesis. The declared one is strongly likelier before; the evidence of the others
is that of the features of all specimens of the series, which share the order. Each nucleus is
explained by all cells that it may be by its place alone, and channels do not mix: by mixing, an
exchange would be explained without being noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from eutely.annotation import Annotation
from eutely.candidates import Candidates
from eutely.features import SHARED, feature_costs
from eutely.fit.match import Fit
from eutely.fit.model import Model
from eutely.fit.posterior import Posterior
from eutely.informative import MANY, REPEATED
from eutely.meaning import as_called, is_channel, matched
from eutely.solver.assignment import assign
from eutely.solver.softassign import Rules, soft_assign
from eutely.specimen import Specimen

MISLABELLED = 0.02
"""Probability that the channels of a series are in another order than they are called: an error of
labelling in one of fifty."""

ALIKE = 3.0
"""Nuclei whose colours are as one witness of the order: what an order gains is alike among
neighbours. Summed over 20 neighbours it varies 2.7 times as much as if it were independent (named
heads, each by an atlas of other folds)."""

SURE = 0.95
"""Probability from which an order is clear."""

ANY_ORDER = 4
"""Channels up to which any order is considered; of more, exchanges of two; of more than `MANY`,
which are chosen among first, none."""

Order = tuple[int, ...]
"""For each feature of an atlas, the number of the one that its values are declared to be."""


@dataclass(frozen=True, eq=False)
class Orders:
    """What is known about the order of the channels of a series.

    Attributes
    ----------
    orders
        possible ones; the declared one is the first.
    probabilities
        (k,), their probabilities.
    """

    orders: tuple[Order, ...]
    probabilities: NDArray[np.float64]

    @classmethod
    def of(cls, orders: Sequence[Order], evidence: NDArray[np.float64]) -> Orders:
        """Weigh orders by their log-likelihoods (k,), summed over the specimens of a series."""
        prior = np.full(len(orders), MISLABELLED / max(len(orders) - 1, 1))
        prior[0] = 1 - MISLABELLED
        return cls(tuple(orders), np.asarray(softmax(np.log(prior) + evidence / ALIKE)))

    @property
    def other(self) -> Order:
        """The likeliest order besides the declared one."""
        return self.orders[1 + int(np.argmax(self.probabilities[1:]))]

    @property
    def declared(self) -> bool:
        """Whether channels clearly are what they are called."""
        return bool(self.probabilities[0] >= SURE)

    @property
    def changed(self) -> bool:
        """Whether channels clearly are in another order than they are called."""
        return bool(self.probabilities[1:].max() >= SURE)

    def told(self, features: Sequence[str], specimen: Specimen) -> str:
        """Return in words what the order is; ``specimen`` is one of the series."""
        names = renaming(features, specimen, self.other)
        pairs = {old: new for old, new in names.items() if old in _columns(features, specimen)}
        taken = ", ".join(f"{old} for {new}" for old, new in pairs.items())
        *first, last = pairs
        what = f"channels {', '.join(first)} and {last}"
        if self.changed:
            return f"{what} are exchanged: {taken.replace(' for ', ' is taken for ', 1)}"
        return f"{what} may be exchanged, which is not clear: taken as they are called"


def orders_of(features: Sequence[str], fits: Sequence[Fit]) -> tuple[Order, ...]:
    """Return the possible orders of the channels that all specimens of a series have.

    The declared order is the first, those that exchange two channels come next.

    Parameters
    ----------
    features
        of the atlas.
    fits
        of the specimens, with scores of these features.
    """
    known = [np.isfinite(fit.scores).mean(axis=0) > SHARED for fit in fits]
    shared = np.logical_and.reduce(known) if known else np.zeros(len(features), bool)
    channels = [k for k, name in enumerate(features) if shared[k] and is_channel(name)]
    declared = tuple(range(len(features)))

    def order(changed: dict[int, int]) -> Order:
        return tuple(changed.get(k, k) for k in declared)

    if len(channels) > MANY:
        return (declared,)
    found = [order({i: j, j: i}) for i, j in combinations(channels, 2)]
    if len(channels) <= ANY_ORDER:
        found += [order(dict(zip(channels, one, strict=True))) for one in permutations(channels)]
    return tuple(dict.fromkeys([declared, *found]))


def evidence_of_orders(model: Model, fit: Fit, orders: Sequence[Order]) -> NDArray[np.float64]:
    """Return (k,), the log-likelihood of the features of a specimen by each order of its channels.

    Parameters
    ----------
    model
        all cells.
    fit
        from `eutely.fit.match.match_jointly`.
    orders
        see `orders_of`.
    """
    assert fit.expected is not None
    seen = (model if fit.view is None else model.through(fit.view)).loosened(fit.error)
    rules = Rules(seen.freedom, seen.c0(fit.rates))
    nuclei, _ = assign(fit.expected, seen.field.centres, fit.warped, rules)
    shares = soft_assign(fit.expected, seen.field.centres, fit.warped, rules)
    pairs, n = Candidates(shares.starts, shares.points), len(fit.warped)
    no_cell = np.maximum(1 - np.bincount(shares.points, shares.values, n), 1e-9)
    result = np.zeros(len(orders))
    for number, order in enumerate(orders):
        values = fit.scores[:, list(order)]
        costs = feature_costs(model.features, values, nuclei, model.freedom)
        if costs is not None:
            likely = shares.values * np.exp(-costs.on(pairs))
            result[number] = np.log(np.bincount(shares.points, likely, n) + no_cell).sum()
    return result


def _evidence(model: Model, fits: Sequence[Fit], orders: Sequence[Order]) -> NDArray[np.float64]:
    """Return `evidence_of_orders`, summed over the specimens of a series."""
    return np.asarray(np.sum([evidence_of_orders(model, fit, orders) for fit in fits], axis=0))


def settle_order(
    model: Model,
    features: Sequence[str],
    specimen: Specimen,
    fits: Sequence[Fit],
    again: Callable[[Mapping[str, str]], Iterable[Posterior]],
) -> Orders | None:
    """Return what the order of the channels of a series is; None where there is nothing to settle.

    There is nothing without two channels, and where a person has said which is which.

    Where another order explains the colours better by the places found in the declared one, the
    series is placed in that order as well, and both placements count alike: each of them speaks for
    the order that it was found in.

    Parameters
    ----------
    model, features
        cells of an atlas, and what their features are called.
    specimen
        one of the series; all of them have the same columns.
    fits
        of all of them, by their columns as they are called.
    again
        places all of them with other names of columns.
    """
    orders = orders_of(features, fits)
    if len(orders) == 1 or as_called.get():
        return None
    # Any order is an exchange away from a better one, unless it is the best.
    exchanges = [one for one in orders if np.not_equal(one, orders[0]).sum() <= 2]
    evidence = _evidence(model, fits, exchanges)
    if int(np.argmax(evidence)) == 0:
        return Orders.of(exchanges, evidence)
    evidence = _evidence(model, fits, orders)
    found = Orders.of(orders, evidence)
    back = np.argsort(found.other)  # scores by the features as they are called
    for placed in again(renaming(features, specimen, found.other)):
        called = replace(placed.fit, scores=placed.fit.scores[:, back])
        evidence += evidence_of_orders(model, called, orders)
    return Orders.of(orders, evidence / 2)


def same_columns(
    features: Sequence[str], cohort: Sequence[Specimen], groups: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return groups of specimens, by number, apart where their columns are called otherwise."""
    found: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for at, group in enumerate(groups):
        for number in group:
            columns = tuple(matched(features, cohort[number].features).values())
            found.setdefault((at, columns), []).append(number)
    return list(found.values())


def renaming(features: Sequence[str], specimen: Specimen, order: Order) -> dict[str, str]:
    """Return column -> how it should be called, for the columns that an order changes.

    Further statistics of a channel (``R_sd``) are called after its mean (``R_mean``).
    """
    columns = matched(features, specimen.features)
    names = {
        columns[features[declared]]: columns[features[number]]
        for number, declared in enumerate(order)
        if declared != number
    }
    further = {
        old.removesuffix("_mean") + end: new.removesuffix("_mean") + end
        for old, new in names.items()
        if old.endswith("_mean") and new.endswith("_mean")
        for end in REPEATED
    }
    there = {old: new for old, new in further.items() if {old, new} <= set(specimen.features)}
    return dict(sorted((names | there).items()))


def _columns(features: Sequence[str], specimen: Specimen) -> set[str]:
    """Return the columns of a specimen that have features of an atlas."""
    return set(matched(features, specimen.features).values())


def in_true_order(
    specimens: Sequence[Specimen], annotations: Sequence[Annotation]
) -> list[Specimen]:
    """Return specimens with their columns called what they are, see `Annotation.exchanged`."""
    pairs = zip(specimens, annotations, strict=True)
    return [one.renamed(found.exchanged) if found.exchanged else one for one, found in pairs]
