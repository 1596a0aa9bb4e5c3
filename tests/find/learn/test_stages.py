"""Learning the costs: stages, resuming, rules of choice."""

from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution

from eutely.align.consensus import Aligned
from eutely.config import Config
from eutely.config.model import Costs, Learn
from eutely.execute import Progress, open_executor, silent
from eutely.find.learn.stages import choose_specimens, learn, pareto_choice
from eutely.find.learn.study import Study, optimise
from eutely.learned import Learned, Parameters, Trial
from eutely.steps import Context

Points = NDArray[np.float64]
SPACING = 2.0


def aligned(count: int = 4) -> Aligned:
    """Return specimens of 25 cells that vary along x far more than across."""
    cells = np.random.default_rng(3).uniform(0, 8, (25, 3))
    random = np.random.default_rng(4)
    frames = tuple(
        (cells + random.normal(0, 1, (25, 3)) * [1.5, 0.1, 0.1])[random.permutation(25)]
        for _ in range(count)
    )
    radii = tuple(np.full(frame.shape, np.nan) for frame in frames)
    return Aligned(frames, radii, np.zeros(count, np.int64), 0, np.ones(count), np.ones(count))


def learned(
    journal: list[Any] | None = None,
    workers: int = 1,
    trials: int = 12,
    progress: Progress = silent,
    **how: Any,
) -> Learned:
    settings = Learn(
        **{"specimens": 4, "trials_linear": trials, "trials_sparsity": trials}
        | {"trials_offsets": trials}
        | how
    )
    config = Config(seed=7, costs=Costs(neighbours=4), learn=settings)
    with open_executor(workers) as executor:
        context = Context(config, executor, progress, [] if journal is None else journal)
        return learn(aligned(), SPACING, context)


def losses(found: Learned, stage: str) -> list[float]:
    return [trial.losses[0] for trial in found.trials if trial.stage == stage]


class KilledError(Exception):
    """The end of a process."""


class Fragile(list[Any]):
    """A journal whose process dies at a given length."""

    def __init__(self, known: list[Any], end: int) -> None:
        super().__init__(known)
        self.end = end

    def append(self, value: object, /) -> None:
        super().append(value)
        if len(self) == self.end:
            raise KilledError


@pytest.fixture(scope="module")
def whole() -> tuple[Learned, list[Any]]:
    journal: list[Any] = []
    return learned(journal), journal


def test_learns_along_which_axis_cells_vary(whole: tuple[Learned, list[Any]]) -> None:
    x, y, z = whole[0].parameters.centroids
    assert x > 2 * max(y, z)
    linear = losses(whole[0], "linear")
    assert min(linear) < linear[0]


def test_continues_exactly_after_being_killed(whole: tuple[Learned, list[Any]]) -> None:
    undisturbed, journal = whole
    assert len(journal) == 36
    kept: list[Any] = []
    for end in (1, 11, 13, 30):
        kept = Fragile(kept, end)
        with pytest.raises(KilledError):
            learned(kept)
        kept = list(kept)
    again = learned(kept)
    assert kept == journal
    assert again == undisturbed


def test_two_workers_learn_the_same(whole: tuple[Learned, list[Any]]) -> None:
    assert learned(workers=2) == whole[0]


def test_the_chosen_trials_are_those_whose_parameters_were_taken(
    whole: tuple[Learned, list[Any]],
) -> None:
    found, _ = whole
    assert list(found.chosen) == ["linear", "sparsity", "offsets"]
    chosen = {
        stage: next(t for t in found.trials if (t.stage, t.number) == (stage, number))
        for stage, number in found.chosen.items()
    }
    assert chosen["linear"].losses[0] == min(losses(found, "linear"))
    assert chosen["offsets"].losses[0] == min(losses(found, "offsets"))
    # In the end all variances are scaled by one factor, and both thresholds with them.
    given, taken = chosen["sparsity"].parameters, found.parameters
    assert taken.k_min == given["k_min"]
    ratio = given["tau_centroid"] / given["tau_radius"]
    assert taken.tau_centroid / taken.tau_radius == pytest.approx(ratio)
    variances = np.array(taken.offsets) / taken.centroids
    expected = [chosen["offsets"].parameters[f"offset_{axis}"] for axis in "xyz"]
    np.testing.assert_allclose(variances, expected)


def test_stages_without_trials_are_skipped() -> None:
    found = learned(trials=0)
    assert found.trials == ()
    assert found.chosen == {}
    assert len(set(found.parameters.centroids)) == 1
    assert found.parameters.k_min == Parameters.unlearned().k_min
    one = learned(trials=0, trials_sparsity=3)
    assert [trial.stage for trial in one.trials] == ["sparsity"] * 3


@pytest.mark.parametrize("kind", ["cycle", "sync-dense"])
def test_other_losses_learn_too(kind: str) -> None:
    linear = losses(learned(loss=kind, trials=0, trials_linear=10), "linear")
    assert min(linear) < linear[0]


def test_progress_reports_the_lowest_loss() -> None:
    reported: list[tuple[str, int, int, str]] = []
    found = learned(trials=0, trials_linear=3, progress=lambda *what: reported.append(what))
    assert [row[:3] for row in reported] == [("learning linear", done, 3) for done in (1, 2, 3)]
    lowest = np.minimum.accumulate(losses(found, "linear"))
    assert [row[3] for row in reported] == [f"loss {loss:.0f}" for loss in lowest]


def test_pareto_rule_of_the_paper() -> None:
    points = [(-900.0, 100.0), (-999.6, 300.0), (-1000.0, 400.0), (-2000.0, 5000.0)]
    trials = [Trial("sparsity", number, {}, point) for number, point in enumerate(points)]

    def choice(most: float, tolerance: float) -> int:
        return pareto_choice(trials, most, tolerance).number

    assert choice(1000, 0.0005) == 1
    assert choice(1000, 0.0) == 2
    assert choice(6000, 0.0005) == 3
    assert choice(50, 0.0005) == 0


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
    study = Study("linear", space, 1, {"a": 5.0, "b": 5.0}, 0)

    def bowl(values: dict[str, Any]) -> list[float]:
        return [(values["a"] - 3) ** 2 + (values["b"] - 7) ** 2]

    trials = optimise(study, bowl, 80, cast(Any, []), lambda _: None)
    best = min(trials, key=lambda trial: trial.losses)
    assert best.losses[0] < 0.1
    assert trials[0].parameters == {"a": 5.0, "b": 5.0}
