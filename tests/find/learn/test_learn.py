"""Learning the costs: stages, resuming, rules of choice."""

import numpy as np
import pytest
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution

from eutely.config.model import Learn
from eutely.execute import open_executor
from eutely.find.learn import Learned, Trial, learn
from eutely.find.learn.sparsity import pareto_choice
from eutely.find.learn.stages import choose_specimens
from eutely.find.learn.study import optimise
from eutely.learned import Parameters

Points = NDArray[np.float64]
SPACING = 2.0


def frames(count: int = 4) -> list[Points]:
    """Return specimens of 25 cells that vary along x far more than across."""
    cells = np.random.default_rng(3).uniform(0, 8, (25, 3))
    random = np.random.default_rng(4)
    return [
        (cells + random.normal(0, 1, (25, 3)) * [1.5, 0.1, 0.1])[random.permutation(25)]
        for _ in range(count)
    ]


def learned(
    journal: list[object] | None = None, workers: int = 1, trials: int = 12, **how: object
) -> Learned:
    values = {
        "specimens": 4,
        "trials_linear": trials,
        "trials_sparsity": trials,
        "trials_offsets": trials,
    }
    points = frames()
    with open_executor(workers) as executor:
        return learn(
            points,
            [np.full(one.shape, np.nan) for one in points],
            np.ones(len(points)),
            spacing=SPACING,
            neighbours=4,
            settings=Learn(**(values | how)),  # type: ignore[arg-type]
            executor=executor,
            seed=7,
            journal=journal,
        )


class KilledError(Exception):
    """The end of a process."""


class Fragile(list):  # type: ignore[type-arg]
    """A journal whose process dies at a given length."""

    def __init__(self, known: list[object], end: int) -> None:
        super().__init__(known)
        self.end = end

    def append(self, value: object, /) -> None:
        super().append(value)
        if len(self) == self.end:
            raise KilledError


@pytest.fixture(scope="module")
def whole() -> tuple[Learned, list[object]]:
    journal: list[object] = []
    return learned(journal), journal


def test_learns_along_which_axis_cells_vary(whole: tuple[Learned, list[object]]) -> None:
    found, _ = whole
    x, y, z = found.parameters.centroids
    assert x > 2 * max(y, z)
    losses = [trial.losses[0] for trial in found.trials["linear"]]
    assert min(losses) < losses[0]


def test_continues_exactly_after_being_killed(whole: tuple[Learned, list[object]]) -> None:
    undisturbed, journal = whole
    assert len(journal) == 36
    kept: list[object] = []
    for end in (1, 11, 13, 30):
        kept = Fragile(kept, end)
        with pytest.raises(KilledError):
            learned(kept)
        kept = list(kept)
    again = learned(kept)
    assert kept == journal
    assert again == undisturbed


def test_two_workers_learn_the_same(whole: tuple[Learned, list[object]]) -> None:
    assert learned(workers=2) == whole[0]


def test_stages_without_trials_are_skipped() -> None:
    found = learned(trials=0)
    assert found.trials == {}
    assert len(set(found.parameters.centroids)) == 1
    assert found.parameters.least == Parameters.unlearned().least
    one = learned(trials=0, trials_sparsity=3)
    assert list(one.trials) == ["sparsity"]


def test_the_cycle_loss_learns_too() -> None:
    found = learned(loss="cycle", trials=0, trials_linear=10)
    losses = [trial.losses[0] for trial in found.trials["linear"]]
    assert min(losses) >= 0
    assert min(losses) < losses[0]


def test_progress_tells_the_lowest_loss() -> None:
    told: list[tuple[str, int, int, float]] = []
    points = frames(3)
    with open_executor(1) as executor:
        learn(
            points,
            [np.full(one.shape, np.nan) for one in points],
            np.ones(3),
            spacing=SPACING,
            neighbours=4,
            settings=Learn(trials_linear=3, trials_sparsity=0, trials_offsets=0),
            executor=executor,
            progress=lambda *what: told.append(what),
        )
    assert [one[:3] for one in told] == [("linear", done, 3) for done in (1, 2, 3)]
    assert [one[3] for one in told] == sorted((one[3] for one in told), reverse=True)


def test_pareto_rule_of_the_paper() -> None:
    trials = [
        Trial({"least": 1}, (-900.0, 100.0)),
        Trial({"least": 2}, (-999.6, 300.0)),
        Trial({"least": 3}, (-1000.0, 400.0)),
        Trial({"least": 4}, (-2000.0, 5000.0)),
    ]
    assert pareto_choice(trials, 1000, 0.0005).values == {"least": 2}
    assert pareto_choice(trials, 1000, 0.0).values == {"least": 3}
    assert pareto_choice(trials, 6000, 0.0005).values == {"least": 4}
    assert pareto_choice(trials, 50, 0.0005).values == {"least": 1}


def test_specimens_are_drawn_by_seed_without_strangers() -> None:
    distance = np.linspace(1, 1.5, 20)
    distance[[3, 8]] = [4.0, np.inf]
    drawn = choose_specimens(distance, 10, seed=0)
    assert len(drawn) == 10
    assert drawn == choose_specimens(distance, 10, seed=0)
    assert drawn != choose_specimens(distance, 10, seed=1)
    assert not {3, 8} & set(choose_specimens(distance, 99, seed=0))


def test_finds_the_bottom_of_a_bowl() -> None:
    space = {"a": FloatDistribution(0.0, 10.0), "b": FloatDistribution(0.0, 10.0)}
    trials = optimise(
        "bowl",
        1,
        space,
        lambda values: [(values["a"] - 3) ** 2 + (values["b"] - 7) ** 2],
        objectives=1,
        trials=80,
        first={"a": 5.0, "b": 5.0},
        seed=0,
        journal=[],
        told=lambda _: None,
    )
    best = min(trials, key=lambda trial: trial.losses)
    assert best.losses[0] < 0.1
    assert trials[0].values == {"a": 5.0, "b": 5.0}
