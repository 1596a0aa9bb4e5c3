"""Every command, ended or without disk space at every single use of a file: nothing is lost.

Run ``python benchmarks/safety/crash.py``. Small cohorts are built (by the default method and by the
paper's), built again into a run that a person has named, named, annotated, compared, corrected as
`eutely curate` does, annotated from label volumes and NWB into copies of these and AnnData,
exported for other programs, and an atlas is exported, each once undisturbed, which counts the
writes, fsyncs, renames, new folders and removals. Then the command is run once for each of these
and for each kind of disturbance (killed there; no space left from there on), see `harness`.
Afterwards

- every file of a command is as before or as after, all of them alike, once the folder is completed;
- names, pins, acknowledged corrections, columns and notes of a person are there;
- a full disk was one line, and exit code 2, or the command could do without what was not written;
- the same command ends in the same bytes and the same files as the undisturbed one.

Prints a table and writes ``benchmarks/results/safety.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import eutely
from eutely.cli import main
from eutely.config import resolve, to_toml
from eutely.io.atlas import read_atlas
from eutely.io.pins import read_pins
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume
from eutely.io.written import RECORD, finish, manifest_of
from eutely.simulation.volume import draw
from eutely.tasks import compared
from safety.harness import FULL, KILL, Ended, run

RESULTS = Path(__file__).resolve().parents[1] / "results" / "safety.json"

FAST = {f"refine.{key}": 1 for key in ("linear_rounds", "joint_rounds", "targets")}
"""Settings of the first build; those of the second lead to other cells."""

OTHER = FAST | {"refine.linear_rounds": 2, "seed": 3}

UNSTABLE = {"log.txt", "timings.jsonl", "lock"}
"""Files of a run folder that tell times or processes."""

COPY = re.compile(r".*(\.nwb|\.h5ad|\.xlsx|\.tif|\.ome\.zarr|colours\.csv)(?=/|$)")
"""Files that are committed one by one, and folders that are."""

VOXEL = (4.0, 4.0, 4.0)
"""Voxels of label volumes."""

TIME = "2026-01-01T00:00:00.000000Z"
"""When all corrections were made."""

Files = dict[str, bytes]


@dataclass(frozen=True)
class Command:
    """What is disturbed.

    Attributes
    ----------
    name
        of its row.
    work
        what is done, in the folder of the place.
    folder
        that it leaves its files in.
    prepare
        makes the place what it is before.
    holds
        tells whether the undisturbed command has kept what a person made.
    """

    name: str
    work: Callable[[], object]
    folder: str
    prepare: Callable[[Path], object] = lambda _: None
    holds: Callable[[Path], bool] = lambda _: True


def words(line: str) -> Callable[[], object]:
    """Return what runs the command line."""

    def work() -> None:
        compared.find_spec = lambda _: None  # figures take long, and are bytes like tables
        sys.argv = ["eutely", *line.split()]
        main()

    return work


def curated(folder: Path = Path("annotated")) -> None:
    """Correct one nucleus of a folder of annotations unless it is corrected, and save.

    Once it is acknowledged, a file beside the place says so.
    """
    from eutely.curate import session as module
    from eutely.curate.folder import open_material

    module.stamp = lambda: TIME
    session = module.Session(open_material(folder))
    shown = session.cases[0].shown
    pins = folder / "pins.csv"
    known = read_pins(pins) if pins.exists() else {}
    if (shown.name, int(shown.ids[CORRECTED])) not in known:
        session.correct(0, {CORRECTED: 5}, session.revision)
        Path("../acknowledged").touch()
    session.close()


CORRECTED = 3
"""Nucleus that is corrected, of the first specimen."""


def renamed_by_hand(place: Path) -> None:
    """Give the run names of a person, a note on its page, and settings that lead to other cells."""
    atlas = read_atlas(place / "run" / "atlas.h5")
    atlas.named([f"MINE{cell}" for cell in range(len(atlas))]).save(place / "run" / "atlas.h5")
    noted(place / "run" / "report.html")
    (place / "settings.toml").write_text(to_toml(resolve(overrides=OTHER)))


def noted(page: Path) -> None:
    """Add a note to a page, as a person would."""
    page.write_text(page.read_text().replace("</body>", "<p>Checked by Ann.</p></body>"))


def corrected_by_hand(place: Path) -> None:
    """Give a folder of annotations pins with a column of a person's own, and a corrected table."""
    [first, *_] = eutely.read(place / "worms")
    id_ = int(first.ids[0])
    pins = place / "annotated" / "pins.csv"
    name = read_atlas(place / "run" / "atlas.h5").names[1]
    pins.write_text(f"specimen,id,name,remark\n{first.name},{id_},{name},surely\n")
    table = place / "annotated" / f"{first.name}.csv"
    table.write_text(table.read_text() + "\n")
    noted(place / "annotated" / "report.html")


