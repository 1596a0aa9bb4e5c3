"""Mutations of a file or folder: bits, bytes, lengths, numbers in text, fields in binary."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

ABSURD = (
    b"0", b"-1", b"1", b"2147483648", b"4294967296", b"9223372036854775807", b"99999999999",
    b"1e30", b"1e154", b"1e308", b"1e999", b"nan", b"inf", b"-inf", b"1e-320", b"3.7", b"",
    b"1000000000000000000000000000000",
)  # fmt: skip
"""What replaces a number in text."""

WORDS = (0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
"""What replaces a number in binary."""

Random = np.random.Generator


def flip(data: bytearray, random: Random) -> None:
    """Flip one to eight bits."""
    for _ in range(int(random.choice([1, 1, 1, 2, 8]))):
        data[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))


def overwrite(data: bytearray, random: Random) -> None:
    """Overwrite a range by one byte, or by noise."""
    start = int(random.integers(len(data)))
    count = min(int(random.choice([1, 4, 16, 256])), len(data) - start)
    byte = int(random.choice([0, 0xFF, -1]))
    noise = random.integers(0, 256, count, dtype=np.uint8).tobytes()
    data[start : start + count] = noise if byte < 0 else bytes([byte]) * count


def cut(data: bytearray, random: Random) -> None:
    """Cut the end off: anywhere, or a few bytes."""
    few = int(random.integers(1, 17))
    keep = int(random.integers(len(data))) if random.random() < 0.6 else max(0, len(data) - few)
    del data[keep:]


def add(data: bytearray, random: Random) -> None:
    """Add surplus data at the end."""
    data += random.integers(0, 256, int(random.integers(1, 200)), dtype=np.uint8).tobytes()


def remove(data: bytearray, random: Random) -> None:
    """Remove a range."""
    start = int(random.integers(len(data)))
    del data[start : start + int(random.choice([1, 8, 100]))]


def repeat(data: bytearray, random: Random) -> None:
    """Put a range in a second time, somewhere."""
    start, to = random.integers(len(data), size=2).tolist()
    data[to:to] = data[start : start + int(random.choice([1, 8, 100]))]


def number(data: bytearray, random: Random) -> None:
    """Replace a number in text by an absurd one; without any, a word in binary."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", bytes(data)))
    if not found:
        word(data, random)
        return
    match = found[int(random.integers(len(found)))]
    data[match.start() : match.end()] = ABSURD[int(random.integers(len(ABSURD)))]


def word(data: bytearray, random: Random) -> None:
    """Replace an aligned word of 2, 4 or 8 bytes by an extreme one."""
    size = int(random.choice([2, 4, 8]))
    # Most fields lie at the beginning.
    share = float(random.choice([0.1, 1.0]))
    at = int(random.integers(max(1, int(share * len(data)))))
    at -= at % 2
    value = WORDS[int(random.integers(len(WORDS)))] % 2 ** (8 * size)
    data[at : at + size] = value.to_bytes(size, str(random.choice(["little", "big"])))


def line(data: bytearray, random: Random) -> None:
    """Drop, double or swap a line of text."""
    lines = bytes(data).split(b"\n")
    at = int(random.integers(len(lines)))
    how = int(random.integers(3))
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(at, lines[at])
    else:
        other = int(random.integers(len(lines)))
        lines[at], lines[other] = lines[other], lines[at]
    data[:] = b"\n".join(lines)


Change = Callable[[bytearray, Random], None]
CHANGES: tuple[Change, ...] = (flip, flip, overwrite, cut, add, remove, repeat, number, word, line)


def mutate(path: Path, random: Random) -> str:
    """Change a file, or one of the files of a folder; return how."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    if path.is_dir() and random.random() < 0.1:
        gone = files[int(random.integers(len(files)))]
        gone.unlink()
        return f"removed {gone.relative_to(path)}"
    # The metadata of a folder are a few small files among many.
    if path.is_dir() and random.random() < 0.5:
        files = [file for file in files if file.suffix in {".json", ".jsonl"} or
                 file.name.startswith(".z")] or files  # fmt: skip
    else:
        files = [
            path.parent / file.name for file in path.parent.iterdir() if file.is_file()
        ] or files
    file = files[int(random.integers(len(files)))]
    data = bytearray(file.read_bytes())
    change = CHANGES[int(random.integers(len(CHANGES)))]
    if not data:
        change = add
    change(data, random)
    file.write_bytes(data)
    return f"{change.__name__} of {file.name}"
