"""Commands that are killed, or meet a full disk, at many moments: nothing is lost, nothing is left.

Run ``python benchmarks/interruptions.py``. A small cohort is built, its atlas named in place and
its specimens annotated, through the command line. Each command is killed (SIGKILL) at 30 of its
uses of files, and gets a limit on the size of files at 20 sizes, as a full disk would. Afterwards
every file that was there is as before or as after the whole command, and the same command ends in
the same bytes and the same files as one that nothing disturbed. Prints a table and writes
``benchmarks/results/interruptions.json``.
"""

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import eutely
from eutely.cli import main
from eutely.config import resolve, to_toml
from eutely.io.tables import write_table
from figures import keep, table

RESULTS = Path(__file__).resolve().parent / "results" / "interruptions.json"

FAST = {f"refine.{key}": 1 for key in ("linear_rounds", "joint_rounds", "targets")}
"""Settings of the builds."""

USES = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate"}
"""Events of the interpreter at which a command can be killed."""

UNSTABLE = {"log.txt", "timings.jsonl", "report.html", "report.npz", "lock"}
"""Files of a run folder that tell times; and its lock."""

Files = dict[str, bytes]


class Command(NamedTuple):
    """A command, the words that it is called by, and what must be there before."""

    name: str
    words: tuple[str, ...]
    before: tuple[str, ...] = ()


COMMANDS = (
    Command("build", ("build", "worms", "-o", "run", "--config", "settings.toml", "-j", "1")),
    Command("name", ("name", "run", "worms", "-j", "1"), ("run",)),
    Command("annotate", ("annotate", "run", "worms", "-o", "out", "-j", "1"), ("run",)),
)


def ended(words: tuple[str, ...], folder: Path, prepare: Callable[[], None]) -> int:
    """Run a command in a child process, in ``folder``; return its exit code, or minus a signal."""
    process = os.fork()
    if process == 0:
        os.chdir(folder)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.argv = ["eutely", *words]
        prepare()
        try:
            main()
        except SystemExit as stopped:
            os._exit(stopped.code if isinstance(stopped.code, int) else 0)
        finally:
            os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def killed_at(moment: int, folder: Path, uses: Path | None = None) -> Callable[[], None]:
    """Return what makes a process kill itself at its n-th use of a file; or count into ``uses``."""

    def prepare() -> None:
        left = moment
        counted = 0 if uses is None else os.open(uses, os.O_WRONLY | os.O_CREAT)

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event not in USES or not isinstance(arguments[0], str | os.PathLike):
                return
            path = os.path.abspath(os.fspath(arguments[0]))
            if path.startswith(str(folder)):
                left -= 1
                if counted:
                    os.write(counted, b".")
                elif left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    return prepare


def limited_to(size: int) -> Callable[[], None]:
    """Return what keeps a process from writing files of more bytes, as a full disk would."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def files(folder: Path) -> Files:
    """Return all files below a folder that do not tell times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in UNSTABLE
    }


def torn(found: Files, before: Files, after: Files) -> list[str]:
    """Return the files that a person would miss: not as before, and not as after.

    What belongs to a step of a run is checked by the run itself.
    """
    result = []
    for name in {*before, *found}:
        hidden = any(part.startswith(".") for part in Path(name).parts)
        if hidden or "/stages/" in name or name.endswith(".npz"):
            continue
        if found.get(name) not in (before.get(name), after.get(name)):
            result.append(name)
    return result


def disturbed(
    command: Command, place: Path, disturb: Callable[[Path], Callable[[], None]], whole: Files
) -> tuple[int, list[str]]:
    """Disturb a command in a copy of ``place``; return how it ended and all that is wrong."""
    folder = place.parent / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(place, folder)
    before = files(folder)
    code = ended(command.words, folder, disturb(folder))
    wrong = [f"{name} is torn" for name in torn(files(folder), before, whole)]
    if ended(command.words, folder, lambda: None):
        wrong.append("the command does not go on")
    last = files(folder)
    wrong += [f"{name} differs" for name in whole if last.get(name) != whole[name]]
    wrong += [f"{name} is left over" for name in last if name not in whole]
    return code, wrong


def survey(
    folder: Path, moments: int, sizes: int, chosen: tuple[str, ...] = ("build", "name", "annotate")
) -> list[dict[str, object]]:
    """Disturb the chosen commands; return one row per command and kind of disturbance."""
    place = folder.resolve() / "place"
    cohort = eutely.simulate(specimens=4, cells=40, seed=1, variation=0.5)
    for specimen in cohort:
        write_table(specimen, place / "worms" / f"{specimen.name}.csv")
    (place / "settings.toml").write_text(to_toml(resolve(overrides=FAST)))
    eutely.build(cohort, config=resolve(overrides=FAST), workers=1)  # compiles for all children
    rows: list[dict[str, object]] = []
    for command in COMMANDS:
        counted = folder / "uses"
        counted.unlink(missing_ok=True)
        done = folder.resolve() / "done"
        shutil.rmtree(done, ignore_errors=True)
        shutil.copytree(place, done)
        assert ended(command.words, done, killed_at(0, done, counted)) == 0, command.name
        whole = files(done)
        uses = counted.stat().st_size
        before = files(place)
        largest = max(len(data) for name, data in whole.items() if before.get(name) != data)
        kinds = {
            "killed": [
                lambda where, at=at: killed_at(at, where) for at in evenly(1, uses, moments)
            ],
            "full disk": [lambda _, at=at: limited_to(at) for at in evenly(0, largest, sizes)],
        }
        for kind, disturbances in kinds.items() if command.name in chosen else ():
            ends = [disturbed(command, place, disturb, whole) for disturb in disturbances]
            signals = [-code for code, _ in ends if code < 0]
            faults = [wrong for _, some in ends for wrong in some]
            faults += [f"signal {n}" for n in signals if (kind, n) != ("killed", signal.SIGKILL)]
            faults += [f"exit {code}" for code, _ in ends if code not in (0, 2) and code > 0]
            rows.append(
                {
                    "command": command.name,
                    "disturbance": kind,
                    "moments": len(ends),
                    "ended early": sum(code != 0 for code, _ in ends),
                    "faults": len(faults),
                    "first faults": "; ".join(faults[:3]),
                }
            )
        if command.name in ("build", "name"):  # what the next command begins with
            shutil.rmtree(place)
            shutil.copytree(done, place)
    return rows


def evenly(first: int, last: int, count: int) -> list[int]:
    """Return up to ``count`` different whole numbers from ``first`` to ``last``."""
    return sorted({first + (last - first) * k // max(count - 1, 1) for k in range(count)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--sizes", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = survey(Path(folder), options.moments, options.sizes)
    table("interruptions", rows)
    keep(RESULTS, "interruptions", {"rows": rows})
    sys.exit(any(row["faults"] for row in rows))
