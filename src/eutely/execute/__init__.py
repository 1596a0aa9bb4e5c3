"""Where work runs: threads on this machine, or Dask on many; results never tell which.

A function is mapped over items; each call sees its item and what all calls share, and depends on
nothing else. Results come in the order of the items, so neither the number of workers nor the
order in which they finish can reach an output.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from eutely.errors import ExecuteError
from eutely.execute.cluster import open_dask
from eutely.execute.protocol import Executor, Progress
from eutely.execute.threads import Threads, cores

__all__ = ["Executor", "Progress", "open_executor"]


@contextmanager
def open_executor(workers: int | None = None, dask: str | None = None) -> Iterator[Executor]:
    """Yield the executor asked for; on leaving, all that was started for it is stopped.

    Within the block BLAS uses one thread: how BLAS splits a product between threads changes its
    rounding, and the parallel work is here.

    Parameters
    ----------
    workers
        threads on this machine; None for one a core.
    dask
        instead: ``local:N`` for N processes on this machine, the address of a running scheduler
        (``tcp://host:8786``), or the path of its scheduler file (``.json``).
    """
    if workers is not None and dask is not None:
        raise ExecuteError("both workers and a Dask cluster given; choose one of the two")
    if workers is not None and workers < 1:
        raise ExecuteError(f"workers is {workers}, expected at least 1")
    with threadpool_limits(limits=1, user_api="blas"):
        if dask is not None:
            with open_dask(dask) as executor:
                yield executor
        else:
            with ThreadPoolExecutor(workers or cores(), "eutely") as pool:
                yield Threads(pool, workers or cores())
