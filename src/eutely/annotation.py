"""What the nuclei of one specimen are: cells, names, how sure they are, what else they may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.specimen import UNMATCHED, Specimen

if TYPE_CHECKING:
    import pandas as pd


LISTED = 3
"""Alternatives that tables list unless the user says otherwise."""

SHOWN = 0.5
"""Probability, relative to the highest one, from which a cell counts as in view."""

END = 0.05
"""Share of the length that a view may lack at an end, and of the cells if it is whole."""


UNCLEAR = 0.1
"""Probability of the other handedness from which it is said that handedness is not clear."""

NOT_CLEAR = "handedness not clear"
"""What is said of it."""

MORE_DOUBT = ", more than in the others"
"""What is added where sides are alike in all specimens, and one is more in doubt than most."""


class NucleusCells(NamedTuple):
    """The cells of ``n`` nuclei of one specimen, before they are given ids and names.

    Attributes
    ----------
    cells
        (n,) int32, cell of the atlas, or -1.
    confidence
        (n,) float64 in 0 .. 1, NaN without a cell.
    other_cells, other_shares
        (n, k) int32 and float64: further cells that the nucleus may be, the likeliest first; -1
        and 0 where there are fewer.
    cost
        of the matching.
    places
        (n, 3) float64, the nuclei in the frame of the atlas.
    """

    cells: NDArray[np.int32]
    confidence: NDArray[np.float64]
    other_cells: NDArray[np.int32]
    other_shares: NDArray[np.float64]
    cost: float
    places: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Annotation:
    """What the ``n`` nuclei of one specimen are.

    Attributes
    ----------
    specimen
        name of the individual.
    ids
        (n,) int64, as in the specimen.
    cells
        (n,) int32, cell of the atlas, or -1.
    names
        n names, "" where the nucleus has no cell or the cell no name.
    confidence
        (n,) float64 in 0 .. 1, probability of the nucleus being its cell; NaN without a cell.
    alternatives
        for each nucleus other cells and their probabilities, the largest first; with the confidence
        they sum to at most 1.
    cost
        of the matching, per cell; an individual of another kind has a high one.
    places
        (n, 3) float64, the nuclei in the frame of the atlas.
    mirrored
        whether the nuclei are a mirror image of the atlas.
    view
        (m,) float64 in 0 .. 1, how probably the specimen shows each cell; None for the whole body.
    support
        by how much, per nucleus, the atlas explains the specimen better than chance does; None
        where not known. Right places have 0 to 4, and below -0.7 the specimen could not be placed.
    placed
        probability that the specimen lies right in the frame of the atlas, on average over its
        nuclei; None where not known.
    other_hand
        probability that ``mirrored`` is wrong; in a build, relative to most specimens.
    exchanged
        column -> what it is called in truth, where the channels of its series are exchanged;
        `eutely.Specimen.renamed` puts them right.
    rivals
        (n,) bool, `contested` as it was with all alternatives; None where they are all listed.
    """

    specimen: str
    ids: NDArray[np.int64]
    cells: NDArray[np.int32]
    names: tuple[str, ...]
    confidence: NDArray[np.float64]
    alternatives: tuple[tuple[tuple[int, float], ...], ...]
    cost: float
    places: NDArray[np.float64]
    mirrored: bool = False
    view: NDArray[np.float64] | None = None
    support: float | None = None
    placed: float | None = None
    other_hand: float = 0.0
    exchanged: Mapping[str, str] = field(default_factory=dict)
    rivals: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Return the number of nuclei."""
        return len(self.ids)

    def __repr__(self) -> str:
        matched = int((self.cells != UNMATCHED).sum())
        return f"<Annotation of {self.specimen}: {matched} of {len(self)} nuclei have a cell>"

    @property
    def contested(self) -> NDArray[np.bool_]:
        """(n,), nuclei that more likely are another cell, which another nucleus has.

        A nucleus without a cell is contested if a cell is likelier than none.
        """
        if self.rivals is not None:
            return self.rivals
        likelier = [
            bool(others) and others[0][1] > (_rest(others) if unmatched else confidence)
            for others, confidence, unmatched in zip(
                self.alternatives,
                self.confidence.tolist(),
                (self.cells == UNMATCHED).tolist(),
                strict=True,
            )
        ]
        return np.array(likelier, dtype=np.bool_)

    @property
    def shown(self) -> float:
        """Share of the cells of the atlas that the specimen shows: 1 for the whole body."""
        seen = self._in_view()
        return 1.0 if seen is None else float(seen.mean())

    def _in_view(self) -> NDArray[np.bool_] | None:
        """Return (m,), whether each cell of the atlas is in view; None for the whole body."""
        if self.view is None or not self.view.max(initial=0.0) > 0:
            return None
        seen: NDArray[np.bool_] = self.view >= SHOWN * self.view.max()
        return seen if seen.mean() < 1 - END else None

    def with_alternatives(self, count: int = LISTED) -> Annotation:
        """Return the same with at most ``count`` alternatives per nucleus."""
        fewer = tuple(row[:count] for row in self.alternatives)
        return replace(self, alternatives=fewer, rivals=self.contested)

    def note(self, atlas: Atlas, *, more: bool = False) -> str:
        """Return such as "mirrored; shows the front 58% of the atlas's length, 312 of 558 cells".

        "" for a whole specimen that is no mirror image, if that is clear. ``more`` says that its
        handedness is less clear than that of others.
        """
        notes = ["mirrored"] if self.mirrored else []
        if self.other_hand >= UNCLEAR:
            notes.append(NOT_CLEAR + (MORE_DOUBT if more else ""))
        if self.exchanged:
            notes.append("its channels were called wrongly, and are put right")
        seen = self._in_view()
        if seen is not None:
            notes.append(f"shows {_part(atlas, seen)}, {seen.sum()} of {len(atlas)} cells")
        return "; ".join(notes)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per nucleus in input order.

        Columns: specimen, id, cell (missing where unmatched), name, confidence, x, y, z (in the
        frame of the atlas), mirrored.
        """
        import pandas as pd

        cells = pd.array(self.cells, dtype="Int32")
        cells[self.cells == UNMATCHED] = pd.NA
        return pd.DataFrame(
            {
                "specimen": self.specimen,
                "id": self.ids,
                "cell": cells,
                "name": list(self.names),
                "confidence": self.confidence,
                **dict(zip("xyz", self.places.T, strict=True)),
                "mirrored": self.mirrored,
            }
        )


def annotation(
    atlas: Atlas, specimen: Specimen, nuclei: NucleusCells, order: NDArray[np.intp]
) -> Annotation:
    """Return the annotation of a specimen.

    Parameters
    ----------
    atlas
        that its cells are of.
    specimen
        with its ids.
    nuclei
        its cells, in another order:
    order
        (n,), the nucleus of the specimen that each row of ``nuclei`` is about.
    """
    back = np.argsort(order)
    cells = nuclei.cells[back]
    others = zip(nuclei.other_cells[back].tolist(), nuclei.other_shares[back].tolist(), strict=True)
    return Annotation(
        specimen.name,
        specimen.ids,
        cells,
        tuple(atlas.names[cell] if cell != UNMATCHED else "" for cell in cells),
        nuclei.confidence[back],
        tuple(
            tuple((cell, share) for cell, share in zip(*row, strict=True) if cell != UNMATCHED)
            for row in others
        ),
        nuclei.cost / len(atlas),
        nuclei.places[back],
    )


def _rest(others: tuple[tuple[int, float], ...]) -> float:
    """Return the probability that a nucleus without a cell is none, from those of its cells."""
    return 1.0 - sum(share for _, share in others)


def _part(atlas: Atlas, shown: NDArray[np.bool_]) -> str:
    """Return which part of the atlas has the cells in view (m,); the head is in front."""
    along = atlas.means[:, 0]
    length = max(float(np.ptp(along)), 1e-12)
    behind = float(along[shown].min() - along.min()) / length
    ahead = float(along.max() - along[shown].max()) / length
    share = f"{1 - behind - ahead:.0%} of the atlas's length"
    if behind <= END and ahead <= END:
        return "the whole length of the atlas"
    if ahead <= END:
        return f"the front {share}"
    return f"the back {share}" if behind <= END else f"a middle {share}"
