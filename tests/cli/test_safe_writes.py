"""What a command leaves belongs together, is whole, lies in its folder, and spares what is there.

Each test but those of the commit itself is of something that went wrong once.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.config import resolve
from eutely.curate.folder import open_material
from eutely.curate.session import Session
from eutely.errors import EutelyError, ReadError, RunFolderError, WriteError
from eutely.evaluation import majority_names
from eutely.io.annotations import check_names
from eutely.io.atlas import write_atlas
from eutely.io.pins import Change, append_pins, read_pins
from eutely.io.tables import write_table
from eutely.specimen import Specimen
from eutely.store.folder import CURATED, locked, open_run
from eutely.tasks.annotate import annotate
from toy_curation import toy_folder
from toy_reports import toy_cohort

ROUNDS = ("refine.linear_rounds", "refine.joint_rounds", "refine.targets")
FIRST = resolve(overrides=dict.fromkeys(ROUNDS, 1))
OTHER = resolve(overrides=dict.fromkeys(ROUNDS, 1) | {"seed": 3, "refine.linear_rounds": 3})


class Killed(BaseException):
    """The process ends here."""


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture(scope="module")
def cohort() -> list[Specimen]:
    return eutely.simulate(specimens=4, cells=30, seed=2, variation=0.5)


@pytest.fixture
def named(tmp_path: Path, cohort: list[Specimen]) -> Path:
    """A run whose cells a person has named."""
    built = eutely.build(cohort, tmp_path / "run", config=FIRST, workers=1)
    eutely.name(built.atlas, cohort[:3], workers=1).save(tmp_path / "run" / "atlas.h5")
    return tmp_path / "run"


def killed_before(monkeypatch: pytest.MonkeyPatch, goal: Path) -> contextlib.AbstractContextManager:
    """Return a block in which this process ends before a file is moved to ``goal``."""

    @contextlib.contextmanager
    def block():
        replace = os.replace

        def watched(source, target, **options):
            if Path(target) == goal:
                raise Killed
            replace(source, target, **options)

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", watched)
            with contextlib.suppress(Killed):
                yield
                raise AssertionError(f"{goal} was not written")

    return block()


# --- what belongs together


@pytest.mark.parametrize("moment", ["atlas.h5", "cliques.csv", "report.npz", "report.html"])
def test_names_of_one_build_never_meet_the_cells_of_another(
    named: Path, cohort: list[Specimen], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    with killed_before(monkeypatch, named / moment):
        eutely.build(cohort[1:], named, config=OTHER, workers=1)
    built = eutely.build(cohort[1:], named, config=OTHER, workers=1)
    truth = majority_names(built.cells, [one.names for one in built.specimens], len(built.atlas))
    assert built.atlas.names == tuple(truth)
    assert not list(named.glob("*.bak*"))


def test_cliques_of_another_build_are_refused(named: Path, tmp_path: Path, cohort) -> None:
    eutely.build(cohort[:3], tmp_path / "other", config=OTHER, workers=1)
    (named / "atlas.h5").write_bytes((tmp_path / "other" / "atlas.h5").read_bytes())
    atlas = eutely.Atlas.load(named)
    atlas.named([f"N{cell}" for cell in range(len(atlas))]).save(named / "atlas.h5")
    with pytest.raises(EutelyError, match=r"cliques.csv there is of another build.*--force"):
        eutely.build(cohort, named, config=FIRST, workers=1)
    with pytest.raises(ReadError, match="different builds or annotations: its atlas does not"):
        run("view", named, "--no-open")


def test_readers_complete_what_was_committed(
    named: Path, cohort: list[Specimen], monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_before(monkeypatch, named / "atlas.h5"):
        eutely.build(cohort[:3], named, config=OTHER, workers=1)
    assert (named / ".eutely-commit").is_dir()
    run("view", named, "--no-open")
    assert not (named / ".eutely-commit").exists()
    files = json.loads((named / ".written.json").read_text())["files"]
    assert {"atlas.h5", "cliques.csv", "parameters.json", "report.npz", "report.html"} <= set(files)
    assert eutely.Atlas.load(named).specimens == 3


def test_a_commit_of_somebody_else_is_refused(named: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (named / ".eutely-commit").symlink_to(outside)
    with pytest.raises(ReadError, match="is no folder of eutely's; delete"):
        run("view", named, "--no-open")
    (named / ".eutely-commit").unlink()
    (named / ".eutely-commit").mkdir()
    (named / ".eutely-commit" / "log.txt").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReadError, match="is no file; delete"):
        run("view", named, "--no-open")


def test_a_run_takes_no_named_atlas_of_another_one(named: Path, tmp_path: Path, cohort) -> None:
    eutely.build(cohort[1:], tmp_path / "other", config=OTHER, workers=1)
    write_table(cohort, tmp_path / "worms.csv")
    before = (named / "atlas.h5").read_bytes()
    for target in (named / "atlas.h5", f"{named}/../run/atlas.h5"):
        with pytest.raises(WriteError, match="is the atlas of a run, of other cells; give -o"):
            run("name", tmp_path / "other", tmp_path / "worms.csv", "-o", target)
    assert (named / "atlas.h5").read_bytes() == before
    run("view", named, "--no-open")


def test_a_run_is_not_named_while_it_is_built(named: Path, tmp_path: Path, cohort) -> None:
    write_table(cohort, tmp_path / "worms.csv")
    before = (named / "atlas.h5").read_bytes()
    with open_run(named), pytest.raises(RunFolderError, match="is in use by process"):
        run("name", named, tmp_path / "worms.csv")
    assert (named / "atlas.h5").read_bytes() == before
    run("name", named, tmp_path / "worms.csv")


def test_an_atlas_that_was_replaced_meanwhile_takes_no_names(
    named: Path, tmp_path: Path, cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand, or by a program that does not know the lock."""
    write_table(cohort, tmp_path / "worms.csv")
    other = eutely.build(cohort[1:], config=OTHER, workers=1).atlas
    from eutely.tasks import evaluate

    name = evaluate.name

    def meanwhile(*given, **options):
        found = name(*given, **options)
        other.save(named / "atlas.h5")
        return found

    monkeypatch.setattr(evaluate, "name", meanwhile)
    with pytest.raises(WriteError, match="is the atlas of a run, of other cells"):
        run("name", named, tmp_path / "worms.csv")
    assert eutely.Atlas.load(named).specimens == 3


