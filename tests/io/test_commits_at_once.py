"""Commands that write into one folder at the same time, and folders where a file goes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eutely.errors import EutelyError, WriteError
from eutely.io import written
from eutely.io.whole import new_text
from eutely.io.written import COMMIT, copy_at, finish, hash_of, manifest_of, tables_in

NAMES = ("one.csv", "report.html", "two.csv")


def commit(folder: Path, content: str, names: tuple[str, ...] = NAMES) -> None:
    with tables_in(folder, content) as aside:
        for name in names:
            with new_text(aside / name) as file:
                file.write(content)


def contents(folder: Path) -> set[str]:
    return {(folder / name).read_text() for name in NAMES}


def at_once(*works: Callable[[], object]) -> list[Exception]:
    """Do all in threads; return what they raise."""
    raised: list[Exception] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_a_folder_where_a_file_goes_is_refused_before_anything_is_there(tmp_path: Path) -> None:
    commit(tmp_path, "first")
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    (tmp_path / "report.html" / "mine.txt").write_text("mine")
    with pytest.raises(WriteError, match=r"report.html is a folder, where a file goes; move it"):
        commit(tmp_path, "second")
    assert (tmp_path / "one.csv").read_text() == "first"
    assert not (tmp_path / COMMIT).exists()
    (tmp_path / "report.html").rename(tmp_path / "mine")
    commit(tmp_path, "second")
    assert contents(tmp_path) == {"second"}


def left_in_the_middle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit files that do not move to their places."""
    with monkeypatch.context() as patch:
        patch.setattr(written, "_complete", lambda _: (_ for _ in ()).throw(EutelyError("killed")))
        with pytest.raises(EutelyError, match="killed"):
            commit(folder, "second")


def test_whoever_reads_waits_for_who_completes_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, "first")
    left_in_the_middle(tmp_path, monkeypatch)
    waited = []
    alone = written.alone

    @contextmanager
    def behind_another(path: Path) -> Iterator[None]:
        """The other process has completed the commit when the lock is free."""
        with alone(path):
            waited.append(path)
            written._complete(tmp_path)
            yield

    monkeypatch.setattr(written, "alone", behind_another)
    finish(tmp_path)
    assert waited
    assert contents(tmp_path) == {"second"}
    finish(tmp_path)
    assert len(waited) == 1  # nothing to wait for


def test_commits_at_once_are_all_of_one_command_each(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")

    def work(number: int) -> None:
        for turn in range(8):
            commit(tmp_path, f"{number}.{turn}")

    assert not at_once(*(lambda n=n: work(n) for n in range(4)))
    [content] = contents(tmp_path)
    known = manifest_of(tmp_path)
    assert known.cells == content
    assert known.files == {name: hash_of(tmp_path / name) for name in NAMES}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*NAMES, written.RECORD])


def test_a_copy_leaves_what_was_committed_meanwhile(tmp_path: Path) -> None:
    commit(tmp_path, "first")
    with copy_at(tmp_path / "copy.nwb") as aside:
        commit(tmp_path, "second")
        aside.write_text("copied")
    known = manifest_of(tmp_path)
    assert known.cells == "second"
    assert known.files == {name: hash_of(tmp_path / name) for name in (*NAMES, "copy.nwb")}


def test_a_copy_completes_what_was_committed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, "first")
    left_in_the_middle(tmp_path, monkeypatch)
    assert contents(tmp_path) == {"first"}
    with copy_at(tmp_path / "copy.nwb") as aside:
        aside.write_text("copied")
    finish(tmp_path)
    assert contents(tmp_path) == {"second"}
    assert "copy.nwb" in manifest_of(tmp_path).files
