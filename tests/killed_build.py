"""Builds killed at random moments: ``python killed_build.py FOLDER``.

FOLDER/undisturbed is a build without disturbance; FOLDER/n was killed at the n-th use of a file of
its folder, went on, was killed again somewhere else, and was finished by a third process.
"""

import random
import signal
import sys
from functools import partial
from pathlib import Path

import eutely
from eutely.config import resolve
from kills import child

MOMENTS = 10

SETTINGS = resolve(
    overrides={
        "refine.linear_rounds": 1,
        "refine.joint_rounds": 2,
        "refine.targets": 2,
        "refine.target_rounds": 1,
        "refine.folds": 2,
    }
)


def build(path: Path) -> None:
    cohort = eutely.simulate(specimens=5, cells=40, variation=0.5)
    eutely.build(cohort, path, config=SETTINGS, workers=1)


def end(path: Path, moment: int | None) -> int:
    return child(partial(build, path), str(path), moment)


def uses(path: Path) -> int:
    """Return how many uses of files a build has: one more than the last at which it is killed."""
    low, high = 1, 1024
    while low < high:
        middle = (low + high) // 2
        if end(path / f"count-{middle}", middle) == 0:
            high = middle
        else:
            low = middle + 1
    return low


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    build(folder / "undisturbed")  # in this process, so that its children find compiled code
    last = uses(folder / "counting")
    draw = random.Random(0)
    for moment in sorted(draw.sample(range(1, last), MOMENTS)):
        assert end(folder / str(moment), moment) == -signal.SIGKILL
        end(folder / str(moment), draw.randrange(1, last))
        assert end(folder / str(moment), None) == 0
