"""The paper's way from specimens to cells, in steps that each need only what is before them.

align -> learn -> realign -> match_pairs -> synchronise -> cells -> estimate -> with_offsets
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.cliques import Cliques, Matchings
from eutely.config import Config
from eutely.errors import EutelyError
from eutely.execute import Executor, Progress
from eutely.learn.stages import Learned, learn
from eutely.learn.study import Journal
from eutely.learn.work import Progress as TrialProgress
from eutely.multi import synchronise
from eutely.pairs import match_pairs
from eutely.parameters import Parameters
from eutely.realign.consensus import Aligned, align, realign
from eutely.refine import Cohort

Points = NDArray[np.float64]

SHARE = 0.1
"""Of the specimens that must have a cell. Cliques of worms are either in nearly all of them, or in
a few."""

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
    cohort: Aligned, parameters: Parameters, config: Config, executor: Executor
) -> Aligned:
    """Align the cohort again, by the learned costs: step 3. See `realign`."""
    return realign(
        cohort,
        parameters,
        settings=config.realign,
        executor=executor,
        neighbours=config.costs.neighbours,
        c0=config.learn.c0,
    )


def matched(
    cohort: Aligned,
    parameters: Parameters,
    config: Config,
    executor: Executor,
    progress: Progress | None = None,
) -> Matchings:
    """Match all pairs by the learned costs: step 4. See `match_pairs`."""
    return match_pairs(
        cohort.frames,
        cohort.radii,
        parameters,
        config.multi.c0,
        executor,
        neighbours=config.costs.neighbours,
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
) -> Cohort:
    """Return the cohort whose cells are the cliques: step 6.

    Cliques that less than a tenth of the specimens share are no cells but splinters of others.

    Parameters
    ----------
    cohort, cliques
        from the steps before.
    poses, size, spacing
        of the common frame.
    """
    table = cliques.table(minimum=max(FEWEST, int(np.ceil(SHARE * len(cliques)))))
    if not len(table):
        raise EutelyError("no two specimens share a cell; are they of one organism?")
    posed = tuple(own[pose] for own, pose in zip(poses, cohort.poses, strict=True))
    nuclei = tuple(np.ascontiguousarray(column) for column in table.T)
    return Cohort(posed, cohort.frames, nuclei, size, spacing)


def with_offsets(atlas: Atlas, parameters: Parameters, config: Config) -> Atlas:
    """Return an estimated atlas that specimens are matched with as in the paper: step 8."""
    return replace(atlas, model="offsets", weights=parameters.weights(), c0=config.atlas.c0)


def find_cells(
    poses: Sequence[Sequence[Points]],
    radii: Sequence[Points],
    size: NDArray[np.float64],
    spacing: float,
    config: Config,
    executor: Executor,
    *,
    journal: Journal | None = None,
    progress: TrialProgress | None = None,
    done: Callable[[str, object], None] = lambda *_: None,
) -> tuple[Cohort, Parameters]:
    """Run steps 1 to 6.

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
    journal, progress
        of trials, as of `learn`.
    done
        told the name and the result of each step.
    """
    first = aligned(poses, radii, spacing, config, executor)
    done("align", first)
    found = learned(first, spacing, config, executor, journal, progress)
    done("learn", found)
    second = realigned(first, found.parameters, config, executor)
    done("realign", second)
    matchings = matched(second, found.parameters, config, executor)
    done("match", matchings)
    cliques = synchronised(matchings, config)
    done("synchronise", cliques)
    return cells(second, cliques, poses, size, spacing), found.parameters
