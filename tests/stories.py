"""Stories of pages with everything in them, made from simulated specimens and their truth."""

import numpy as np

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import estimate
from eutely.evaluation import Score, evaluation
from eutely.report import Shown, Story, Trial
from eutely.simulation import simulate


def toy_cohort(specimens: int = 6, cells: int = 60) -> tuple[Atlas, list[Shown]]:
    """Specimens in one frame; the last one is a misfit, and two cells are often confused."""
    random = np.random.default_rng(5)
    worms = simulate(specimens, cells=cells, seed=3, pose="none")
    names = sorted(set(worms[0].names or ()))
    places = np.array([worm.centroids[[worm.names.index(n) for n in names]] for worm in worms])
    middle = places.mean(axis=(0, 1))
    atlas = estimate(
        places - middle,
        size=np.array([300.0, 30.0]),
        spacing=13.0,
        settings=Estimate(),
        unit="um",
    ).named(names)
    shown = []
    for number, worm in enumerate(worms):
        cells_of = np.array([names.index(name) for name in worm.names], np.int32)
        confidence = random.beta(9, 0.7, len(worm))
        if number % 2:
            first, second = (int(np.flatnonzero(cells_of == cell)[0]) for cell in (7, 8))
            cells_of[[first, second]] = cells_of[[second, first]]
            confidence[[first, second]] = 0.05
        last = number == specimens - 1
        cells_of[:3] = -1 if last else cells_of[:3]
        confidence[cells_of < 0] = np.nan
        shown.append(
            Shown(
                worm.name,
                worm.centroids - middle,
                cells_of,
                confidence,
                worm.ids,
                worm.names,
                consistency=0.62 if last else 0.95 + 0.04 * random.random(),
                outlier="only 62% of its nuclei are confirmed by the others" if last else "",
                alternatives=[
                    ((8 if cell == 7 else 7, 0.6),) if cell in (7, 8) else () for cell in cells_of
                ],
            )
        )
    return atlas, shown


def toy_trials(number: int = 40) -> list[Trial]:
    """Three stages of learning; the second has two losses."""
    random = np.random.default_rng(1)
    trials = []
    for stage in ("linear", "sparsity", "offsets"):
        for trial in range(number):
            loss = -5000 + 900 * random.random() ** 3 / (1 + trial / 10)
            dense = 2000 + 12000 * random.random()
            values = [loss + 4e5 / dense, dense] if stage == "sparsity" else [loss]
            params = {"x": float(random.lognormal(2, 1)), "y": float(random.random())}
            trials.append(Trial(stage, trial, values, params))
    return trials


def toy_story(specimens: int = 6, cells: int = 60) -> Story:
    """Return a story in which nothing is absent."""
    atlas, shown = toy_cohort(specimens, cells)
    scores = []
    for one in shown:
        own = [atlas.names[cell] if cell >= 0 else "" for cell in one.cells]
        right = sum(a == b for a, b in zip(own, one.names, strict=True))
        scores.append(Score(one.name, len(one), right))
    return Story(
        atlas,
        specimens=shown,
        trials=toy_trials(),
        chosen={"sparsity": 3},
        parameters={"sigma_centroids": [12.5, 6.1, 5.9], "most": 12, "weights": {"offsets": 0.4}},
        timings={"read": 0.4, "orient": 1.2, "learn-linear": 34.0, "refine": 61.5},
        command="eutely build cohort -o run --seed 3",
        versions={"eutely": "0.1.0", "python": "3.12.3", "numpy": "2.4.0"},
        config="seed = 3\n\n[costs]\nneighbours = 6\n",
        evaluation=evaluation(scores),
    )
