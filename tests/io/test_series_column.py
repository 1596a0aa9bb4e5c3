"""The column `series` of tables: which specimens were prepared and imaged alike."""

from __future__ import annotations

from pathlib import Path

import pytest

import eutely
from eutely.errors import ReadError
from eutely.io.tables import read_table, write_table


def test_a_series_survives_writing_and_reading(tmp_path: Path) -> None:
    text = "specimen,series,x,y,z\na,2024-05 left,0,0,0\na,2024-05 left,1,0,0\nb,,0,0,0\nb,,0,2,0\n"
    (tmp_path / "given.csv").write_text(text)
    first, second = read_table(tmp_path / "given.csv", "given")
    assert (first.series, second.series) == ("2024-05 left", "")
    assert "series" not in first.features
    write_table([first, second], tmp_path / "again.csv")
    again = read_table(tmp_path / "again.csv", "again")
    assert [specimen.series for specimen in again] == ["2024-05 left", ""]


def test_a_number_can_be_the_name_of_a_series(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("Series,x,y,z\n7,0,0,0\n7,1,0,0\n")
    (specimen,) = read_table(tmp_path / "one.csv", "one")
    assert specimen.series == "7"


def test_a_specimen_is_of_one_series(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("series,x,y,z\n7,0,0,0\n8,1,0,0\n")
    with pytest.raises(ReadError, match="two is of several series"):
        eutely.read(tmp_path / "two.csv")
