"""Sets of cells: by a column, by the beginning of their names, by neighbourhood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from eutely.atlas import Atlas
from eutely.comparison.measured import filled
from eutely.errors import CompareError
from eutely.evaluation import comparable

Array = NDArray[np.float64]

SIZE = 12
"""Cells of a neighbourhood, on average."""

FEWEST_CELLS = 3
"""Cells that a set needs."""

PREFIX, NEIGHBOURHOOD = "first letters", "neighbourhood"
"""Kinds of sets that every atlas has."""


class CellSet(NamedTuple):
    """Cells that are compared together."""

    kind: str
    name: str
    cells: NDArray[np.int64]


def cell_sets(
    atlas: Atlas, prefixes: list[str], columns: Mapping[str, Mapping[str, str]]
) -> list[CellSet]:
    """Return all sets of cells.

    Parameters
    ----------
    atlas
        whose cells they are.
    prefixes
        m, the first letters that each cell shares with others, "" for none.
    columns
        column -> name (or number) of the cell -> set.
    """
    found = []
    for column, table in columns.items():
        found += _sets(column, _looked_up(atlas, column, table))
    found += _sets(PREFIX, prefixes)
    if len(atlas) >= 2 * SIZE:
        found += _sets(NEIGHBOURHOOD, neighbourhoods(atlas))
    return found


def neighbourhoods(atlas: Atlas) -> list[str]:
    """Return m, the neighbourhood of each cell: a cluster, called after its middle cell."""
    cluster = fcluster(linkage(atlas.means, "ward"), max(len(atlas) // SIZE, 2), "maxclust")
    names = [""] * len(atlas)
    for k in np.unique(cluster).tolist():
        inside = np.flatnonzero(cluster == k)
        apart = atlas.means[inside] - atlas.means[inside].mean(axis=0)
        middle = int(inside[np.argmin((apart**2).sum(axis=1))])
        for cell in inside.tolist():
            names[cell] = f"around {atlas.names[middle] or f'cell {middle}'}"
    return names


def set_means(values: Array, weights: Array, sets: list[CellSet]) -> tuple[Array, Array]:
    """Return weighted means of values (N, m, d) over sets (N, s, d), and their weights (N, s).

    The weight of a set is the mean weight of its cells. NaN where an animal has none of them.
    """
    _, given, weight = filled(values, weights)
    means = np.full((len(values), len(sets), values.shape[2]), np.nan)
    totals = np.zeros((len(values), len(sets)))
    for number, entry in enumerate(sets):
        inside = weight[:, entry.cells]
        total = inside.sum(axis=1)
        totals[:, number] = total / len(entry.cells)
        some = total > 0
        summed = np.einsum("nc,ncd->nd", inside, given[:, entry.cells])
        means[some, number] = summed[some] / total[some, None]
    return means, totals


def _sets(kind: str, labels: list[str]) -> list[CellSet]:
    names = sorted({label for label in labels if label})
    array = np.array(labels)
    rows = [(name, np.flatnonzero(array == name)) for name in names]
    return [CellSet(kind, name, cells) for name, cells in rows if len(cells) >= FEWEST_CELLS]


def _looked_up(atlas: Atlas, column: str, table: Mapping[str, str]) -> list[str]:
    given = {comparable(name): value for name, value in table.items()}
    labels = [
        given.get(comparable(name) if name else "", given.get(str(cell), ""))
        for cell, name in enumerate(atlas.names)
    ]
    if not any(labels):
        raise CompareError(
            f"sets of cells '{column}': none of its {len(table)} cells is in the atlas; expected "
            "names or numbers of its cells"
        )
    return labels
