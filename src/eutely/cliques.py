"""Matchings of pairs of specimens, and cliques: matchings of all pairs that agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.errors import ProblemError
from eutely.kernel import kernel
from eutely.specimen import UNMATCHED as UNMATCHED

NO_PAIR = -1
"""Number of a pair of specimens that was not matched."""


@dataclass(frozen=True, eq=False)
class Matchings:
    """Matchings of pairs of ``N`` specimens, concatenated in one array.

    Pairs may be missing, specimens may differ in size, nuclei may be unmatched. Four bytes per
    nucleus and pair: 4,950 matchings of 558 nuclei take 11 MB.

    Attributes
    ----------
    sizes
        (N,) int32, nuclei of each specimen.
    pairs
        (P, 2) int32, the specimens g < h of each pair; no pair twice.
    starts
        (P + 1,) int64, where each pair begins in ``partners``.
    partners
        int32; for the pair (g, h) the partners in h of the ``sizes[g]`` nuclei of g, ``UNMATCHED``
        (-1) where there is none; no nucleus of h twice.
    allowed
        uint8, or None if every assignment is allowed. One bit per assignment: for each pair
        ``sizes[g]`` rows of ``ceil(sizes[h] / 8)`` bytes, the lowest bit first. A matching that
        uses a forbidden assignment is an error.
    """

    sizes: NDArray[np.int32]
    pairs: NDArray[np.int32]
    starts: NDArray[np.int64]
    partners: NDArray[np.int32]
    allowed: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        def put(key: str, value: object) -> None:
            object.__setattr__(self, key, value)

        put("sizes", _whole(self.sizes, np.int32, "sizes"))
        pairs = _whole(self.pairs, np.int32, "pairs")
        if pairs.size == 0:
            pairs = np.zeros((0, 2), np.int32)
        put("pairs", pairs)
        self._check_pairs()
        put("starts", _whole(self.starts, np.int64, "starts"))
        lengths = self.sizes[self.pairs[:, 0]]
        if not np.array_equal(self.starts, _offsets(lengths)):
            raise ProblemError(
                "starts do not fit the sizes; expected one partner (or -1) for each nucleus of a "
                "pair's first specimen"
            )
        put("partners", _whole(self.partners, np.int32, "partners"))
        if len(self.partners) != self.starts[-1]:
            raise ProblemError(
                f"{len(self.partners)} partners, expected {self.starts[-1]}: one for each nucleus "
                "of each pair's first specimen"
            )
        if self.allowed is not None:
            bits = np.ascontiguousarray(self.allowed, dtype=np.uint8)
            if bits.shape != (self.allowed_starts()[-1],):
                raise ProblemError(
                    f"'allowed' has shape {bits.shape}, expected ({self.allowed_starts()[-1]},): "
                    "one bit per assignment, rows padded to whole bytes"
                )
            put("allowed", bits)
        self._check_partners()
        for array in (self.sizes, self.pairs, self.starts, self.partners, self.allowed):
            if array is not None:
                array.setflags(write=False)

    def _check_pairs(self) -> None:
        sizes, pairs = self.sizes, self.pairs
        if sizes.ndim != 1 or (sizes < 0).any():
            raise ProblemError("sizes are negative or not a list; expected (N,) numbers >= 0")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ProblemError(f"pairs have shape {pairs.shape}, expected (P, 2)")
        wrong = (pairs[:, 0] < 0) | (pairs[:, 0] >= pairs[:, 1]) | (pairs[:, 1] >= len(sizes))
        if wrong.any():
            g, h = pairs[wrong][0]
            raise ProblemError(
                f"pair ({g}, {h}) of {len(sizes)} specimens; expected 0 <= g < h < {len(sizes)}"
            )
        code = pairs[:, 0].astype(np.int64) * len(sizes) + pairs[:, 1]
        values, counts = np.unique(code, return_counts=True)
        if (counts > 1).any():
            g, h = divmod(int(values[counts > 1][0]), len(sizes))
            raise ProblemError(f"pair ({g}, {h}) occurs {counts.max()} times; give it once")

    def _check_partners(self) -> None:
        bits = np.zeros(0, np.uint8) if self.allowed is None else self.allowed
        fault, at, nucleus = _first_fault(
            self.sizes, self.pairs, self.starts, self.partners, bits, self.allowed_starts()
        )
        if fault:
            g, h = self.pairs[at]
            partner = self.partners[self.starts[at] + nucleus]
            what = (
                f"which has {self.sizes[h]} nuclei; expected 0 .. {self.sizes[h] - 1} or -1",
                "which is taken already; a matching must be injective",
                "which 'allowed' forbids; allow it or leave the nucleus unmatched (-1)",
            )[fault - 1]
            raise ProblemError(
                f"pair ({g}, {h}): nucleus {nucleus} has partner {partner} of specimen {h}, {what}"
            )

    @classmethod
    def from_pairs(
        cls,
        sizes: ArrayLike,
        matchings: Mapping[tuple[int, int], ArrayLike],
        *,
        allowed: Mapping[tuple[int, int], ArrayLike] | None = None,
    ) -> Matchings:
        """Combine the matchings of single pairs.

        Parameters
        ----------
        sizes
            (N,), nuclei of each specimen.
        matchings
            (g, h) with g < h -> (sizes[g],) partners in h, or -1.
        allowed
            (g, h) -> (sizes[g], sizes[h]) bool, for the same pairs; or None.
        """
        size = _whole(sizes, np.int32, "sizes")
        keys = sorted(matchings)
        rows = [_whole(matchings[key], np.int32, f"partners of pair {key}") for key in keys]
        pairs = np.array(keys, dtype=np.int64).reshape(-1, 2)
        for (g, h), row in zip(keys, rows, strict=True):
            if 0 <= g < len(size) and row.shape != (size[g],):
                raise ProblemError(
                    f"pair ({g}, {h}): {row.size} partners, expected {size[g]}: "
                    f"one for each nucleus of specimen {g}"
                )
        bits = None
        if allowed is not None:
            lacking = [key for key in keys if key not in allowed]
            if lacking:
                raise ProblemError(f"pair {lacking[0]}: no table of allowed assignments; add it")
            bits = _joined((pack(allowed[key]) for key in keys), np.uint8)
        return cls(
            sizes=size,
            pairs=_whole(pairs, np.int32, "pairs"),
            starts=_offsets([len(row) for row in rows]),
            partners=_joined(rows, np.int32),
            allowed=bits,
        )

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.pairs)

    def __repr__(self) -> str:
        return (
            f"<Matchings of {len(self)} pairs of {len(self.sizes)} specimens: "
            f"{self.matched} of {len(self.partners)} nuclei matched>"
        )

    @property
    def matched(self) -> int:
        """Number of matched nuclei over all pairs."""
        return int(np.count_nonzero(self.partners != UNMATCHED))

    def allowed_starts(self) -> NDArray[np.int64]:
        """Return where the table of each pair begins in ``allowed``: (P + 1,)."""
        sizes = self.sizes.astype(np.int64)
        return _offsets(sizes[self.pairs[:, 0]] * ((sizes[self.pairs[:, 1]] + 7) // 8))

    def of(self, pair: int) -> NDArray[np.int32]:
        """Return (sizes[g],), a view: the partners of the pair with number ``pair``."""
        return self.partners[self.starts[pair] : self.starts[pair + 1]]

    def numbers(self) -> NDArray[np.int32]:
        """Return (N, N) int32: the number of the pair of two specimens, or ``NO_PAIR``."""
        number = np.full((len(self.sizes), len(self.sizes)), NO_PAIR, np.int32)
        number[self.pairs[:, 0], self.pairs[:, 1]] = np.arange(len(self))
        number[self.pairs[:, 1], self.pairs[:, 0]] = np.arange(len(self))
        return number


@dataclass(frozen=True, eq=False)
class Cliques:
    """A partition of all nuclei of a cohort; a clique has at most one nucleus per specimen.

    A nucleus without a counterpart is a clique by itself. Cliques are numbered by descending size,
    then by first appearance, so that equal partitions have equal arrays. Indexing gives the cliques
    of one specimen's nuclei, so ``list(cliques)`` is one array per specimen.

    Attributes
    ----------
    starts
        (N + 1,) int64, where each specimen begins in ``labels``.
    labels
        (number of nuclei,) int32, the clique of each nucleus.
    """

    starts: NDArray[np.int64]
    labels: NDArray[np.int32]

    def __post_init__(self) -> None:
        starts = _whole(self.starts, np.int64, "starts")
        labels = _whole(self.labels, np.int64, "labels")
        lengths = np.diff(starts)
        if not len(starts) or starts[0] or (lengths < 0).any() or starts[-1] != labels.size:
            raise ProblemError("starts do not ascend from 0 to the number of nuclei; check them")
        specimen = np.repeat(np.arange(len(lengths)), lengths)
        _, first, code, counts = np.unique(
            labels, return_index=True, return_inverse=True, return_counts=True
        )
        taken = np.unique(code.astype(np.int64) * max(len(lengths), 1) + specimen)
        if len(taken) != len(labels):
            raise ProblemError(
                "a clique has two nuclei of one specimen; expected at most one per specimen"
            )
        rank = np.empty(len(first), np.int32)
        rank[np.lexsort((first, -counts))] = np.arange(len(first), dtype=np.int32)
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "labels", rank[code])
        for array in (self.starts, self.labels):
            array.setflags(write=False)

    @classmethod
    def from_labels(cls, labels: Iterable[ArrayLike]) -> Cliques:
        """Build cliques from one array of clique labels (any whole numbers) per specimen."""
        rows = [_whole(row, np.int64, "labels") for row in labels]
        return cls(_offsets([len(row) for row in rows]), _joined(rows, np.int64))

    def __len__(self) -> int:
        """Return the number of specimens."""
        return len(self.starts) - 1

    def __getitem__(self, specimen: int) -> NDArray[np.int32]:
        if not -len(self) <= specimen < len(self):
            raise IndexError(f"specimen {specimen}, but there are {len(self)}")
        specimen %= len(self)
        return self.labels[self.starts[specimen] : self.starts[specimen + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[specimen] for specimen in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cliques):
            return NotImplemented
        return np.array_equal(self.starts, other.starts) and np.array_equal(
            self.labels, other.labels
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value, so not hashable

    def __repr__(self) -> str:
        single = int(np.count_nonzero(self.sizes() == 1))
        return (
            f"<Cliques: {self.count} ({single} of one nucleus) in {len(self)} specimens, "
            f"{len(self.labels)} nuclei>"
        )

    @property
    def count(self) -> int:
        """Number of cliques."""
        return int(self.labels.max(initial=-1)) + 1

    def sizes(self) -> NDArray[np.int64]:
        """Return (count,), the number of nuclei of each clique, descending."""
        return np.bincount(self.labels, minlength=self.count)

    def table(self, minimum: int = 1) -> NDArray[np.int32]:
        """Return the members of the cliques of at least ``minimum`` nuclei.

        Returns
        -------
        table
            (cliques, N) int32: position of the member in its specimen, or ``UNMATCHED``.
        """
        kept = int(np.count_nonzero(self.sizes() >= minimum))
        table = np.full((kept, len(self)), UNMATCHED, np.int32)
        for specimen, labels in enumerate(self):
            (inside,) = np.nonzero(labels < kept)
            table[labels[inside], specimen] = inside
        return table

    def to_matchings(self, pairs: ArrayLike | None = None) -> Matchings:
        """Return the matchings that the cliques imply.

        Parameters
        ----------
        pairs
            (P, 2) specimens g < h; all pairs if None.
        """
        count = len(self)
        chosen = np.transpose(np.triu_indices(count, 1)) if pairs is None else np.asarray(pairs)
        chosen = _whole(chosen, np.int32, "pairs").reshape(-1, 2)
        sizes = np.diff(self.starts).astype(np.int32)
        empty = Matchings(
            sizes=sizes,
            pairs=chosen,
            starts=_offsets(sizes[chosen[:, 0]]) if len(chosen) else np.zeros(1, np.int64),
            partners=np.full(int(sizes[chosen[:, 0]].sum()), UNMATCHED, np.int32),
        )
        partners = _partners_of_cliques(
            empty.pairs, empty.starts, self.starts, self.labels, self.count
        )
        return Matchings(empty.sizes, empty.pairs, empty.starts, partners)


def pack(table: ArrayLike) -> NDArray[np.uint8]:
    """Pack (rows, columns) bool into the format of ``Matchings.allowed``."""
    return np.packbits(np.asarray(table, dtype=bool), axis=1, bitorder="little").reshape(-1)


def _whole(values: ArrayLike, dtype: type[Any], what: str) -> NDArray[Any]:
    """Return a copy of whole numbers as ``dtype``; raise if they are not, or do not fit."""
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise ProblemError(f"{what} are {given.dtype}, expected whole numbers")
    limits = np.iinfo(dtype)
    if given.size and (given.min() < limits.min or given.max() > limits.max):
        raise ProblemError(f"{what} exceed the range of {np.dtype(dtype).name}; check the numbers")
    return np.array(given, dtype=dtype, order="C")


def _offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)


def _joined(rows: Iterable[NDArray[Any]], dtype: type[Any]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *rows])


@kernel
def _first_fault(
    sizes: NDArray[np.int32],
    pairs: NDArray[np.int32],
    starts: NDArray[np.int64],
    partners: NDArray[np.int32],
    allowed: NDArray[np.uint8],
    allowed_starts: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Return fault, pair, nucleus of a partner out of range (1), used twice (2), forbidden (3)."""
    largest = 0
    for size in sizes:
        largest = max(largest, size)
    taken = np.full(largest, -1, np.int32)
    for pair in range(len(pairs)):
        columns = sizes[pairs[pair, 1]]
        width = (columns + 7) // 8
        for nucleus in range(starts[pair + 1] - starts[pair]):
            partner = partners[starts[pair] + nucleus]
            if partner < -1 or partner >= columns:
                return 1, pair, nucleus
            if partner >= 0:
                if taken[partner] == pair:
                    return 2, pair, nucleus
                taken[partner] = pair
                if len(allowed):
                    byte = allowed[allowed_starts[pair] + nucleus * width + partner // 8]
                    if not (byte >> (partner % 8)) & 1:
                        return 3, pair, nucleus
    return 0, 0, 0


@kernel
def _partners_of_cliques(
    pairs: NDArray[np.int32],
    starts: NDArray[np.int64],
    nuclei: NDArray[np.int64],
    labels: NDArray[np.int32],
    count: int,
) -> NDArray[np.int32]:
    partners = np.full(starts[-1], -1, np.int32)
    member = np.full(count, -1, np.int32)
    for pair in range(len(pairs)):
        g, h = pairs[pair, 0], pairs[pair, 1]
        for s in range(nuclei[h], nuclei[h + 1]):
            member[labels[s]] = s - nuclei[h]
        for i in range(nuclei[g], nuclei[g + 1]):
            partners[starts[pair] + i - nuclei[g]] = member[labels[i]]
        for s in range(nuclei[h], nuclei[h + 1]):
            member[labels[s]] = -1
    return partners
