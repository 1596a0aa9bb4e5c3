"""The paper's method: costs learned by Bayesian optimisation, all pairs matched, cliques.

aligned -> costs -> realigned -> matched -> synchronised -> cells_of_cliques -> improved
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from eutely.align.consensus import Aligned, align, realign
from eutely.align.warp import warped_to_mean
from eutely.cells import Cells
from eutely.cliques import Cliques, Matchings
from eutely.errors import EutelyError
from eutely.find.found import Found, Labels
from eutely.find.learn.stages import learn
from eutely.find.refine.rounds import joint_round
from eutely.frame import Frame
from eutely.learned import Learned, Parameters
from eutely.multi import synchronise
from eutely.pairs import PairRules, match_pairs, partner_pairs
from eutely.steps import Context, Run, step

log = logging.getLogger("eutely")

SHARE, FEWEST = 0.1, 2
"""Share and number of specimens that must have a cell. Cliques of worms are either in nearly all of
them, or in a few; small ones are splinters of others."""

OVERLAP, FEW_PAIRS = 0.5, 0.2
"""Share of the length of the shorter of two specimens that both must show, and share of the pairs
that may show less. All nuclei of a pair are matched, so those that show other parts are wrong."""

WARPS = 2
"""Rounds of warping all specimens to the mean of all; the second changes little."""


def find(run: Run, frame: Frame, labels: Labels = ()) -> Found:
    """Find the cells that all specimens share, without any name."""
    del labels
    config = run.config
    _check_overlap(frame)
    first = run(aligned, frame)
    learned = run(costs, first, frame.body.spacing)
    second = run(realigned, frame, first, learned.parameters)
    matchings = run(matched, second, learned.parameters)
    cliques = run(synchronised, matchings)
    cells = run(cells_of_cliques, frame, second, cliques)
    for number in range(config.atlas.rounds if frame.body.smooth else 0):
        cells = run(improved, cells, number)
    weights = learned.parameters.weights() if config.atlas.model == "offsets" else None
    return Found(cells, weights=weights, learned=learned)


def _check_overlap(frame: Frame) -> None:
    """Raise an error if many pairs of specimens show different parts of the body."""
    if not any(frame.parts):
        return
    low, high = np.array([(p[0][:, 0].min(), p[0][:, 0].max()) for p in frame.poses]).T
    g, h = np.triu_indices(len(frame), 1)
    shared = np.minimum(high[g], high[h]) - np.maximum(low[g], low[h])
    apart = float((shared < OVERLAP * np.minimum((high - low)[g], (high - low)[h])).mean())
    if apart > FEW_PAIRS:
        raise EutelyError(
            f"method learn matches all pairs of specimens, but {apart:.0%} of the pairs show "
            "different parts of the body; use method refine (the default preset), or give only "
            "specimens that show most of it"
        )


@step("seed", "realign.iterations", "realign.trim", "realign.stretch", "multi.partners")
def aligned(context: Context, frame: Frame) -> Aligned:
    """Align the specimens by unlearned costs."""
    settings = context.settings
    pairs = partner_pairs(len(frame), settings.multi.partners, settings.seed)
    return align(frame, settings.realign, context.executor, seed=settings.seed, pairs=pairs)


@step("seed", "costs", "learn")
def costs(context: Context, specimens: Aligned, spacing: float) -> Learned:
    """Learn the parameters of the costs; trials are kept one by one."""
    return learn(specimens, spacing, context)


@step("seed", "realign", "costs", "learn.c0", "multi", "estimate")
def realigned(context: Context, frame: Frame, before: Aligned, parameters: Parameters) -> Aligned:
    """Align the specimens again, by the learned costs.

    With ``realign.warp`` all pairs are then matched in a rough way, and specimens warped to the
    mean of the cliques: pairs of warped specimens agree much better (docs/replication.md).
    """
    settings = context.settings
    rules = PairRules(parameters, settings.learn.c0, settings.costs.neighbours, effort="fast")
    affine = realign(before, rules, settings.realign, context.executor)
    if not frame.body.smooth:
        return affine
    rough = synchronised(context, _matched(context, affine, parameters, "fast"))
    return replace(affine, frames=cells_of_cliques(context, frame, affine, rough).warped)


@step("seed", "costs", "multi")
def matched(context: Context, specimens: Aligned, parameters: Parameters) -> Matchings:
    """Match all pairs by the learned costs."""
    return _matched(context, specimens, parameters, "default")


def _matched(
    context: Context, specimens: Aligned, parameters: Parameters, effort: str
) -> Matchings:
    settings = context.settings
    rules = PairRules(parameters, settings.multi.c0, settings.costs.neighbours, effort=effort)
    return match_pairs(
        specimens.frames,
        specimens.radii,
        rules,
        context.executor,
        allowed=settings.multi.synchronisation == "sparse",
        pairs=partner_pairs(len(specimens.frames), settings.multi.partners, settings.seed),
        on_done=lambda done, total: context.progress("matching all pairs", done, total, ""),
    )


@step("seed", "multi.synchronisation")
def synchronised(context: Context, matchings: Matchings) -> Cliques:
    """Make the matchings consistent."""
    settings = context.settings
    sparse = settings.multi.synchronisation == "sparse"
    return synchronise(matchings, sparse=sparse, seed=settings.seed)


@step("estimate")
def cells_of_cliques(context: Context, frame: Frame, specimens: Aligned, cliques: Cliques) -> Cells:
    """Take cliques for cells, without those that few specimens share."""
    cells = clique_cells(frame, specimens, cliques)
    for _ in range(WARPS if frame.body.smooth else 0):
        cells = warped_to_mean(cells, context.settings.estimate)
    return cells


def clique_cells(frame: Frame, specimens: Aligned, cliques: Cliques) -> Cells:
    """Return the cells that cliques stand for, the specimens as they are aligned."""
    table = cliques.table(minimum=max(FEWEST, int(np.ceil(SHARE * len(cliques)))))
    if not len(table):
        raise EutelyError("no two specimens share a cell; are they of one organism?")
    posed = tuple(poses[number] for poses, number in zip(frame.poses, specimens.poses, strict=True))
    nuclei = tuple(np.ascontiguousarray(column) for column in table.T)
    return Cells(posed, specimens.frames, nuclei, frame.scores, frame.body, frame.parts)


@step("refine.folds", "estimate")
def improved(context: Context, cells: Cells, number: int) -> Cells:  # noqa: ARG001
    """Match all specimens again, to the atlas of others."""
    settings = context.settings
    parts = min(settings.refine.folds, len(cells))
    cells, cost = joint_round(cells, settings.estimate, context.executor, parts=parts, afresh=False)
    log.info("cost of specimens that were held out: %.1f", cost)
    # A cell may lose its last nucleus to its neighbours.
    return warped_to_mean(cells.present(), settings.estimate)
