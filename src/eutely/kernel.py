"""The one way in which hot loops are compiled: Numba, cached on disk, without the GIL."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile ``function`` on first call; keep the machine code beside the module.

    ``fastmath`` stays off: it silently removes NaN checks.
    """
    return cast(F, numba.njit(cache=True, nogil=True)(function))
