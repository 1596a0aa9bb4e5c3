"""Second places: a cell that moved in several animals gets its nuclei and its name back."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import KDTree

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.comparison.second import renamed
from eutely.geometry import spacing
from eutely.specimen import Specimen
from toy_groups import MOVED, toy_groups, true_annotations

SHIFT = 2.0

Animals = list[Specimen]


@pytest.fixture(scope="module")
def toy() -> tuple[Atlas, Animals, list[Annotation]]:
    """Return twelve animals, and their true names; a cell moved in the last six."""
    atlas, _ = toy_groups(size=3)
    random = np.random.default_rng(0)
    roots = np.linalg.cholesky(atlas.conditionals)
    animals = []
    for number in range(12):
        noise = np.einsum("mde,me->md", roots, random.normal(size=atlas.means.shape))
        places = atlas.means + 0.5 * noise
        places[MOVED, 0] += (number >= 6) * SHIFT * spacing(atlas.means)
        animals.append(
            Specimen.from_arrays(f"worm{number}", places, names=list(atlas.names), unit="um")
        )
    given = true_annotations(atlas, {"all": animals})["all"]
    return atlas, animals, given


def row_of(annotation: Annotation, cell: int) -> int:
    return int(np.flatnonzero(annotation.cells == cell)[0])


def with_names(annotation: Annotation, names: dict[int, tuple[int, float]]) -> Annotation:
    """Return an annotation in which nuclei have other cells: row -> cell, confidence."""
    cells, sure = annotation.cells.copy(), annotation.confidence.copy()
    for row, (cell, confidence) in names.items():
        cells[row], sure[row] = cell, confidence if cell >= 0 else np.nan
    return replace(annotation, cells=cells, confidence=sure)


def partner(atlas: Atlas) -> int:
    """Return the cell that the moved one lies next to."""
    place = atlas.means[MOVED] + [SHIFT * spacing(atlas.means), 0.0, 0.0]
    near = KDTree(atlas.means).query(place, 2)[1]
    return int(next(cell for cell in near if cell != MOVED))


@pytest.mark.parametrize("how", ["unsure", "lost", "exchanged"])
def test_a_cell_that_moved_gets_its_nuclei_back(
    toy: tuple[Atlas, Animals, list[Annotation]], how: str
) -> None:
    atlas, animals, true = toy
    other = partner(atlas)
    given = true[:6]
    for one in true[6:]:
        row, beside = row_of(one, MOVED), row_of(one, other)
        wrong = {
            "unsure": {row: (MOVED, 0.1)},
            "lost": {row: (-1, 0.0)},
            "exchanged": {row: (other, 0.4), beside: (MOVED, 0.4)},
        }[how]
        known = tuple(((MOVED, 0.4),) if k == row else () for k in range(len(one)))
        given = [*given, replace(with_names(one, wrong), alternatives=known)]
    found = renamed(atlas, animals, given)
    right = [
        one.cells[row_of(before, MOVED)] == MOVED and one.cells[row_of(before, other)] == other
        for one, before in zip(found[6:], true[6:], strict=True)
    ]
    assert sum(right) >= (4 if how == "exchanged" else 6)
    for one, before, good in zip(found[6:], true[6:], right, strict=True):
        row = row_of(before, MOVED)
        if good:
            assert one.names[row] == atlas.names[MOVED]
            assert one.confidence[row] > 0.9
        known = one.cells[one.cells >= 0]
        assert len(known) == len(set(known.tolist()))
    for one, before in zip(found[:6], true[:6], strict=True):
        np.testing.assert_array_equal(one.cells, before.cells)


def test_the_order_of_animals_does_not_matter(
    toy: tuple[Atlas, Animals, list[Annotation]],
) -> None:
    atlas, animals, true = toy
    given = true[:6] + [with_names(one, {row_of(one, MOVED): (-1, 0.0)}) for one in true[6:]]
    order = np.random.default_rng(0).permutation(12).tolist()
    found = renamed(atlas, animals, given)
    again = renamed(atlas, [animals[k] for k in order], [given[k] for k in order])
    for number, k in enumerate(order):
        np.testing.assert_array_equal(again[number].cells, found[k].cells)
        np.testing.assert_allclose(again[number].confidence, found[k].confidence)


def test_certain_names_and_single_animals_stay(
    toy: tuple[Atlas, Animals, list[Annotation]],
) -> None:
    atlas, animals, true = toy
    other = partner(atlas)
    given = list(true)
    one = true[6]  # names that a person exchanged in one animal
    given[6] = with_names(one, {row_of(one, MOVED): (other, 1.0), row_of(one, other): (MOVED, 1.0)})
    lost = true[7]  # a nucleus without a name, in one animal only
    given[7] = with_names(lost, {row_of(lost, MOVED): (-1, 0.0)})
    for before, after in zip(given, renamed(atlas, animals, given), strict=True):
        np.testing.assert_array_equal(before.cells, after.cells)
        np.testing.assert_array_equal(before.confidence, after.confidence)


@pytest.mark.parametrize("seed", [14, 48, 49])
def test_no_cell_gets_two_nuclei_where_many_moved(
    toy: tuple[Atlas, Animals, list[Annotation]], seed: int
) -> None:
    atlas, animals, true = toy
    random = np.random.default_rng(seed)
    moved = random.choice(len(atlas), 15, replace=False)
    ways = random.normal(size=(len(moved), 3))
    ways *= SHIFT * spacing(atlas.means) / np.linalg.norm(ways, axis=1)[:, None]
    shifted, given = list(animals), list(true)
    for number in range(6, 12):
        rows = [row_of(true[number], cell) for cell in moved]
        places, centroids = true[number].places.copy(), animals[number].centroids.copy()
        places[rows] += ways
        centroids[rows] += ways
        shifted[number] = replace(animals[number], centroids=centroids)
        # each nucleus has the name of the next moved cell, or none
        names = {row: (int(cell), 0.4) for row, cell in zip(rows, np.roll(moved, 1), strict=True)}
        names |= dict.fromkeys(rows[::3], (-1, 0.0))
        given[number] = replace(with_names(true[number], names), places=places)
    changed = 0
    for before, after in zip(given, renamed(atlas, shifted, given), strict=True):
        known = after.cells[after.cells >= 0]
        assert len(known) == len(set(known.tolist()))
        changed += int((before.cells != after.cells).sum())
    assert changed
