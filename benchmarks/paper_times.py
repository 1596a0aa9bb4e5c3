"""Run times of the paper's steps, and of one trial of each stage of learning."""

import resource
import time

import numpy as np

from eutely.find.learn.stages import learn, loss_of
from eutely.pairs import PairRules, match_pairs
from eutely.steps import Context
from figures import Figures
from laboratory import Lab, changed, matched_with

STEPS = ("aligned", "costs", "realigned", "matched", "synchronised", "cells-of-cliques")
"""Steps of the method that are shown."""


def times(lab: Lab) -> None:
    """Show how long each step took when it was done, and the memory so far."""
    found, _ = lab.found, lab.test_aligned
    start = time.process_time()
    atlas = lab.atlas(found, lab.weights)
    matched_with(atlas, lab.test_aligned)
    seconds = round(time.process_time() - start, 1)
    spent = lab.folder.spent()
    rows = {step: lambda step=step: spent[step] for step in STEPS}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows["atlas and evaluation"] = lambda: {"processor_seconds": seconds}
    lab.rows("times", rows | {"memory": lambda: {"gigabytes": round(peak, 2)}})


def trials(lab: Lab, count: int = 10) -> None:
    """Time a few trials of each stage, and the losses, on 15 worms."""
    marks: dict[str, list[float]] = {}

    def progress(what: str, *_: object) -> None:
        marks.setdefault(what.removeprefix("learning "), []).append(time.process_time())

    names = ("trials_linear", "trials_sparsity", "trials_offsets")
    config = changed(lab.config, "learn", **dict.fromkeys(names, count))
    aligned, executor = lab.first, lab.run.executor
    context = Context(config, executor, progress, [])
    learned = learn(aligned, lab.cohort.frame.body.spacing, context)

    def stage(name: str) -> Figures:
        return {"processor_seconds": round(float(np.median(np.diff(marks[name]))), 3)}

    def loss(kind: str) -> Figures:
        frames = [aligned.frames[number] for number in learned.specimens]
        radii = [aligned.radii[number] for number in learned.specimens]
        rules = PairRules(learned.parameters, config.learn.c0)
        matchings = match_pairs(frames, radii, rules, executor, allowed=True)
        loss_of(matchings, kind)
        start = time.process_time()
        loss_of(matchings, kind)
        return {"processor_seconds": round(time.process_time() - start, 3)}

    rows = {name: lambda name=name: stage(name) for name in marks}
    kinds = ("cycle", "sync-dense", "sync")
    lab.rows("trials", rows | {f"loss {kind}": lambda kind=kind: loss(kind) for kind in kinds})
