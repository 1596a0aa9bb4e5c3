"""eutely names every cell of an animal without a single training label."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.io import read
from eutely.simulation import simulate
from eutely.specimen import Specimen

if TYPE_CHECKING:
    from eutely.tasks import annotate, build, evaluate, name

__version__ = version("eutely")

__all__ = [
    "Atlas",
    "EutelyError",
    "Specimen",
    "__version__",
    "annotate",
    "build",
    "evaluate",
    "name",
    "read",
    "simulate",
]


def __getattr__(key: str) -> Any:
    """Import what needs compiled code when it is first asked for: it takes its time."""
    if key in ("annotate", "build", "evaluate", "name"):
        return getattr(import_module("eutely.tasks"), key)
    raise AttributeError(f"module 'eutely' has no attribute {key!r}")
