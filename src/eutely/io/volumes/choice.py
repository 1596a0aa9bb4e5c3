"""One channel or time point of a volume with more than three axes: ``movie.tif:t=3,c=0``."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.volumes.volume import Volume, plain

CHOICE = re.compile(r"(?:(?P<place>.+):)?(?P<entries>[a-z]=\d{1,9}(?:,[a-z]=\d{1,9})*|\d{1,9})")
"""Entries behind a colon, after a path inside the file if there is one; a number is a time."""


def split_choice(part: str | None) -> tuple[str | None, dict[str, int]]:
    """Return the path inside a file, and the entry of each axis that is chosen.

    >>> split_choice("seg/labels:t=3,c=0"), split_choice("12"), split_choice("seg/labels")
    (('seg/labels', {'t': 3, 'c': 0}), (None, {'t': 12}), ('seg/labels', {}))
    """
    found = None if part is None else CHOICE.fullmatch(part)
    if found is None:
        return part, {}
    entries = found["entries"]
    if entries.isdigit():
        return found["place"], {"t": int(entries)}
    pairs = (entry.split("=") for entry in entries.split(","))
    return found["place"], {axis: int(number) for axis, number in pairs}


def suffix_of(part: str | None) -> str:
    """Return what the name of a specimen gains: different time points are different specimens.

    >>> suffix_of("t=3,c=0"), suffix_of("c=1")
    ('_t3', '')
    """
    chosen = split_choice(part)[1]
    return "".join(f"_{axis}{number}" for axis, number in chosen.items() if axis != "c")


def chosen(volume: Volume, choice: Mapping[str, int]) -> Volume:
    """Return one entry of some axes of a volume; the axes stay, with a length of 1."""
    if not choice:
        return volume
    others = dict(zip(volume.axes, volume.stored, strict=False))
    for axis, number in choice.items():
        if axis in "zyx" or axis not in others:
            there = ", ".join(f"{plain(a)} ({n})" for a, n in others.items())
            raise ReadError(
                f"{volume.path}: {axis} is no axis besides z, y, x; the axes are {there}"
            )
        if number >= others[axis]:
            raise ReadError(
                f"{volume.path}: axis {axis} has {others[axis]} entries; choose {axis}=0 to "
                f"{axis}={others[axis] - 1}"
            )
    wanted = [choice.get(axis) for axis in volume.axes]

    def parts() -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
        for array, start in volume.parts():
            sides = zip(wanted, start, array.shape, strict=True)
            if all(k is None or first <= k < first + n for k, first, n in sides):
                begin = tuple(
                    first if k is None else 0 for k, first in zip(wanted, start, strict=True)
                )
                index = tuple(
                    slice(None) if k is None else slice(k - first, k - first + 1)
                    for k, first in zip(wanted, start, strict=True)
                )
                yield array[index], begin

    stored = tuple(n if k is None else 1 for k, n in zip(wanted, volume.stored, strict=True))
    return replace(volume, stored=stored, parts=parts)
