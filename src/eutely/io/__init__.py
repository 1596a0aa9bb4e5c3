"""Everything that opens a file."""

from eutely.io.read import read

__all__ = ["read"]
