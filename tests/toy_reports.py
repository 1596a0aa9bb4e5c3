"""Toy reports in which nothing is absent, made from simulated specimens and their true names."""

from dataclasses import replace

import numpy as np

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import estimate
from eutely.evaluation import Score, evaluation
from eutely.frame import Body
from eutely.learned import Trial
from eutely.results import Report, Shown
from eutely.simulation import simulate


def toy_cohort(specimens: int = 6, cells: int = 60) -> tuple[Atlas, tuple[Shown, ...]]:
    """Specimens in one frame; the last is an outlier, and cells 7 and 8 are often confused."""
    random = np.random.default_rng(5)
    worms = simulate(specimens, cells=cells, seed=3, pose="none")
    names = sorted(set(worms[0].names or ()))
    places = np.array(
        [worm.centroids[[worm.names.index(name) for name in names]] for worm in worms]
    )
    middle = places.mean(axis=(0, 1))
    body = Body(np.array([300.0, 30.0]), 13.0)
    atlas = replace(estimate(places - middle, body, Estimate()), unit="um").named(names)
    shown = []
    for number, worm in enumerate(worms):
        worm_cells = np.array([names.index(name) for name in worm.names], np.int32)
        confidence = random.beta(9, 0.7, len(worm))
        if number % 2:
            first, second = (int(np.flatnonzero(worm_cells == cell)[0]) for cell in (7, 8))
            worm_cells[[first, second]] = worm_cells[[second, first]]
            confidence[[first, second]] = 0.05
        last = number == specimens - 1
        worm_cells[:3] = -1 if last else worm_cells[:3]
        confidence[worm_cells < 0] = np.nan
        shown.append(
            Shown(
                worm.name,
                worm.centroids - middle,
                worm_cells,
                confidence,
                worm.ids,
                worm.names,
                alternatives=tuple(
                    ((8 if cell == 7 else 7, 0.6),) if cell in (7, 8) else () for cell in worm_cells
                ),
                consistency=0.62 if last else 0.95 + 0.04 * random.random(),
                outlier="only 62% of its nuclei are confirmed by the others" if last else "",
            )
        )
    return atlas, tuple(shown)


def bare(shown: Shown) -> Shown:
    """The same specimen with nothing known but positions, cells and ids."""
    nothing = np.full(len(shown), np.nan)
    return Shown(shown.name, shown.positions, shown.cells, nothing, shown.ids)


def toy_trials(number: int = 40) -> tuple[Trial, ...]:
    """Three stages of learning; the second has two losses."""
    random = np.random.default_rng(1)
    trials = []
    for stage in ("linear", "sparsity", "offsets"):
        for trial in range(number):
            loss = -5000 + 900 * random.random() ** 3 / (1 + trial / 10)
            dense = 2000 + 12000 * random.random()
            losses = (loss + 4e5 / dense, dense) if stage == "sparsity" else (loss,)
            parameters = {"x": float(random.lognormal(2, 1)), "y": float(random.random())}
            trials.append(Trial(stage, trial, parameters, losses))
    return tuple(trials)


def toy_report(specimens: int = 6, cells: int = 60) -> tuple[Atlas, Report]:
    """An atlas and a report in which nothing is absent."""
    atlas, shown = toy_cohort(specimens, cells)
    scores = []
    for worm in shown:
        given = [atlas.names[cell] if cell >= 0 else "" for cell in worm.cells]
        right = sum(name == truth for name, truth in zip(given, worm.names, strict=True))
        scores.append(Score(worm.name, len(worm), right))
    report = Report(
        specimens=shown,
        trials=toy_trials(),
        chosen={"sparsity": 3},
        parameters={"sigma_centroids": [12.5, 6.1, 5.9], "k_min": 12, "weights": {"offsets": 0.4}},
        timings=(("read", 0.4), ("orient", 1.2), ("learn-linear", 34.0), ("refine", 61.5)),
        command="eutely build cohort -o run --seed 3",
        versions={"eutely": "0.1.0", "python": "3.12.3", "numpy": "2.4.0"},
        config="seed = 3\n\n[costs]\nneighbours = 6\n",
        evaluation=evaluation(scores),
    )
    return atlas, report
