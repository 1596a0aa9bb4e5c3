"""An atlas learns from curated specimens what names others better, and nothing else."""

import numpy as np
import pytest

from eutely.curate.cohort import Cohort
from eutely.curate.learn import lesson
from eutely.results import Shown
from toy_reports import toy_cohort

CURATED, CELLS = 9, 40


def test_two_swapped_cells_are_learned_and_the_others_follow() -> None:
    """Every curated specimen has two cells of the atlas the other way round."""
    atlas, shown = toy_cohort(CURATED + 1, CELLS)
    number = {name: cell for cell, name in enumerate(atlas.names)}
    nothing = np.full(CELLS, np.nan)
    bare = [
        Shown(one.name, one.positions, np.array([number[name] for name in one.names], np.int32),
              nothing, one.ids)
        for one in shown
    ]  # fmt: skip
    cohort = Cohort(atlas, bare)
    first = [cohort.placed(one.name).nuclei.cells for one in bare]
    across = np.abs(atlas.offsets[:, 1])  # left and right, which no specimen confuses
    i, j = map(int, atlas.edges[np.argmax(across)])
    order = np.arange(CELLS)
    order[[i, j]] = j, i
    true = [order[cells] for cells in first]

    def curated(truth: list[np.ndarray]) -> list:
        return [
            cohort.placed(one.name).around(dict(enumerate(cells.tolist())))
            for one, cells in zip(bare[:CURATED], truth, strict=False)
        ]

    taught = lesson(cohort, curated(true))
    assert taught.judged == CURATED * CELLS
    assert taught.before == pytest.approx(1 - 2 / CELLS)
    assert taught.after > 0.99
    assert taught.atlas is not None
    assert "it is shifted" in taught.words()
    learned = Cohort(taught.atlas, bare, series=False)
    np.testing.assert_array_equal(learned.placed(bare[-1].name).nuclei.cells, true[-1])
    # Nothing is to be learned where all names were right.
    taught = lesson(cohort, curated(first))
    assert taught.before == 1.0
    assert taught.atlas is None
    assert "stays as it was" in taught.words()
