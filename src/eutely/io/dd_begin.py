"""The beginning of a file of matching problems, checked before the parser is imported.

The parser is compiled code, which takes more than a second to import. A file of another kind shows
in its first lines.
"""

from pathlib import Path

from eutely.errors import ReadError

BEGIN = 2**16
"""Bytes that are looked at."""

XZ = b"\xfd7zXZ\x00"
"""First bytes of a compressed file."""

UNKNOWN = "starts with an unknown word; expected gm, p, a, e or c"
EARLY = "comes before any 'p' line"
NONE = "has no problem, expected a line that starts with 'p'"
"""What is wrong with a line, or with the whole file."""


def check_begin(path: Path) -> None:
    """Raise an error if no problem can begin in a file; what is compressed is not looked at."""
    try:
        with path.open("rb") as file:
            text = file.read(BEGIN + 1)
    except OSError:
        return  # the parser says why
    if path.suffix == ".xz" or text.startswith(XZ):
        return
    lines = text.split(b"\n")
    complete = len(text) <= BEGIN
    for number, line in enumerate(lines if complete else lines[:-1], 1):
        kind = line.lstrip(b" \t\r")[:1]
        if kind in {b"g", b"p"}:
            return
        if kind in {b"a", b"e"}:
            raise ReadError(f"{path}, line {number} {EARLY}")
        if kind not in {b"", b"c", b"n", b"i"}:
            raise ReadError(f"{path}, line {number} {UNKNOWN}")
    if complete:
        raise ReadError(f"{path} {NONE}")