# --- nothing is written outside


@pytest.mark.parametrize("name", ["timings.jsonl", "lock", "log.txt", "stages"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_in_a_run_folder_are_refused(tmp_path: Path, cohort, name: str, link) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside"
    folder.mkdir()
    (folder / "eutely-run.json").write_text('{"format": "eutely run folder", "schema": 1}')
    if name == "stages":
        outside.mkdir()
        link = os.symlink
    else:
        outside.write_text("mine\n")
    link(outside, folder / name)
    with pytest.raises(EutelyError, match="is a link") as caught:
        eutely.build(cohort, folder, config=FIRST, workers=1)
    assert "\n" not in str(caught.value)
    assert not list(outside.iterdir()) if name == "stages" else outside.read_text() == "mine\n"


@pytest.mark.parametrize("words", [("--read-only",), ()])
def test_curate_writes_through_no_link(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder, outside = toy_folder(tmp_path / "annotated", 2, 30), tmp_path / "outside"
    outside.write_text("mine\n")
    (folder / "curate.lock").symlink_to(outside)
    process = subprocess.Popen(
        [sys.executable, "-c", "from eutely.cli import main; main()", "curate", str(folder),
         "--no-browser", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        if process.stdout.readline():  # it serves
            process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=120)
    finally:
        process.kill()
    assert outside.read_text() == "mine\n"
    assert (process.returncode, "is a link" in problems) == ((130, False) if words else (2, True))


def test_labels_are_not_written_through_a_link(tmp_path: Path) -> None:
    from eutely.tasks.relabel import write_label_copies

    (tmp_path / "outside").mkdir()
    (tmp_path / "labels").symlink_to(tmp_path / "outside")
    with pytest.raises(WriteError, match="is a link"):
        write_label_copies(tmp_path / "labels", [], [], ["A"])
    assert not list((tmp_path / "outside").iterdir())


# --- what a person made


def pin(id_: int, cell: str | None) -> Change:
    return Change("worm001", id_, cell, "", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "text",
    [
        "specimen,id,name,remark\nworm001,1,A,clear\nworm001,2,B,\n",
        "remark;id;specimen;name\nclear;1;worm001;A\n;2;worm001;B\n",
        "specimen,id,name,cell,open,author,time,remark\nworm001,1,A,,,,,clear\nworm001,2,B,,,,,\n",
    ],
)
def test_columns_of_a_person_stay_in_pins(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pins.csv"
    path.write_text(text)
    append_pins([pin(3, "C"), pin(2, None)], path)
    append_pins([pin(3, "D")], path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["remark"] for row in rows] == ["clear", "", "", "", ""]
    assert read_pins(path) == {("worm001", 1): "A", ("worm001", 3): "D"}
    logged = text.startswith("specimen,id,name,cell")
    kept = tmp_path / "pins.csv.bak"
    assert not kept.exists() if logged else kept.read_text() == text


def test_a_page_edited_by_hand_is_kept(tmp_path: Path) -> None:
    atlas, shown = toy_cohort(4, 30)
    write_atlas(atlas, tmp_path / "atlas.h5")
    worm = Specimen.from_arrays("worm001", shown[0].positions, ids=shown[0].ids, unit="um")
    write_table(worm, tmp_path / "worm001.csv")
    words = ("annotate", tmp_path / "atlas.h5", tmp_path / "worm001.csv", "-o", tmp_path / "out")
    run(*words)
    run(*words)
    assert not list((tmp_path / "out").glob("*.bak"))
    page = tmp_path / "out" / "report.html"
    mine = page.read_text().replace("</body>", "<p>Checked by Ann.</p></body>")
    page.write_text(mine)
    run(*words)
    assert (tmp_path / "out" / "report.html.bak").read_text() == mine
    assert "Checked by Ann" not in page.read_text()


def test_a_log_of_pins_that_were_taken_back_is_kept(tmp_path: Path, cohort) -> None:
    run_folder = tmp_path / "run"
    eutely.build(cohort, run_folder, config=FIRST, workers=1)
    id_ = int(cohort[0].ids[0])
    name = cohort[0].name
    append_pins([Change(name, id_, "A", "ann"), Change(name, id_, None, "ann")],
                run_folder / "pins.csv")  # fmt: skip
    log = (run_folder / "pins.csv").read_bytes()
    eutely.build(cohort, run_folder, config=FIRST, pins={(name, id_): "B"}, workers=1)
    assert (run_folder / "pins.csv.bak").read_bytes() == log
    assert read_pins(run_folder / "pins.csv") == {(name, id_): "B"}


@pytest.mark.parametrize("name", ["pins", "Pins", "annotations", "look-here-first"])
def test_no_specimen_is_called_after_a_file_of_ours(tmp_path: Path, name: str) -> None:
    with pytest.raises(WriteError, match=f"{name}.csv is a file of eutely's own; rename"):
        check_names([name])
    atlas, shown = toy_cohort(4, 30)
    write_atlas(atlas, tmp_path / "atlas.h5")
    worm = Specimen.from_arrays(name, shown[0].positions, ids=shown[0].ids, unit="um")
    write_table(worm, tmp_path / f"{name}.csv")
    with pytest.raises(WriteError, match="rename the specimen"):
        run("annotate", tmp_path / "atlas.h5", tmp_path / f"{name}.csv", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_older_folder_with_such_a_specimen_is_not_curated(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("eutely.io.annotations.OURS", ())
    atlas, shown = toy_cohort(4, 30)
    worm = Specimen.from_arrays("pins", shown[0].positions, ids=shown[0].ids, unit="um")
    from eutely.curate.folder import annotate_into

    annotate_into(tmp_path / "out", atlas, [worm], workers=1)
    monkeypatch.undo()
    with pytest.raises(WriteError, match="rename the specimen pins"):
        open_material(tmp_path / "out")


def test_corrections_stay_when_specimens_are_annotated_again(tmp_path: Path, caplog) -> None:
    atlas, shown = toy_cohort(4, 30)
    write_atlas(atlas, tmp_path / "atlas.h5")
    worms = [
        Specimen.from_arrays(one.name, one.positions, ids=one.ids, unit="um") for one in shown[:2]
    ]
    write_table(worms, tmp_path / "worms.csv")
    out = tmp_path / "out"
    words = ("annotate", tmp_path / "atlas.h5", tmp_path / "worms.csv", "-o", out, "-j", 1)
    run(*words)
    session = Session(open_material(out))
    wrong = (session.cohort.shown[0].cells[3] + 1) % len(atlas)
    session.correct(0, {3: int(wrong)}, 0)
    session.close()
    with (out / f"{worms[0].name}.csv").open(newline="") as file:
        corrected = list(csv.DictReader(file))
    assert corrected[3]["cell"] == str(wrong)
    caplog.clear()
    run(*words)
    assert "1 pin of" in caplog.text
    with (out / f"{worms[0].name}.csv").open(newline="") as file:
        again = list(csv.DictReader(file))
    assert again[3]["cell"] == str(wrong)
    [expected, _] = annotate(
        atlas, worms, pins={(worms[0].name, int(worms[0].ids[3])): atlas.names[wrong]}, workers=1
    )
    assert [row["cell"] for row in again] == ["" if c < 0 else str(c) for c in expected.cells]
    run(*words, "--no-pins")
    with (out / f"{worms[0].name}.csv").open(newline="") as file:
        assert list(csv.DictReader(file))[3]["cell"] != str(wrong)
    assert read_pins(out / "pins.csv")


def test_corrections_are_not_of_other_nuclei_with_their_ids(tmp_path: Path, caplog) -> None:
    atlas, shown = toy_cohort(4, 30)
    write_atlas(atlas, tmp_path / "atlas.h5")
    worm = Specimen.from_arrays("worm001", shown[0].positions, ids=shown[0].ids, unit="um")
    table, out = tmp_path / "worm001.csv", tmp_path / "out"
    words = ("annotate", tmp_path / "atlas.h5", table, "-o", out, "-j", 1)
    write_table(worm, table)
    run(*words)
    append_pins([Change("worm001", int(worm.ids[3]), 7)], out / "pins.csv")
    # In another unit, turned, and without some nuclei it is the same specimen.
    turned = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    kept = np.arange(25)
    moved = 0.3 * worm.centroids[kept] @ turned
    write_table(Specimen.from_arrays("worm001", moved, ids=worm.ids[kept], unit="um"), table)
    run(*words)
    assert "1 pin of" in caplog.text
    before = (out / "worm001.csv").read_bytes()
    other = worm.centroids[np.random.default_rng(1).permutation(len(worm))]
    write_table(Specimen.from_arrays("worm001", other, ids=worm.ids, unit="um"), table)
    message = f"settles nucleus {worm.ids[3]} of worm001, which lies elsewhere now"
    with pytest.raises(EutelyError, match=message):
        run(*words)
    assert (out / "worm001.csv").read_bytes() == before
    run(*words, "--no-pins")
    assert read_pins(out / "pins.csv") == {("worm001", int(worm.ids[3])): 7}


def test_a_build_says_which_pinned_specimens_have_changed(tmp_path: Path, cohort, caplog) -> None:
    pins = {(one.name, int(one.ids[0])): "A" for one in cohort[:2]}
    eutely.build(cohort, tmp_path / "run", config=FIRST, pins=pins, workers=1)
    eutely.build(cohort, tmp_path / "run", config=FIRST, workers=1)
    assert "changed since" not in caplog.text
    other = replace(cohort[1], ids=cohort[1].ids[::-1])
    changed = [cohort[0], other, *cohort[2:]]
    eutely.build(changed, tmp_path / "run", config=FIRST, workers=1)
    [line] = [line for line in caplog.messages if "changed since" in line]
    assert f"pins.csv: {other.name} changed since the build before" in line


def test_tables_of_earlier_commands_are_said_and_not_read(tmp_path: Path, caplog) -> None:
    atlas, shown = toy_cohort(4, 30)
    write_atlas(atlas, tmp_path / "atlas.h5")
    for one in shown[:2]:
        worm = Specimen.from_arrays(one.name, one.positions, ids=one.ids, unit="um")
        write_table(worm, tmp_path / "worms" / f"{one.name}.csv")
    out, first = tmp_path / "out", shown[0].name
    words = ("annotate", tmp_path / "atlas.h5", tmp_path / "worms", "-o", out, "-j", 1)
    run(*words)
    assert "earlier" not in caplog.text
    (tmp_path / "worms" / f"{shown[1].name}.csv").unlink()
    moved = Specimen.from_arrays(first, shown[0].positions + 5, ids=shown[0].ids, unit="um")
    write_table(moved, tmp_path / "worms" / f"{first}.csv")
    run(*words, "--table", "parquet")
    [line] = [line for line in caplog.messages if "earlier" in line]
    assert line.endswith(f"not on the page: annotations.csv, {shown[1].name}.csv")
    known = open_material(out).specimens[first].centroids
    np.testing.assert_allclose(known, moved.centroids)
    # What is not known is no longer replaced without a copy.
    before = (out / "annotations.csv").read_bytes()
    run(*words)
    assert (out / "annotations.csv.bak").read_bytes() == before
    known = open_material(out).specimens[first].centroids
    np.testing.assert_allclose(known, moved.centroids)


def test_a_folder_that_is_being_curated_is_not_annotated(tmp_path: Path) -> None:
    folder = toy_folder(tmp_path / "annotated", 2, 30)
    atlas, shown = toy_cohort(4, 30)
    write_atlas(atlas, tmp_path / "atlas.h5")
    worm = Specimen.from_arrays("worm001", shown[0].positions, ids=shown[0].ids, unit="um")
    write_table(worm, tmp_path / "worm001.csv")
    words = ("annotate", tmp_path / "atlas.h5", tmp_path / "worm001.csv", "-o", folder, "-j", 1)
    before = (folder / "report.html").read_bytes()
    with locked(folder / CURATED), pytest.raises(RunFolderError, match="is in use by process"):
        run(*words)
    assert (folder / "report.html").read_bytes() == before
    run(*words)
    assert (folder / "report.html").read_bytes() != before
    with locked(folder / CURATED):
        pass


def test_annotations_do_not_go_into_the_folder_of_a_run(named: Path, tmp_path: Path, cohort):
    write_table(cohort[0], tmp_path / "worm.csv")
    page = (named / "report.html").read_bytes()
    with pytest.raises(WriteError, match="is the folder of eutely build"):
        run("annotate", named, tmp_path / "worm.csv", "-o", named)
    assert (named / "report.html").read_bytes() == page


# --- a full disk


def test_a_disk_full_of_atlas_is_one_clear_line(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    atlas, _ = toy_cohort(4, 60)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    write_atlas(atlas, tmp_path / "atlas.h5")
    size = (tmp_path / "atlas.h5").stat().st_size
    for limit in (0, 100, size // 2, size - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            with pytest.raises(WriteError) as caught:
                write_atlas(atlas, tmp_path / "new.h5")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert str(caught.value) == f"cannot write {tmp_path / 'new.h5'}: File too large"
    assert [path.name for path in tmp_path.iterdir()] == ["atlas.h5"]
