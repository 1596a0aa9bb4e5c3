import os
import subprocess
import sys
from pathlib import Path

import pytest

from eutely.errors import WriteError
from eutely.io.whole import OLD, temporary, whole


def test_a_file_appears_when_the_block_ends_well(tmp_path):
    target = tmp_path / "new" / "table.csv"
    with whole(target) as aside:
        aside.write_text("x")
        assert not target.exists()
    assert target.read_text() == "x"
    assert [path.name for path in target.parent.iterdir()] == ["table.csv"]


def test_nothing_appears_when_the_block_fails(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")

    def fail():
        with whole(target) as aside:
            aside.write_text("half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "cohort"
    for content in ("one", "two"):
        with whole(target) as aside:
            aside.mkdir()
            (aside / content).write_text(content)
    assert [path.name for path in target.iterdir()] == ["two"]
    assert [path.name for path in tmp_path.iterdir()] == ["cohort"]


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("not a folder")

    def write():
        with whole(tmp_path / "file" / "table.csv") as aside:
            aside.write_text("x")

    with pytest.raises(WriteError, match=r"cannot write .*table\.csv"):
        write()


@pytest.mark.skipif(os.name != "posix", reason="processes of POSIX")
def test_what_killed_processes_left_is_swept(tmp_path):
    target, other = tmp_path / "table.csv", tmp_path / "folder"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()

    def left(path, mark=""):
        name = temporary(path, mark).name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")
        return path.with_name(name)

    left(target).write_text("half")
    left(other).mkdir()
    left(other, OLD).mkdir()  # killed between two renames: the folder is not lost
    mine = temporary(target)
    mine.write_text("of a process that runs")
    with whole(target) as aside:
        aside.write_text("x")
    assert {path.name for path in tmp_path.iterdir()} >= {"table.csv", mine.name}
    assert not left(target).exists()
    with pytest.raises(RuntimeError), whole(other) as aside:
        raise RuntimeError
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "folder", mine.name}


def test_a_file_within_a_file_that_is_written_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    with whole(path) as outer:
        outer.write_text("half")
        with whole(outer) as inner:
            inner.write_text("whole")
            assert len(list(tmp_path.iterdir())) == 1
        assert outer.read_text() == "whole"
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]