def named_as_before(place: Path) -> bool:
    """Tell whether all cells of a run have names, those that a person gave."""
    return all(name.startswith("MINE") for name in read_atlas(place / "run" / "atlas.h5").names)


def corrected_as_before(place: Path) -> bool:
    """Tell whether a person's pins, the column beside them, table and page are all there."""
    folder = place / "annotated"
    [((specimen, id_), name), *_] = read_pins(folder / "pins.csv").items()
    rows = [line.split(",") for line in (folder / f"{specimen}.csv").read_text().splitlines()]
    return (
        [name] == [row[2] for row in rows if row[0] == str(id_)]
        and "surely" in (folder / "pins.csv").read_text()
        and "Checked by Ann" in (folder / "report.html.bak").read_text()
        and (folder / f"{specimen}.csv.bak").exists()
    )


def with_volumes(place: Path) -> None:
    """Make a folder of one label volume of each kind and an NWB file."""
    done(place, "export annotated --nwb -o nwb")
    cohort = eutely.simulate(specimens=6, cells=24, seed=1, variation=0.5, pose="none")
    for specimen, end in zip(cohort[4:6], (".tif", ".ome.zarr"), strict=True):
        labels, _ = draw(specimen, VOXEL)
        write_volume(labels, place / "images" / f"{specimen.name}{end}", VOXEL)
    first = min((place / "nwb").glob("*.nwb"))
    first.rename(place / "images" / "recorded.nwb")
    shutil.rmtree(place / "nwb")


def with_a_workbook_of_a_person(place: Path) -> None:
    """Put a file of a person where a workbook will be."""
    path = place / "exported-tables" / "annotations.xlsx"
    path.parent.mkdir()
    path.write_text("Checked by Ann")


def workbook_as_before(place: Path) -> bool:
    """Tell whether the file of a person is kept."""
    kept = place / "exported-tables" / "annotations.xlsx.bak"
    return kept.read_text() == "Checked by Ann"


def done(place: Path, line: str) -> None:
    """Do a command in a place, in a child process."""
    ended = run(words(line), place)
    assert ended.code == 0, ended.said


COMMANDS = (
    Command("build", words("build worms -o run --config settings.toml -j 1"), "run"),
    Command("build, paper", words("build some -o learnt --preset paper --trials 1 -j 1"), "learnt"),
    Command("build again, named", words("build worms -o run --config settings.toml -j 1"), "run",
            renamed_by_hand, named_as_before),
    Command("name", words("name run worms -j 1"), "run"),
    Command("annotate", words("annotate run worms -o annotated -j 1"), "annotated"),
    Command("annotate again", words("annotate run worms -o annotated -j 1"), "annotated",
            corrected_by_hand, corrected_as_before),
    Command("curate", curated, "annotated", corrected_by_hand, corrected_as_before),
    Command("compare", words("compare a b --atlas run -o compared --permutations 19 -j 1"),
            "compared"),
    Command("atlas export", words("atlas export run -o exported"), "exported"),
    Command("annotate volumes and NWB", words("annotate run images -o copies --labels --nwb "
            "--h5ad copies/all.h5ad -j 1"), "copies", with_volumes),
    Command("export", words("export copies --csv --excel --labels --nwb --h5ad "
            "exported-tables/all.h5ad -o exported-tables"), "exported-tables",
            with_a_workbook_of_a_person, workbook_as_before),
)  # fmt: skip


