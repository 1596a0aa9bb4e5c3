"""Graph and multi-graph matching problems in ``.dd`` files, plain or xz-compressed.

A problem is a line ``p N0 N1 A E``, then A lines ``a ID LEFT RIGHT COST`` and E lines
``e ID ID COST``. A multi-graph file puts ``gm G H`` before each problem. Blank lines, comments
(``c``) and drawing hints (``i0``, ``i1``, ``n0``, ``n1``) are skipped.
"""

import lzma
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import pair_list
from eutely.errors import ProblemError, ReadError
from eutely.io.dd_begin import EARLY, NONE, UNKNOWN, XZ
from eutely.io.limits import Unpacked, budget, check_memory, check_regular
from eutely.io.whole import new_file, new_text, whole
from eutely.kernel import inner, kernel
from eutely.problem import PairProblem

Pairs = list[tuple[int, int, PairProblem]]
"""Problems of a file: number of the left graph, number of the right graph, problem."""

ERRORS = {
    1: UNKNOWN,
    2: "is incomplete or holds something that is not a number",
    3: EARLY,
    4: "has a negative count",
    5: "has an assignment number that is out of range or used before",
    6: "names a node that the 'p' line does not have",
    7: "refers to an assignment that was not given",
    8: "has a cost that is not finite",
    9: "ends a problem with fewer 'a' lines than its 'p' line says",
    10: "ends a problem with fewer 'e' lines than its 'p' line says",
    11: "is one 'a' line more than the 'p' line says",
    12: "is one 'e' line more than the 'p' line says",
    13: "announces more 'a' or 'e' lines than the file has",
}
"""What is wrong with a line, by the error code of `_parse`."""

MEMORY = 12
"""Bytes of memory that a byte of text takes until it is a problem."""

SPARE_NODES = 1_000_000
"""Nodes without any assignment that a file may declare, besides one for each of its bytes."""

MOST_GRAPHS = 10_000
"""Largest number of a graph."""


def read_dd(path: Path) -> Pairs:
    """Read all problems of a file; without ``gm`` lines the graphs are 0 and 1.

    Parameters
    ----------
    path
        ``.dd`` or ``.txt``, or the same with ``.xz``.
    """
    check_regular(path)
    try:
        check_memory(path, MEMORY * path.stat().st_size, "a problem of this size")
        data = path.read_bytes()
        if path.suffix == ".xz" or data.startswith(XZ):
            data = _unpacked(path, data)
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (lzma.LZMAError, EOFError) as error:
        raise ReadError(f"{path} is not a complete xz file: {error}; copy it again") from error
    text = np.frombuffer(data + b"\n", dtype=np.uint8)
    code, line, heads, nodes, costs, ends, extra = _parse(text, _count_lines(text))
    if code:
        raise ReadError(f"{path}, line {line} {ERRORS[code]}")
    if len(heads) == 0:
        raise ReadError(f"{path} {NONE}")
    _check_heads(path, heads.tolist(), len(data))
    return [_problem(path, head, nodes, costs, ends, extra) for head in heads.tolist()]


def _unpacked(path: Path, data: bytes) -> bytes:
    """Return the text of a compressed file; too much of it is a ReadError, before it is there."""

    def check(total: int) -> None:
        check_memory(path, MEMORY * total, "a problem of this size")

    # The file also declares the memory that unpacking takes.
    new = partial(lzma.LZMADecompressor, memlimit=max(budget(), 2**26))
    return b"".join(Unpacked(BytesIO(data), new, check).pieces())


def _check_heads(path: Path, heads: Sequence[Sequence[int]], size: int) -> None:
    """Raise unless each pair of graphs has one problem, and nodes are no more than plausible."""
    seen: set[frozenset[int]] = set()
    nodes = 0
    for g, h, n_left, n_right, *_ in heads:
        if not 0 <= min(g, h) < max(g, h) <= MOST_GRAPHS:
            raise ReadError(
                f"{path}: a problem of the graphs {g} and {h}; expected two numbers up to "
                f"{MOST_GRAPHS}"
            )
        if frozenset((g, h)) in seen:
            raise ReadError(f"{path}: two problems of the graphs {g} and {h}; remove one")
        seen.add(frozenset((g, h)))
        nodes += n_left + n_right
    if nodes > SPARE_NODES + size:
        raise ReadError(f"{path}: {nodes} nodes in a file of {size} bytes; check its 'p' lines")


