"""A toy run of several steps, killed at every moment: ``python staged_run.py FOLDER``.

A moment is the n-th use of a file of the run folder. For each n a run is killed there, then its
successor somewhere else, and a third run ends it; FOLDER/undisturbed is a run without disturbance,
FOLDER/n the one that was killed at n. Forks, so that the imports are paid once.
"""

import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.config import Config, to_toml
from eutely.execute import open_executor
from eutely.io.whole import whole
from eutely.steps import Context, Run, step
from eutely.store.folder import open_run
from kills import child


@step("seed")
def start(context: Context) -> NDArray[np.float64]:
    return np.arange(1000.0) + context.settings.seed


@step()
def learn(context: Context, values: NDArray[np.float64]) -> float:
    """Trials in a journal, each drawn from what came before."""
    trials = list(context.journal)
    best = min((trial["loss"] for trial in trials), default=1.0)
    for number in range(len(trials), 5):
        drawn = np.random.default_rng([number, int(best * 2**40)]).random()
        context.journal.append({"number": number, "loss": drawn})
        best = min(best, drawn)
    return best + float(values[0])


@step()
def end_of_run(context: Context, values: NDArray[np.float64], best: float) -> tuple[float, float]:
    return float(values.sum()), best


def main(path: Path) -> None:
    with open_executor(1) as executor, open_run(path) as folder:
        folder.describe(to_toml(Config()), {"a": "0" * 64})
        run = Run(Config(), executor, folder)
        values = run(start)
        result = run(end_of_run, values, run(learn, values))
        with whole(path / "result.txt") as aside:
            aside.write_text(str(result))


def end(path: Path, moment: int | None) -> int:
    """Run in a child process, killed at ``moment``; return how it ended."""
    return child(partial(main, path), str(path), moment)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    assert end(folder / "undisturbed", None) == 0
    for moment in range(1, 1000):
        killed = end(folder / str(moment), moment)
        if killed == 0:  # the run was over before
            break
        assert killed == -signal.SIGKILL
        end(folder / str(moment), 7 + moment * 13 % 29)
        assert end(folder / str(moment), None) == 0
