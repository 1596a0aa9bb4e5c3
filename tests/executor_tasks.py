"""Functions that workers run in test_execute.py, where other processes can import them."""

import os
import signal
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.errors import SpecimenError
from eutely.specimen import Specimen


def square(item: int) -> int:
    return item * item


def early_is_slow(item: int) -> int:
    time.sleep(0.02 if item < 3 else 0.0)
    return item


def weighted(table: NDArray[np.float64], factor: float, item: int) -> float:
    return float(table[item] * factor)


def where(table: NDArray[np.float64], item: int) -> tuple[int, int]:
    return os.getpid(), id(table)


def count(specimen: Specimen, item: int) -> int:
    return len(specimen) + item


def out_of_time(item: int) -> int:
    raise TimeoutError("of its own")


def fail_from_five(item: int) -> int:
    if item >= 5:
        raise SpecimenError(f"item {item} is bad")
    return item


def mark(folder: str, item: int) -> int:
    if item == 0:
        raise ValueError("stop here")
    time.sleep(0.01)
    (Path(folder) / str(item)).touch()
    return item


def die_once(folder: str, table: NDArray[np.float64], item: int) -> float:
    """Kill the worker in the middle of items 3 and 11, each the first time only."""
    flag = Path(folder) / str(item)
    if item in (3, 11) and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return float(table[item])


def always_die(item: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
