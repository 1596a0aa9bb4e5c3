"""A run goes on where it stopped and ends in the same bytes; bad folders are one line."""

import errno
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eutely.config import Config, to_toml
from eutely.errors import EutelyError, RunFolderError, WriteError
from eutely.record import Record
from eutely.store.folder import MARK, RunFolder, locked, open_run
from without_rights import closed
from without_rights import eutely as limited

SCRIPT = Path(__file__).parents[1] / "staged_run.py"


def value_of(run: RunFolder, calls: list[str], name: str = "one", key: str = "1") -> float:
    """Return what is stored under a name and a key, or compute it and store it."""
    record = run.get(name, key)
    if record is None:
        calls.append(name)
        record = Record({"value": np.array(0.1 + len(name))})
        run.put(name, key, record, 0.5)
    return float(record.arrays["value"])


def test_a_result_is_computed_once(tmp_path: Path) -> None:
    calls: list[str] = []
    for _ in range(2):
        with open_run(tmp_path / "run") as run:
            assert value_of(run, calls) == 3.1
    assert calls == ["one"]


def test_another_key_or_name_is_another_result(tmp_path: Path) -> None:
    calls: list[str] = []
    with open_run(tmp_path / "run") as run:
        for name, key in (("one", "1"), ("one", "2"), ("two", "1"), ("one", "1")):
            value_of(run, calls, name, key)
    assert calls == ["one", "one", "two"]


def test_seconds_are_those_of_the_last_time_it_was_computed(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        run.put("one", "1", Record(), 2.0)
        run.put("one", "2", Record(), 7.0)
        run.put("one", "1", Record(), 3.0)
    with open_run(tmp_path / "run") as run:
        assert run.seconds("one", "1") == 3.0
        assert run.seconds("one", "2") == 7.0
        assert np.isnan(run.seconds("two", "1"))


@pytest.mark.parametrize("damage", [b"", b"PK", b"rubbish" * 100])
def test_a_damaged_result_is_computed_again(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    with open_run(tmp_path / "run") as run:
        value_of(run, calls)
    (file,) = (tmp_path / "run" / "stages").iterdir()
    good = file.read_bytes()
    file.write_bytes(damage)
    with open_run(tmp_path / "run") as run:
        assert value_of(run, calls) == 3.1
    assert calls == ["one", "one"]
    assert "damaged" in caplog.text
    assert file.read_bytes() == good


def test_a_full_disk_is_one_line_and_earlier_results_stay(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    calls: list[str] = []
    large = Record({"x": np.zeros(100_000)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_run(tmp_path / "run") as run:
        value_of(run, calls)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
        try:
            with pytest.raises(WriteError, match="cannot write") as caught:
                run.put("two", "1", large, 0.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "\n" not in str(caught.value)
        assert len(list((tmp_path / "run" / "stages").iterdir())) == 1
    with open_run(tmp_path / "run") as run:
        value_of(run, calls)
        assert run.get("two", "1") is None
        run.put("two", "1", large, 0.0)
        assert run.get("two", "1") == large
    assert calls == ["one"]


def test_no_space_left_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with open_run(tmp_path / "run") as run:
        monkeypatch.setattr("zipfile.ZipFile.writestr", full)
        with pytest.raises(WriteError, match=r"stages/one-.*No space left on device"):
            value_of(run, [])
        assert list((tmp_path / "run" / "stages").iterdir()) == []


def test_a_run_describes_itself(tmp_path: Path) -> None:
    config = to_toml(Config())
    logging.getLogger("eutely").setLevel(logging.NOTSET)
    with open_run(tmp_path / "run") as run:
        run.describe(config, {"worm1": "ab"})
        logging.getLogger("eutely").info("a line of the log")
    folder = tmp_path / "run"
    assert (folder / "config.toml").read_text() == config
    assert json.loads((folder / "inputs.json").read_text()) == {"worm1": "ab"}
    assert json.loads((folder / "versions.json").read_text())["numpy"] == np.__version__
    text = (folder / "log.txt").read_text()
    assert "a line of the log" in text
    assert logging.getLogger("eutely").level == logging.NOTSET
    assert not any(
        isinstance(handler, logging.FileHandler) for handler in logging.getLogger("eutely").handlers
    )


def put(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content) and None


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (put("notes.txt", "mine"), f"not a run folder (it holds notes.txt, but no {MARK})"),
        (put(MARK, "{"), "is damaged"),
        (put(MARK, "[]"), "is damaged"),
        (put(MARK, '{"schema": 99}'), "has layout 99"),
    ],
)
def test_other_folders_are_one_line(
    tmp_path: Path, prepare: Callable[[Path], None], message: str
) -> None:
    prepare(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(RunFolderError) as caught, open_run(tmp_path):
        pass
    assert message in str(caught.value)
    assert "choose a new folder" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "nothing touched"


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(EutelyError, match="is a file"), open_run(tmp_path / "run"):
        pass
    with pytest.raises(EutelyError, match="cannot write"), open_run(tmp_path / "run" / "deeper"):
        pass


def test_parts_of_the_wrong_kind_are_damage(tmp_path: Path) -> None:
    with open_run(tmp_path):
        pass
    (tmp_path / "stages").rmdir()
    (tmp_path / "stages").write_text("")
    with pytest.raises(RunFolderError, match="stages is not what it should be"), open_run(tmp_path):
        pass


def test_a_folder_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    with (
        open_run(tmp_path / "run"),
        pytest.raises(RunFolderError, match=f"in use by process {os.getpid()} on"),
        open_run(tmp_path / "run"),
    ):
        pass
    with open_run(tmp_path / "run"):
        pass


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from eutely.store.folder import open_run\n"
        "with open_run(Path(sys.argv[1])): print('open', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(RunFolderError, match="in use"), open_run(tmp_path / "run"):
            pass
        process.kill()
    with open_run(tmp_path / "run"):
        pass


def test_unfinished_files_are_swept(tmp_path: Path) -> None:
    with open_run(tmp_path):
        pass
    rubbish = [tmp_path / ".0123abcd.atlas.h5", tmp_path / "stages" / ".0123abcd.one.npz"]
    for path in rubbish:
        path.write_text("half")
    (tmp_path / ".hidden").write_text("mine")
    with open_run(tmp_path):
        assert not any(path.exists() for path in rubbish)
    assert (tmp_path / ".hidden").exists()


def content(run: Path) -> dict[str, bytes]:
    """All that must not depend on how a run went: not its log and timings."""
    apart = {"log.txt", "timings.jsonl", "lock"}
    files = [path for path in run.rglob("*") if path.is_file() and path.name not in apart]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_at_any_moment_ends_in_the_same_bytes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True)
    runs = {path.name: content(path) for path in tmp_path.iterdir()}
    undisturbed = runs.pop("undisturbed")
    assert len(undisturbed) == 10
    assert len(runs) > 30, "moments"
    for moment, files in runs.items():
        assert files == undisturbed, f"killed at file use {moment}"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_lock_in_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    closed(tmp_path)
    code = (
        "import sys; from pathlib import Path; from eutely.errors import WriteError\n"
        "from eutely.store.folder import locked\n"
        "try:\n    with locked(Path(sys.argv[1])): pass\n"
        "except WriteError as error: print(error)\n"
    )
    said = limited(tmp_path / "lock", code=code)
    assert said.stdout == f"cannot write {tmp_path / 'lock'}: Permission denied\n", said.stderr


def test_a_lock_on_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("eutely.store.folder.add_all", full)
    with (
        pytest.raises(WriteError, match="lock: No space left on device"),
        locked(tmp_path / "lock"),
    ):
        pass
