"""``eutely curate``: one address on the first line, one line at the end, clear errors."""

from __future__ import annotations

import builtins
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eutely.cli import app
from eutely.errors import EutelyError
from eutely.io.atlas import write_atlas
from eutely.io.tables import write_table
from eutely.specimen import Specimen
from eutely.store.folder import locked
from toy_curation import toy_folder
from toy_reports import toy_cohort


def run(*words: object) -> str:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An atlas and two specimens."""
    place = tmp_path_factory.mktemp("curate")
    atlas, shown = toy_cohort(4, 40)
    write_atlas(atlas, place / "atlas.h5")
    worms = [Specimen.from_arrays(one.name, one.positions, ids=one.ids, unit="um")
             for one in shown[:2]]  # fmt: skip
    write_table(worms, place / "worms.csv")
    toy_folder(place / "annotated")
    return place


def ask(address: str, path: str) -> Any:
    with urllib.request.urlopen(address + path, timeout=30) as answer:
        return json.loads(answer.read())


def test_specimens_are_annotated_served_and_left_complete(given: Path, tmp_path: Path) -> None:
    out = tmp_path / "curated"
    words = ["curate", given / "atlas.h5", given / "worms.csv", "-o", out, "--no-browser", "-j", 1]
    process = subprocess.Popen(
        [sys.executable, "-c", "from eutely.cli import main; main()", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:")
    end = time.monotonic() + 120
    while not (told := ask(address, "specimens"))["specimens"]:
        assert told["problem"] == ""
        assert time.monotonic() < end
        time.sleep(0.1)
    assert [each["name"] for each in told["specimens"]] == ["worm001", "worm002"]
    state = ask(address, "specimens/0")
    body = json.dumps({"cells": [[0, -1]], "seen": state["revision"]}).encode()
    request = urllib.request.Request(
        address + "specimens/0/correct", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.loads(answer.read()) == {"revision": 1}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address.rsplit("/", 2)[0] + "/specimens", timeout=30)
    process.send_signal(signal.SIGINT)
    line, problems = process.communicate(timeout=120)
    assert process.returncode == 130
    assert line == (
        f"stopped; 1 change saved in {out / 'pins.csv'} (1 nucleus is settled); tables and "
        f"page in {out} agree with them\n"
    )
    assert "Traceback" not in problems
    first = (out / "worm001.csv").read_text().splitlines()[1]
    assert first.split(",")[1:3] == ["", ""]  # the first nucleus is no cell


def test_a_run_is_curated_and_its_own_files_stay(tmp_path: Path) -> None:
    """Its ``inputs.json`` holds hashes; where images are is remembered beside it."""
    import eutely
    from eutely.curate.folder import open_material
    from eutely.curate.session import Session
    from eutely.io.sources import Files, read_files, write_files

    folder = tmp_path / "run"
    eutely.build(eutely.simulate(4, cells=30), folder, workers=1)
    hashes = (folder / "inputs.json").read_bytes()
    session = Session(open_material(folder))
    session.correct(0, {0: -1}, session.revision)
    session.close()
    assert "worm001" in (folder / "pins.csv").read_text()
    files = Files(images={"worm001": str(tmp_path / "raw.tif")}, channels=("red",))
    write_files(folder, files)
    assert read_files(folder) == files
    assert (folder / "inputs.json").read_bytes() == hashes
    with pytest.raises(EutelyError, match="annotate them into a folder, then export that"):
        run("export", folder)
    eutely.build(eutely.simulate(4, cells=30), folder, workers=1)  # goes on with its hashes


def test_bad_requests_are_one_line(given: Path, tmp_path: Path) -> None:
    with pytest.raises(EutelyError, match="-o DIR is missing"):
        run("curate", given / "atlas.h5", given / "worms.csv")
    with pytest.raises(EutelyError, match="leave -o out"):
        run("curate", given / "annotated", "-o", tmp_path / "x")
    with pytest.raises(EutelyError, match="not a folder"):
        run("curate", given / "atlas.h5")
    with pytest.raises(EutelyError, match="no finished run and no annotations"):
        run("curate", tmp_path)
    with pytest.raises(EutelyError, match="does not exist"):
        run("curate", given / "annotated", "--image", tmp_path / "nothing.tif")
    with pytest.raises(EutelyError, match="the folder of the inputs"):
        run("curate", given / "atlas.h5", given, "-o", given)


def test_a_damaged_folder_is_said_although_the_server_has_started(
    given: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(given / "annotated", tmp_path / "damaged"))
    report = (folder / "report.npz").read_bytes()
    (folder / "report.npz").write_bytes(report[: len(report) // 2])
    with pytest.raises(EutelyError, match="is damaged"):
        run("curate", folder, "--no-browser")


def test_a_port_in_use_and_a_folder_in_use(given: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EutelyError, match=f"port {port}: Address already in use"):
            run("curate", given / "annotated", "--port", port, "--no-browser")
    with (
        locked(given / "annotated" / "curate.lock"),
        pytest.raises(EutelyError, match="is in use by process"),
    ):
        run("curate", given / "annotated", "--no-browser")


def test_without_the_extra_the_error_says_which(
    given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "uvicorn":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(EutelyError, match=r"uvicorn is missing.*pip install '\.\[curate\]'"):
        run("curate", given / "annotated")
