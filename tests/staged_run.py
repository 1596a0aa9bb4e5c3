"""A toy run of several stages, killed at every moment: ``python staged_run.py FOLDER``.

A moment is the n-th use of a file of the run folder. For each n a run is killed there, then its
successor somewhere else, and a third run ends it; FOLDER/undisturbed is a run without disturbance,
FOLDER/n the one that was killed at n. Forks, so that the imports are paid once.
"""

import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np

from eutely.config import Config, to_toml
from eutely.record import Record
from eutely.store.folder import RunFolder, open_run
from eutely.io.whole import whole
from kills import child


def learn(run: RunFolder, start: Record) -> Record:
    """Trials in a journal, each drawn from what came before."""
    trials = run.journal("learn", start.digest)
    best = min((trial["loss"] for trial in trials), default=1.0)
    for number in range(len(trials), 5):
        drawn = np.random.default_rng([number, int(best * 2**40)]).random()
        trials.append({"number": number, "loss": drawn})
        best = min(best, drawn)
    return Record({"losses": np.array([trial["loss"] for trial in trials])}, {"best": best})


def same(record: Record) -> Record:
    return record


def main(path: Path) -> None:
    with open_run(path) as run:
        run.describe(to_toml(Config()), {"a": "0" * 64})
        start = run.stage(
            "start", {"seed": 1}, lambda: Record({"x": np.arange(1000.0)}), same, same
        )
        learned = run.stage("learn", start.digest, lambda: learn(run, start), same, same)
        end = run.stage(
            "end",
            [start.digest, learned.digest],
            lambda: Record({"y": start.arrays["x"] * learned.metadata["best"]}),
            same,
            same,
        )
        with whole(path / "result.txt") as aside:
            aside.write_text(end.digest)


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
