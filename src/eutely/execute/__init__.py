"""Where work runs: threads on this machine, or Dask on many; results do not depend on it.

A function is mapped over items; each call sees its item and the values that all calls share, and
depends on nothing else. Results come in the order of the items, so neither the number of workers
nor the order in which they finish can reach an output.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from eutely.errors import ExecuteError, expect_whole
from eutely.execute.protocol import PART, Done, Executor, Progress, Reporting, silent
from eutely.execute.threads import Threads, cores

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

__all__ = ["PART", "Done", "Executor", "Progress", "Reporting", "open_executor", "silent"]


@lru_cache(maxsize=1)
def _blas(modules: int) -> "ThreadpoolController":  # noqa: ARG001
    """Return the libraries of this process that have threads; ``modules`` are loaded by now.

    They are searched for only after modules were imported, since nothing else loads libraries: the
    search takes as long as a tenth of what it takes to annotate a specimen.
    """
    from threadpoolctl import ThreadpoolController  # not before there is work: errors come first

    return ThreadpoolController()


@contextmanager
def open_executor(workers: int | str | None = None) -> Iterator[Executor]:
    """Yield an executor; on leaving, everything that was started for it is stopped.

    Within the block BLAS uses one thread: how BLAS splits a product between threads changes its
    rounding, and the parallel work is here.

    Parameters
    ----------
    workers
        a number of threads on this machine, None for one per core; or, for Dask, ``local:N`` for N
        processes on this machine, the address of a running scheduler (``tcp://host:8786``), or the
        path of its scheduler file (``.json``).
    """
    if workers is not None and not isinstance(workers, str):
        expect_whole("workers", workers, ExecuteError)
    if isinstance(workers, int) and workers < 1:
        raise ExecuteError(f"workers is {workers}, expected at least 1")
    from eutely.execute.cluster import open_dask

    with _blas(len(sys.modules)).limit(limits=1, user_api="blas"):
        if isinstance(workers, str):
            with open_dask(workers) as executor:
                yield executor
        else:
            count = workers or cores()
            with ThreadPoolExecutor(count, "eutely") as pool:
                yield Threads(pool, count)