def _problem(
    path: Path,
    head: Sequence[int],
    nodes: NDArray[np.int64],
    costs: NDArray[np.float64],
    ends: NDArray[np.int64],
    extra: NDArray[np.float64],
) -> tuple[int, int, PairProblem]:
    g, h, n_left, n_right, first, last, begin, end = head
    try:
        problem = PairProblem.from_arrays(
            (n_left, n_right),
            nodes[first:last],
            costs[first:last],
            ends[begin:end],
            extra[begin:end],
        )
    except ProblemError as error:
        raise ReadError(f"{path}, graphs {g} and {h}: {error}") from error
    return g, h, problem


def write_dd(path: Path, problems: PairProblem | Pairs) -> None:
    """Write one problem, or those of several graphs; compressed if the name ends in ``.xz``.

    Parameters
    ----------
    path
        of the file; replaced if it exists.
    problems
        a problem, or a list of (left graph, right graph, problem).
    """
    with whole(path) as aside:
        if path.suffix == ".xz":
            with new_file(aside) as file, lzma.LZMAFile(file, "w") as packed:
                packed.writelines(line.encode("ascii") for line in _lines(problems))
        else:
            with new_text(aside, "ascii") as plain:
                plain.writelines(_lines(problems))


def _lines(problems: PairProblem | Pairs) -> Iterator[str]:
    if isinstance(problems, PairProblem):
        yield from _body(problems)
        return
    for g, h, problem in problems:
        yield f"gm {g} {h}\n"
        yield from _body(problem)


def _body(problem: PairProblem) -> Iterator[str]:
    p = problem.arrays
    first, second, costs = pair_list(p)
    yield f"p {problem.n_left} {problem.n_right} {len(p.labels)} {len(costs)}\n"
    triples = zip(p.owners.tolist(), p.labels.tolist(), p.linear.tolist(), strict=True)
    for a, (i, s, cost) in enumerate(triples):
        yield f"a {a} {i} {s} {cost!r}\n"
    for a, b, extra in zip(first.tolist(), second.tolist(), costs.tolist(), strict=True):
        yield f"e {a} {b} {extra:.9g}\n"


@kernel
def _count_lines(text: Any) -> Any:
    """Return (3,) int64, the number of lines that start with p, a and e."""
    counts = np.zeros(3, dtype=np.int64)
    start = True
    for byte in text:
        if start:
            if byte == 112:
                counts[0] += 1
            elif byte == 97:
                counts[1] += 1
            elif byte == 101:
                counts[2] += 1
        if byte == 10:
            start = True
        elif byte not in (32, 9):
            start = False
    return counts


@inner
def _skip(text: Any, at: int) -> int:
    """Return the next position without white space."""
    while text[at] in (32, 9, 13):
        at += 1
    return at


@inner
def _whole_number(text: Any, at: int) -> Any:
    """Return a whole number and the position after it, or 0 and -1 if there is none."""
    at = _skip(text, at)
    sign = 1
    if text[at] == 45:
        sign = -1
        at += 1
    begin = at
    value = np.int64(0)
    while 48 <= text[at] <= 57:
        value = value * 10 + (np.int64(text[at]) - 48)
        at += 1
    if at == begin or at - begin > 18 or text[at] not in (32, 9, 13, 10):
        return np.int64(0), -1
    return sign * value, at


@inner
def _number(text: Any, at: int) -> Any:
    """Return a decimal number and the position after it, or 0 and -1 if there is none."""
    at = _skip(text, at)
    sign = 1.0
    if text[at] in (43, 45):
        sign = -1.0 if text[at] == 45 else 1.0
        at += 1
    digits, value, scale = 0, 0.0, 0
    point = False
    while 48 <= text[at] <= 57 or (text[at] == 46 and not point):
        if text[at] == 46:
            point = True
        else:
            value = value * 10.0 + (text[at] - 48.0)
            digits += 1
            scale -= 1 if point else 0
        at += 1
    if digits == 0:
        # nan, inf, NaN, Inf, ... are numbers, but refused as costs.
        if text[at] in (110, 78, 105, 73):
            while text[at] > 32:
                at += 1
            return np.nan, at
        return 0.0, -1
    if text[at] in (101, 69):
        if text[at + 1] == 43:
            at += 1
        power, at = _whole_number(text, at + 1)
        scale += min(max(power, -400), 400)
        if at < 0:
            return 0.0, -1
    if text[at] not in (32, 9, 13, 10):
        return 0.0, -1
    # Powers of ten up to 22 are exact, so a division by them is rounded only once.
    value = value / 10.0**-scale if -22 <= scale < 0 else value * 10.0**scale
    return sign * value, at


