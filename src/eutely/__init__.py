"""eutely names every cell of an animal without a single training label."""

from importlib.metadata import version

from eutely.errors import EutelyError
from eutely.io import read
from eutely.simulate import simulate
from eutely.specimen import Specimen

__version__ = version("eutely")

__all__ = ["EutelyError", "Specimen", "__version__", "read", "simulate"]
