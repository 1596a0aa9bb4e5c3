"""Readers and writers of all file formats."""

from eutely.io.read import read

__all__ = ["read"]
