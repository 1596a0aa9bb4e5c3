"""The paper's way from specimens to cells, in steps that each need only what is before them.

align -> learn -> realign -> match_pairs -> synchronise -> cells -> estimate -> with_offsets
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.cliques import Cliques, Matchings
from eutely.config import Config
from eutely.errors import EutelyError
from eutely.execute import Executor, Progress
from eutely.store.folder import RunFolder
from eutely.find.learn.records import (
    aligned_of,
    aligned_saved,
    cliques_of,
    cliques_saved,
    learned_of,
    learned_saved,
    matchings_of,
    matchings_saved,
)
from eutely.find.learn.stages import Learned, learn
from eutely.find.learn.study import Journal
from eutely.find.learn.work import Progress as TrialProgress
from eutely.multi import synchronise
from eutely.pairs import match_pairs
from eutely.learned import Parameters
from eutely.align.consensus import Aligned, align, realign
from eutely.find.refine import Cohort
from eutely.progress import Watch, nobody

Points = NDArray[np.float64]

VERSION = 1
"""Of the steps; raised when their results change."""

SHARE = 0.1
"""Of the specimens that must have a cell. Cliques of worms are either in nearly all of them, or in
a few."""

WARPS = 2
"""Rounds of warping all specimens to the mean of all; the second changes little."""

FEWEST = 2
"""Specimens that must have a cell in any case."""


def aligned(
    poses: Sequence[Sequence[Points]],
    radii: Sequence[Points],
    spacing: float,
    config: Config,
    executor: Executor,
) -> Aligned:
    """Align the cohort by unlearned costs: step 1. See `align`."""
    return align(
        poses,
        radii,
        spacing=spacing,
        settings=config.realign,
        executor=executor,
        seed=config.seed,
    )


def learned(
    cohort: Aligned,
    spacing: float,
    config: Config,
    executor: Executor,
    journal: Journal | None = None,
    progress: TrialProgress | None = None,
) -> Learned:
    """Learn the parameters of the costs: step 2. See `learn`."""
    return learn(
        cohort.frames,
        cohort.radii,
        cohort.distance,
        spacing=spacing,
        neighbours=config.costs.neighbours,
        settings=config.learn,
        executor=executor,
        seed=config.seed,
        journal=journal,
        progress=progress,
    )


def realigned(
    cohort: Aligned,
    parameters: Parameters,
    poses: Sequence[Sequence[Points]],
    size: NDArray[np.float64],
    spacing: float,
    config: Config,
    executor: Executor,
) -> Aligned:
    """Align the cohort again, by the learned costs: step 3. See `realign`.

    With ``realign.warp`` all pairs are then matched in a rough way, and specimens warped to the
    mean of the cliques: pairs of warped specimens agree much better (docs/results.md).
    """
    affine = realign(
        cohort,
        parameters,
        settings=config.realign,
        executor=executor,
        neighbours=config.costs.neighbours,
        c0=config.learn.c0,
    )
    if not config.realign.warp:
        return affine
    rough = synchronised(matched(affine, parameters, config, executor, effort="fast"), config)
    return replace(affine, frames=cells(affine, rough, poses, size, spacing, config).warped)


def matched(
    cohort: Aligned,
    parameters: Parameters,
    config: Config,
    executor: Executor,
    progress: Progress | None = None,
    effort: str = "default",
) -> Matchings:
    """Match all pairs by the learned costs: step 4. See `match_pairs`."""
    return match_pairs(
        cohort.frames,
        cohort.radii,
        parameters,
        config.multi.c0,
        executor,
        neighbours=config.costs.neighbours,
        effort=effort,
        allowed=config.multi.synchronisation == "sparse",
        progress=progress,
    )


def synchronised(matchings: Matchings, config: Config) -> Cliques:
    """Make the matchings consistent: step 5. See `synchronise`."""
    return synchronise(matchings, sparse=config.multi.synchronisation == "sparse", seed=config.seed)


def cells(
    cohort: Aligned,
    cliques: Cliques,
    poses: Sequence[Sequence[Points]],
    size: NDArray[np.float64],
    spacing: float,
    config: Config,
) -> Cohort:
    """Return the cohort whose cells are the cliques: step 6.

    Cliques that less than a tenth of the specimens share are no cells but splinters of others.

    Parameters
    ----------
    cohort, cliques
        from the steps before.
    poses, size, spacing
        of the common frame.
    config
        whether to warp, and how the mean is estimated.
    """
    table = cliques.table(minimum=max(FEWEST, int(np.ceil(SHARE * len(cliques)))))
    if not len(table):
        raise EutelyError("no two specimens share a cell; are they of one organism?")
    posed = tuple(own[pose] for own, pose in zip(poses, cohort.poses, strict=True))
    nuclei = tuple(np.ascontiguousarray(column) for column in table.T)
    found = Cohort(posed, cohort.frames, nuclei, size, spacing)
    if config.realign.warp:
        for _ in range(WARPS):
            found = found.rewarped(config.estimate)
    return found


def with_offsets(atlas: Atlas, weights: NDArray[np.float64], config: Config) -> Atlas:
    """Return an estimated atlas that specimens are matched with as in the paper: step 8.

    Parameters
    ----------
    atlas
        as estimated.
    weights
        (3,) of the costs of centroids, radii and offsets: `Parameters.weights`.
    config
        whether to warp, and the cost of leaving cells alone.
    """
    return replace(
        atlas,
        model="offsets",
        warp=config.realign.warp,
        weights=weights,
        c0=config.atlas.c0,
    )


def find_costs(
    poses: Sequence[Sequence[Points]],
    radii: Sequence[Points],
    spacing: float,
    config: Config,
    executor: Executor,
    run: RunFolder,
    key: object,
    watch: Watch = nobody,
) -> tuple[Aligned, Learned]:
    """Run steps 1 and 2, each a stage of a run folder; arguments as of `find_cells`."""

    def told(stage: str, done: int, total: int, lowest: float) -> None:
        watch(f"learning {stage}", done, total, f"loss {lowest:.0f}")

    parts = config.part("seed", "realign")
    parts["realign"].pop("warp")  # which comes after learning
    parts["realign"].pop("scale")  # which comes before
    known: list[object] = [VERSION, key, parts]
    first = run.stage(
        "align",
        known,
        lambda: aligned(poses, radii, spacing, config, executor),
        aligned_saved,
        aligned_of,
    )
    known.append(config.part("costs", "learn"))
    journal = run.journal("trials", known)
    found = run.stage(
        "learn",
        known,
        lambda: learned(first, spacing, config, executor, journal, told),
        learned_saved,
        learned_of,
    )
    return first, found


def find_cells(
    poses: Sequence[Sequence[Points]],
    radii: Sequence[Points],
    size: NDArray[np.float64],
    spacing: float,
    config: Config,
    executor: Executor,
    run: RunFolder,
    key: object,
    watch: Watch = nobody,
) -> tuple[Cohort, Learned]:
    """Run steps 1 to 6, each a stage of a run folder; trials are kept one by one.

    Parameters
    ----------
    poses
        for each specimen its nuclei (n, 3) in each plausible pose, brought to ``size``.
    radii
        for each specimen (n, 3) semi-axes at that size.
    size, spacing
        of the common frame: length and width, typical distance of neighbours.
    config, executor
        settings, and where to run.
    run, key
        where results are kept, and what all that is given above depends on.
    watch
        told how far the work is.
    """

    def paired(done: int, total: int) -> None:
        watch("matching all pairs", done, total, "")

    first, found = find_costs(poses, radii, spacing, config, executor, run, key, watch)
    known = [VERSION, key, config.part("seed", "realign", "costs", "learn", "multi")]
    second = run.stage(
        "realign",
        known,
        lambda: realigned(first, found.parameters, poses, size, spacing, config, executor),
        aligned_saved,
        aligned_of,
    )
    matchings = run.stage(
        "match",
        known,
        lambda: matched(second, found.parameters, config, executor, paired),
        matchings_saved,
        matchings_of,
    )
    cliques = run.stage(
        "synchronise",
        known,
        lambda: synchronised(matchings, config),
        cliques_saved,
        cliques_of,
    )
    return cells(second, cliques, poses, size, spacing, config), found
