"""Quadratic assignment problems in ``.qap`` or ``.dat`` files of QAPLIB, plain or xz-compressed.

The first line holds n and, in some collections, the value of the best known solution and a bound.
Two n x n matrices follow, flows and distances, in any number of lines.
"""

import lzma
import math
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eutely.errors import ProblemError, ReadError
from eutely.io.dd_begin import XZ
from eutely.io.limits import Unpacked, budget, check_memory, check_regular
from eutely.io.text import short, whole_number
from eutely.quadratic import QuadraticAssignment

ENDINGS = (".qap", ".dat", ".qap.xz", ".dat.xz")
"""Names of files that are read here."""

MEMORY = 50
"""Bytes of memory that a byte of text takes while its numbers are apart."""

MATRICES = 16
"""Matrices (n, n) of 8 bytes that reading and solving a problem takes."""

HEAD = 3
"""Most numbers in the first line."""

FIRST = "expected the number of objects, and at most its best known value and a bound"
"""What the first line should hold."""


class QapFile(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    problem
        flows and distances.
    best_known
        objective of the best solution known, if the file says so; only for comparison.
    """

    problem: QuadraticAssignment
    best_known: float | None


def is_qap(path: str | PathLike[str]) -> bool:
    """Return whether a file has the name of a quadratic assignment problem."""
    return fspath(path).lower().endswith(ENDINGS)


def read_qap(path: Path) -> QapFile:
    """Read a problem.

    Parameters
    ----------
    path
        ``.qap`` or ``.dat``, or the same with ``.xz``.
    """
    check_regular(path)
    try:
        _check_size(path, path.stat().st_size)
        data = path.read_bytes()
        if path.suffix == ".xz" or data.startswith(XZ):
            # The file also declares the memory that unpacking takes.
            new = partial(lzma.LZMADecompressor, memlimit=max(budget(), 2**26))
            data = b"".join(Unpacked(BytesIO(data), new, partial(_check_size, path)).pieces())
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (lzma.LZMAError, EOFError) as error:
        raise ReadError(f"{path} is not a complete xz file: {error}; copy it again") from error
    if not data.strip():
        raise ReadError(f"{path} is empty; {FIRST}")
    lines = data.split(b"\n")
    top = next(number for number, line in enumerate(lines) if line.strip())
    n, best = _head(path, top + 1, [_shown(word) for word in lines[top].split()])
    check_memory(path, 8 * MATRICES * n * n, f"a problem of {n} objects")
    words = b" ".join(lines[top + 1 :]).split()
    if len(words) != 2 * n * n:
        raise ReadError(
            f"{path}: {len(words)} numbers after the first line, expected {2 * n * n}: two "
            f"matrices of {n} x {n}"
        )
    try:
        values = np.array(list(map(_number, words)), dtype=np.float64)
    except ValueError:
        raise ReadError(_not_a_number(path, lines, top + 1)) from None
    try:
        problem = QuadraticAssignment.from_arrays(*values.reshape(2, n, n))
    except ProblemError as error:
        raise ReadError(f"{path}: {error}") from error
    return QapFile(problem, best)


def _check_size(path: Path, size: int) -> None:
    check_memory(path, MEMORY * size, "a problem of this size")


def _shown(word: bytes) -> str:
    """Return a word for an error: printable, not too long."""
    return short(ascii(word.decode("latin-1"))[1:-1])


def _number(word: bytes) -> float:
    """Return a number; raise ValueError if it is none."""
    if b"_" in word:  # Python would read 1_0 as 10
        raise ValueError(word)
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(word)
    return value


def _head(path: Path, line: int, words: Sequence[str]) -> tuple[int, float | None]:
    """Return the number of objects and the best known value of the first line."""
    where = f"{path}, line {line}"
    if len(words) > HEAD:
        raise ReadError(f"{where} has {len(words)} numbers; {FIRST}")
    try:
        n = whole_number(words[0])
        rest = [_number(word.encode()) for word in words[1:]]
    except (ValueError, OverflowError):
        raise ReadError(f"{where} is '{short(' '.join(words))}'; {FIRST}") from None
    if n < 1:
        raise ReadError(f"{where}: {n} objects; {FIRST}")
    # A bound stands after the best known value, or before it: then, often, with a minus.
    if len(rest) == 1:
        return n, rest[0] if rest[0] >= 0 else None
    return n, max(rest) if rest else None


def _not_a_number(path: Path, lines: Sequence[bytes], start: int) -> str:
    """Return the error about the first word that is no number."""
    for line, text in enumerate(lines[start:], start + 1):
        for word in text.split():
            try:
                _number(word)
            except ValueError:
                return f"{path}, line {line}: '{_shown(word)}' is not a finite number"
    raise AssertionError(path)