def files(folder: Path) -> Files:
    """Return all files below a folder that tell no times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in UNSTABLE
    }


def mixed(found: Files, before: Files, after: Files, names: Iterable[str]) -> list[str]:
    """Return what is wrong with files that are committed together: all are old, or all are new."""
    names = [name for name in names if before.get(name) != after.get(name)]
    old = [name for name in names if found.get(name) == before.get(name)]
    new = [name for name in names if found.get(name) == after.get(name)]
    torn = [f"{name} is torn" for name in names if name not in old and name not in new]
    if torn or not old or not new:
        return torn
    return [f"{old[0]} is of before, {new[0]} of after"]


def lost(found: Files, before: Files, after: Files) -> list[str]:
    """Return what a person made or was told that is in no file any more."""
    wrong = [
        f"{name} is lost"
        for name, content in before.items()
        if b"Checked by Ann" in content and content not in found.values()
    ]
    wrong += [f"{name} is gone" for name in before if name in after and name not in found]
    pins = "annotated/pins.csv"
    kept = b"surely" not in before.get(pins, b"") or b"surely" in found.get(pins, b"")
    return wrong if kept else [*wrong, "a column of pins is lost"]


def check(command: Command, folder: Path, before: Files, whole: Files, ended: Ended) -> list[str]:
    """Return what is wrong after a disturbed command, and after the same command again."""
    wrong = []
    if ended.code > 0 and (ended.code != 2 or ended.said.count("error:") != 1):
        wrong.append(f"exit {ended.code}: {ended.said.strip()[-200:]}")
    if "Traceback" in ended.said:
        wrong.append(f"traceback: {ended.said.strip()[-200:]}")
    acknowledged = folder.parent / "acknowledged"
    if acknowledged.exists() and TIME.encode() not in (folder / "annotated/pins.csv").read_bytes():
        wrong.append("an acknowledged correction is lost")
    acknowledged.unlink(missing_ok=True)
    finish(folder / command.folder)
    found = files(folder)
    for names in committed_together(command, whole):
        wrong += mixed(found, before, whole, names)
    wrong += lost(found, before, whole)
    again = run(command.work, folder)
    if again.code:
        wrong.append(f"again: exit {again.code}: {again.said.strip()[-200:]}")
    last = files(folder)
    wrong += [f"{name} differs" for name in whole if last.get(name) != whole[name]]
    wrong += [f"{name} is left over" for name in last if name not in whole]
    acknowledged.unlink(missing_ok=True)
    return wrong


def committed_together(command: Command, whole: Files) -> list[list[str]]:
    """Return the files of a command that are of one commit each."""
    results = [name for name in whole if name.startswith(f"{command.folder}/")]
    if command.name == "atlas export":
        return [results]
    # Copies of what was read are whole, each by itself.
    copies: dict[str, list[str]] = {}
    for name in results:
        whole_one = COPY.match(name)
        if whole_one:
            copies.setdefault(whole_one[0], []).append(name)
    about = {f"{command.folder}/{name}" for name in ("config.toml", "inputs.json", "versions.json")}
    apart = about | {f"{command.folder}/{name}" for name in (RECORD, "pins.csv")}
    apart |= {name for names in copies.values() for name in names}
    listed = manifest_files(whole, f"{command.folder}/{RECORD}")
    committed = {f"{command.folder}/{name}" for name in listed}
    return [sorted(committed - apart), sorted(about & committed), *copies.values()]


def manifest_files(whole: Files, name: str) -> list[str]:
    return list(json.loads(whole[name])["files"]) if name in whole else []


def survey(folder: Path, chosen: Iterable[str] = (), every: int = 1) -> list[dict[str, object]]:
    """Disturb the chosen commands, or all, at each ``every``-th use; return their rows."""
    place = folder.resolve() / "place"
    begin(place)
    rows: list[dict[str, object]] = []
    left = set(chosen) or {command.name for command in COMMANDS}
    for command in COMMANDS:
        command.prepare(place)
        warm(command, copied(place, folder / "warm" / "copy"))
        rows += commanded(command, place, every if command.name in left else 0)
        left.discard(command.name)
        if not left:
            break
        copied(place.parent / "done" / "copy", place)
    return rows


def commanded(command: Command, place: Path, every: int = 1) -> list[dict[str, object]]:
    """Run a command in a copy of ``place``, done/copy beside it; then disturb it in others.

    Parameters
    ----------
    command
        whose work is done in child processes.
    place
        what is there before.
    every
        which uses are disturbed: each n-th one; 0 for none.

    Returns
    -------
    rows
        one for each kind of disturbance.
    """
    before = files(place)
    # Paths are remembered, so all is done in one place.
    folder = copied(place, place.parent / "copy" / "copy")
    ended = run(command.work, folder)
    assert ended.code == 0, (command.name, ended.said)
    assert command.holds(folder), command.name
    whole = files(folder)
    listed = manifest_of(folder / command.folder).files
    copied(folder, place.parent / "done" / "copy")
    (folder.parent / "acknowledged").unlink(missing_ok=True)
    assert all(f"{command.folder}/{name}" in whole for name in listed), command.name
    rows = []
    for what in (KILL, FULL) if every else ():
        rows.append(disturbed(command, place, ended.uses, what, every, before, whole))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def warm(command: Command, place: Path) -> None:
    """Do the work in this process, so that its children have all code that it needs."""
    here = Path.cwd()
    os.chdir(place)
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            command.work()
    except SystemExit:
        pass
    finally:
        os.chdir(here)


def disturbed(
    command: Command,
    place: Path,
    uses: tuple[str, ...],
    what: str,
    every: int,
    before: Files,
    whole: Files,
) -> dict[str, object]:
    """Return the row of one command and one kind of disturbance."""
    faults: list[str] = []
    ends = []
    points = [
        number
        for number, kind in enumerate(uses, start=1)
        if (what == KILL or kind != "remove") and number % every == 0
    ]
    for number in points:
        folder = copied(place, place.parent / "copy" / "copy")
        ended = run(command.work, folder, number, what)
        ends.append(ended.code)
        if what == KILL and ended.code != -9:
            faults.append(f"{number}: not killed, exit {ended.code}")
        wrong = check(command, folder, before, whole, ended)
        faults += [f"{number} ({uses[number - 1]}): {text}" for text in wrong]
    kinds = Counter(uses[number - 1] for number in points)
    return {
        "command": command.name,
        "disturbance": what,
        "points": len(points),
        **{f"{kind}s": count for kind, count in sorted(kinds.items())},
        "ended early": sum(code != 0 for code in ends),
        "wrong or lost": len(faults),
        "first faults": "; ".join(faults[:5]),
    }


def begin(place: Path) -> None:
    """Write cohorts and settings, and compile in this process what all children need."""
    cohort = eutely.simulate(specimens=4, cells=24, seed=1, variation=0.5)
    for number, specimen in enumerate(cohort):
        write_table(specimen, place / "worms" / f"{specimen.name}.csv")
        if number < 3:
            write_table(specimen, place / "some" / f"{specimen.name}.csv")
    for number, specimen in enumerate(
        eutely.simulate(specimens=8, cells=24, seed=1, variation=0.5)
    ):
        write_table(specimen, place / "ab"[number % 2] / f"{specimen.name}.csv")
    (place / "settings.toml").write_text(to_toml(resolve(overrides=FAST)))


def copied(source: Path, target: Path) -> Path:
    """Return a fresh copy of a folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


if __name__ == "__main__":
    from figures import keep, known, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="names of commands")
    parser.add_argument("--every", type=int, default=1, help="each n-th use only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = survey(Path(folder), options.only, options.every)
    table("safety", rows)
    if options.every == 1:  # rows of other commands stay
        others = known(RESULTS).get("crash", {}).get("rows", []) if options.only else []
        rows = [row for row in others if row["command"] not in options.only] + rows
        keep(RESULTS, "crash", {"command": "python benchmarks/safety/crash.py", "rows": rows})
    sys.exit(any(row["wrong or lost"] for row in rows))
