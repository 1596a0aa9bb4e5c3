"""Tables of ablations of the paper: parts of the model, what learning minimises, terms of costs."""

from dataclasses import replace

import numpy as np

from eutely.find.learn import costs
from eutely.learned import Learned, Parameters
from eutely.pairs import PairRules, match_pairs
from figures import Figures
from laboratory import FEWER, SOME, Lab, drawn

NOTHING = 1e4
"""Factor of the variances of a term that shall not count; thresholds are divided by it."""

NO_EDGES = {
    "edges": np.zeros((0, 2), np.int32),
    "offsets": np.zeros((0, 3)),
    "offset_covariances": np.zeros((0, 3, 3)),
}
"""Fields of an atlas without offsets: matching with it is a linear problem."""

DENSE = {"tau_centroid": 1e12, "tau_radius": 1e12}
"""Fields of an atlas that allows every assignment."""

HALVED = "unlearned quadratic, long axis in half the voxels"
"""Row of `models` that the paper does not have."""

MARKS = (1, 10, 20, 50, 100, 200, 300, 400, 500)
"""Trials after which the lowest loss is kept."""


def without(parameters: Parameters, *terms: str) -> Parameters:
    """Return costs in which ``terms`` count nothing, while the same assignments are allowed."""
    for term in terms:
        x, y, z = getattr(parameters, term)
        parameters = replace(parameters, **{term: (x * NOTHING, y * NOTHING, z * NOTHING)})
        tau = {"centroids": "tau_centroid", "radii": "tau_radius"}.get(term)
        if tau:
            parameters = replace(parameters, **{tau: getattr(parameters, tau) / NOTHING})
    return parameters


def curve(learned: Learned, stage: str) -> dict[str, float]:
    """Return the lowest loss of a stage after so many trials."""
    losses = [trial.losses[0] for trial in learned.trials if trial.stage == stage]
    lowest = np.minimum.accumulate(losses)
    return {f"{mark}": float(lowest[mark - 1]) for mark in MARKS if mark <= len(lowest)}


def learning(lab: Lab) -> None:
    """Show the learned costs, and how the losses fall."""

    def row() -> Figures:
        parameters = lab.learned.parameters
        known = {key: np.round(value, 4).tolist() for key, value in parameters.as_dict().items()}
        weights = parameters.weights().round(3).tolist()
        curves = {stage: curve(lab.learned, stage) for stage in lab.learned.chosen}
        return known | {"weights": weights, "curves": curves}

    lab.rows("learning", {"learned": row})


def models(lab: Lab) -> None:
    """Table 1: what each part of the model is good for."""

    def linear_dense() -> Figures:
        parameters = lab.learned_with(trials_offsets=0, trials_sparsity=0)
        rules = PairRules(parameters, lab.config.learn.c0, dense=True)
        matchings = match_pairs(lab.first.frames, lab.first.radii, rules, lab.run.executor)
        cells = lab.cells(lab.first, matchings)
        return lab.judged(cells, parameters.weights(), lab.first, **NO_EDGES, **DENSE)

    def linear_sparse() -> Figures:
        parameters = lab.learned_with(trials_offsets=0)
        cells = lab.cells(lab.first, lab.matched(lab.first, parameters, neighbours=0))
        return lab.judged(cells, parameters.weights(), lab.first, **NO_EDGES)

    def unlearned(halved: bool = False) -> Figures:
        start = Parameters.unlearned(lab.cohort.frame.body.spacing)
        parameters = replace(start, k_min=lab.learned.parameters.k_min, tau_centroid=0.0)
        if halved:
            x, y, z = start.centroids
            same = dict.fromkeys(("centroids", "radii", "offsets"), (4 * x, y, z))
            parameters = replace(parameters, **same)
        cells = lab.cells(lab.first, lab.matched(lab.first, parameters))
        return lab.judged(cells, np.ones(3), lab.first)

    lab.rows(
        "models",
        {
            "linear dense": linear_dense,
            "linear sparse": linear_sparse,
            "unlearned quadratic": unlearned,
            HALVED: lambda: unlearned(halved=True),
            "full": lambda: lab.full,
        },
    )


def losses(lab: Lab) -> None:
    """Table 2: what learning minimises; both rows with fewer trials, and on some of the worms."""
    chosen = drawn(lab, SOME)

    def row(loss: str) -> Figures:
        names = ("trials_linear", "trials_sparsity", "trials_offsets")
        changes = {"loss": loss, **dict.fromkeys(names, FEWER)}
        run, spacing = lab.with_settings("learn", **changes), lab.cohort.frame.body.spacing
        parameters = run(costs, lab.first, spacing).parameters
        second = lab.realigned(parameters)
        settings = lab.config.multi.c0, lab.config.costs.neighbours
        frames = [second.frames[number] for number in chosen]
        radii = [second.radii[number] for number in chosen]
        matchings = match_pairs(frames, radii, PairRules(parameters, *settings), lab.run.executor)
        cells = lab.cells(second, matchings, chosen)
        found = lab.judged(cells, parameters.weights(), second, chosen)
        return found | {"trials": FEWER, "worms_matched": SOME}

    kinds = {"cycle": "cycle", "synchronisation, sparse": "sync"}
    lab.rows("losses", {name: lambda kind=kind: row(kind) for name, kind in kinds.items()})


def terms(lab: Lab) -> None:
    """Table of supplement C: the final model without some of its terms, nothing learned again."""
    learned = lab.learned.parameters

    def row(weights: tuple[float, float, float], *gone: str) -> Figures:
        how = {} if weights[2] else {"neighbours": 0}
        cells = lab.cells(lab.second, lab.matched(lab.second, without(learned, *gone), **how))
        change = {} if weights[2] else NO_EDGES
        return lab.judged(cells, np.array(weights), lab.second, **change)

    def single() -> Figures:
        cells = lab.cells(lab.first, lab.matched(lab.first, learned))
        return lab.judged(cells, learned.weights(), lab.first)

    lab.rows(
        "terms",
        {
            "centres only": lambda: row((1, 0, 0), "radii"),
            "radii only": lambda: row((1e-4, 1, 0), "centroids"),
            "no offsets": lambda: row((1, 1, 0)),
            "offsets only": lambda: row((1e-4, 1e-4, 1), "centroids", "radii"),
            "single re-alignment": single,
            "full": lambda: lab.full,
        },
    )
