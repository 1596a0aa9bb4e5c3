"""A report: every array of a specimen has one entry per nucleus, cells belong to the atlas."""

from dataclasses import replace

import numpy as np
import pytest

from eutely.errors import EutelyError
from eutely.results import Report
from toy_reports import toy_cohort


@pytest.mark.parametrize("field", ["positions", "confidence", "ids", "names", "alternatives"])
def test_fields_must_have_one_entry_per_nucleus(field: str) -> None:
    _, shown = toy_cohort(2, 20)
    with pytest.raises(EutelyError, match=field):
        replace(shown[0], **{field: getattr(shown[0], field)[:-1]})


@pytest.mark.parametrize("cell", [-2, 20])
def test_cells_must_be_those_of_the_atlas(cell: int) -> None:
    atlas, shown = toy_cohort(2, 20)
    Report(specimens=shown).check(atlas)
    cells = np.where(np.arange(20) == 4, cell, shown[0].cells).astype(np.int32)
    with pytest.raises(EutelyError, match="20 cells of the atlas"):
        Report(specimens=(replace(shown[0], cells=cells),)).check(atlas)
