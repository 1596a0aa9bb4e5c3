"""Losses that learning minimises: how inconsistent the matchings of pairs are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Cliques, Matchings
from eutely.errors import ProblemError
from eutely.kernel import kernel
from eutely.multi.synchronise import synchronise


def cycle_loss(matchings: Matchings) -> int:
    """Count inconsistent triples of nuclei (the discrete cycle loss of Tourani et al., 2024).

    With ``x_is = 1`` where i of specimen g is matched to s of specimen h, a triple of nuclei
    (i, s, t) of three specimens is inconsistent when exactly two of its three pairs are matched::

        loss = sum over g < h < k, over i, s, t, of
               x_is x_st (1 - x_it) + x_is (1 - x_st) x_it + (1 - x_is) x_st x_it

    Triples with one match or none cost nothing. Triples of specimens of which a pair was not
    matched at all do not count. Zero if and only if the matchings are cycle-consistent (provided
    that all pairs are present).
    """
    nuclei = np.concatenate([[0], np.cumsum(matchings.sizes, dtype=np.int64)]).astype(np.int64)
    return int(
        _inconsistent(
            nuclei, matchings.numbers(), matchings.pairs, matchings.starts, matchings.partners
        )
    )


def agreement(matchings: Matchings, cliques: Cliques) -> int:
    """Count the matches that the cliques keep; minus this is the objective of equation 7."""
    return int(_matched_and_kept(matchings, cliques)[1].sum())


def synchronisation_loss(matchings: Matchings, *, sparse: bool = True, seed: int = 0) -> int:
    """Return the synchronisation objective (equation 7): minus the number of matches kept.

    The matchings are synchronised (see `synchronise`); each match that the cliques keep counts -1.
    The fewer matches have to be changed, the lower the loss.

    Parameters
    ----------
    matchings
        of pairs of specimens.
    sparse
        whether cliques must respect ``matchings.allowed``.
    seed
        of the synchronisation.
    """
    cliques = synchronise(matchings, sparse=sparse, rounds=0, seed=seed)
    return -agreement(matchings, cliques)


def specimen_agreement(matchings: Matchings, cliques: Cliques) -> NDArray[np.float64]:
    """Return (N,), for each specimen the fraction of its matches that the cliques keep.

    A specimen in the wrong pose agrees with no other and stands out; the specimen that agrees most
    is a good target for re-alignment (section 3.4). NaN for a specimen without a match.
    """
    count = len(matchings.sizes)
    total, kept = np.zeros(count), np.zeros(count)
    matched, within = _matched_and_kept(matchings, cliques)
    for side in (0, 1):
        np.add.at(total, matchings.pairs[:, side], matched)
        np.add.at(kept, matchings.pairs[:, side], within)
    fraction = np.full(count, np.nan)
    np.divide(kept, total, out=fraction, where=total > 0)
    return fraction


def _matched_and_kept(
    matchings: Matchings, cliques: Cliques
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (P,) and (P,), the number of matches of each pair, and of those within cliques."""
    if not np.array_equal(np.diff(cliques.starts), matchings.sizes):
        raise ProblemError(
            f"cliques of {len(cliques)} specimens do not fit matchings of {len(matchings.sizes)}; "
            "expected the same specimens with the same numbers of nuclei"
        )
    return _kept_matches(
        cliques.starts, cliques.labels, matchings.pairs, matchings.starts, matchings.partners
    )


@kernel
def _kept_matches(
    nuclei: NDArray[np.int64],
    labels: NDArray[np.int32],
    pairs: NDArray[np.int32],
    starts: NDArray[np.int64],
    partners: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    matched = np.zeros(len(pairs), np.int64)
    kept = np.zeros(len(pairs), np.int64)
    for pair in range(len(pairs)):
        g, h = nuclei[pairs[pair, 0]], nuclei[pairs[pair, 1]]
        for at in range(starts[pair], starts[pair + 1]):
            if partners[at] >= 0:
                matched[pair] += 1
                kept[pair] += labels[g + at - starts[pair]] == labels[h + partners[at]]
    return matched, kept


@kernel
def _inconsistent(
    nuclei: NDArray[np.int64],
    number: NDArray[np.int32],
    pairs: NDArray[np.int32],
    starts: NDArray[np.int64],
    partners: NDArray[np.int32],
) -> int:
    """Count chains of two matches in three specimens; a closed triple has three of them."""
    count = len(nuclei) - 1
    begins = np.zeros(len(pairs) + 1, np.int64)
    for pair in range(len(pairs)):
        begins[pair + 1] = begins[pair] + nuclei[pairs[pair, 1] + 1] - nuclei[pairs[pair, 1]]
    taken = np.zeros(begins[-1], np.uint8)
    for pair in range(len(pairs)):
        for at in range(starts[pair], starts[pair + 1]):
            if partners[at] >= 0:
                taken[begins[pair] + partners[at]] = 1
    loss = 0
    for g in range(count):
        for h in range(g + 1, count):
            first = number[g, h]
            for k in range(h + 1, count):
                second, third = number[h, k], number[g, k]
                if first < 0 or second < 0 or third < 0:
                    continue
                for i in range(nuclei[g + 1] - nuclei[g]):
                    s = partners[starts[first] + i]
                    t = partners[starts[third] + i]
                    if t >= 0:
                        loss += taken[begins[second] + t]
                        loss += s >= 0
                    if s >= 0:
                        other = partners[starts[second] + s]
                        if other >= 0:
                            loss += 1
                            if other == t:
                                loss -= 3
    return loss