@kernel
def _parse(text: Any, counts: Any) -> Any:
    """Return an error code (0 for none) and its line, and the content of all lines.

    A head is (g, h, n_left, n_right, first and last assignment, first and last pair).
    """
    heads = np.zeros((counts[0], 8), dtype=np.int64)
    nodes = np.full((counts[1], 2), -1, dtype=np.int64)
    costs = np.empty(counts[1])
    ends = np.empty((counts[2], 2), dtype=np.int64)
    extra = np.empty(counts[2])
    seen_a, seen_e = 0, 0  # in total
    want_a, want_e = 0, 0  # up to the end of this problem
    problem = -1
    g, h = np.int64(0), np.int64(1)
    code, line, at = 0, 0, 0
    while at < len(text):
        line += 1
        at = _skip(text, at)
        kind = text[at]
        if kind in (103, 112):  # gm, p: the problem before must be complete
            if seen_a < want_a:
                code = 9
            elif seen_e < want_e:
                code = 10
        if code:
            break
        if kind == 103 and text[at + 1] == 109:
            g, at = _whole_number(text, at + 2)
            if at >= 0:
                h, at = _whole_number(text, at)
        elif kind == 112:
            problem += 1
            head = heads[problem]
            head[0], head[1] = g, h
            head[4], head[6] = seen_a, seen_e
            number, at = _whole_number(text, at + 1)
            for k in range(4):
                if at >= 0:
                    if number < 0:
                        code = 4
                    head[(2, 3, 5, 7)[k]] = number
                    if k < 3:
                        number, at = _whole_number(text, at)
            want_a = seen_a + head[5]
            want_e = seen_e + head[7]
            head[5], head[7] = want_a, want_e
            if code == 0 and (want_a > len(nodes) or want_e > len(ends)):
                code = 13
        elif kind in (97, 101) and problem < 0:
            code = 3
        elif kind == 97:
            head = heads[problem]
            number, at = _whole_number(text, at + 1)
            i, s, cost = np.int64(0), np.int64(0), 0.0
            if at >= 0:
                i, at = _whole_number(text, at)
            if at >= 0:
                s, at = _whole_number(text, at)
            if at >= 0:
                cost, at = _number(text, at)
            if at < 0:
                code = 2
            elif seen_a >= want_a:
                code = 11
            elif not 0 <= number < head[5] - head[4] or nodes[head[4] + number, 0] >= 0:
                code = 5
            elif not 0 <= i < head[2] or not 0 <= s < head[3]:
                code = 6
            elif not np.isfinite(cost):
                code = 8
            else:
                nodes[head[4] + number, 0] = i
                nodes[head[4] + number, 1] = s
                costs[head[4] + number] = cost
                seen_a += 1
        elif kind == 101:
            head = heads[problem]
            a, at = _whole_number(text, at + 1)
            b, cost = np.int64(0), 0.0
            if at >= 0:
                b, at = _whole_number(text, at)
            if at >= 0:
                cost, at = _number(text, at)
            size = head[5] - head[4]
            if at < 0:
                code = 2
            elif seen_e >= want_e:
                code = 12
            elif seen_a < want_a:
                code = 9
            elif not 0 <= a < size or not 0 <= b < size:
                code = 7
            elif not np.isfinite(cost):
                code = 8
            else:
                ends[seen_e, 0] = a
                ends[seen_e, 1] = b
                extra[seen_e] = cost
                seen_e += 1
        elif kind in (99, 110, 105):
            while text[at] != 10:
                at += 1
        elif kind != 10:
            code = 1
        if at < 0:
            code = 2
        if code:
            break
        at = _skip(text, at)
        if text[at] != 10:
            code = 2
            break
        at += 1
    if code == 0 and seen_a < want_a:
        code = 9
    if code == 0 and seen_e < want_e:
        code = 10
    return code, line, heads, nodes, costs, ends, extra
