"""Two windows of curate, a second program, kills and restarts, played in random order.

Each interleaving forks a server (a `Session` behind its web application, in a process of its own),
to which two windows send corrections, undo and redo with the revision that they have last seen;
another program adds pins to the same log meanwhile. The server is killed (SIGKILL) between
requests, and at a random use of a file within one. A model of the log says what must hold:

- what was acknowledged is in the log, always, and what was not is there wholly or not at all;
- a change is acknowledged only at the revision at which its window has seen all pins;
- after a restart, and at the end, the pins that the server tells are those of the log.

Run: python benchmarks/safety/windows.py --interleavings 2000 --seeds 3 4
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from starlette.testclient import TestClient  # noqa: E402

from eutely.curate.folder import PINS, Material, open_material  # noqa: E402
from eutely.curate.server import Desk, application  # noqa: E402
from eutely.curate.session import Session  # noqa: E402
from eutely.io.pins import Change, add_pins, read_changes, read_pins  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "windows.json"

STEPS = 14
"""Events of an interleaving."""

USES = {"open", "os.rename", "os.remove"}
"""Events of the interpreter at which a server can be killed."""

Pins = dict[tuple[str, int], str | int]


def ignore(_: int) -> None:
    """Do nothing."""


def serve(material: Material, pipe: Connection) -> None:
    """Answer requests until there are no more; a request may say at which use of files to die."""
    session = Session(material)
    session.ask = ignore  # type: ignore[method-assign]  # pins are played, not names
    desk = Desk(material.atlas, session=session)
    client = TestClient(application(desk, frozenset({"h:1"})), base_url="http://h:1")
    left = 0

    def hook(event: str, given: tuple[object, ...]) -> None:
        nonlocal left
        if left and event in USES and str(material.path) in str(given[0]):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    while True:
        what, number, content, left = pipe.recv()
        path = f"/{desk.token}/specimens/{number}"
        if what == "look":  # what a window draws
            with session.lock:
                session.catch_up()
                pins = [dict(case.history.pins) for case in session.cases]
                pipe.send((200, {"revision": session.revision, "pins": pins}))
            continue
        answer = client.post(f"{path}/{what}", json=content)
        left = 0
        pipe.send((answer.status_code, answer.json()))


class Server:
    """A server in a process of its own."""

    def __init__(self, material: Material) -> None:
        self.pipe, there = Pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                self.pipe.close()
                serve(material, there)
            finally:
                os._exit(70)
        there.close()

    def ask(self, what: str, number: int = 0, content: Any = None, die: int = 0) -> Any:
        """Return status and answer; None where the server dies."""
        try:
            self.pipe.send((what, number, content, die))
            return self.pipe.recv()
        except (EOFError, OSError):
            self.end()
            return None

    def end(self) -> None:
        """Kill it."""
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.process = 0
            self.pipe.close()


class Game:
    """One interleaving: two windows, the other program, and what the log must hold."""

    def __init__(self, material: Material, seed: int) -> None:
        self.material = material
        self.path = material.path / PINS
        self.path.unlink(missing_ok=True)
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.rows: list[Change] = []
        self.server = Server(material)
        self.seen = [self._look(), self._look()]

    def _log(self) -> list[Change]:
        return read_changes(self.path) if self.path.exists() else []

    def _look(self) -> tuple[int, list[dict[int, int]]]:
        """Return revision and pins as a window is told them."""
        status, told = self.server.ask("look")
        assert status == 200
        expected = [self._pins_of(one.name, one.ids.tolist()) for one in self.material.shown]
        if told["pins"] != expected:
            self.faults.append(f"told {told['pins']}, the log has {expected}")
        return told["revision"], told["pins"]

    def _pins_of(self, name: str, ids: list[int]) -> dict[int, int]:
        """Return row -> cell of a specimen, by the log."""
        names = list(self.material.atlas.names)
        pins: Pins = read_pins(self.path) if self.path.exists() else {}
        return {
            ids.index(id_): -1
            if cell == ""
            else cell
            if isinstance(cell, int)
            else names.index(cell)
            for (specimen, id_), cell in pins.items()
            if specimen == name
        }

    def _kept(self, event: str) -> list[Change]:
        """Check that all that was acknowledged is in the log; return the rows that follow."""
        found = self._log()
        if found[: len(self.rows)] != self.rows:
            self.faults.append(f"{event}: acknowledged rows are gone")
        return found[len(self.rows) :]

    def change(self, window: int, die: int = 0) -> None:
        """Send a change from a window; it may kill the server at a use of files."""
        what = self.random.choice(["correct", "correct", "correct", "undo", "redo"])
        number = self.random.randrange(len(self.material.shown))
        revision, pins = self.seen[window]
        content: dict[str, Any] = {"seen": revision}
        rows = self.random.sample(range(5), self.random.choice([1, 1, 2]))
        cells = self.random.sample([-1, None, 0, 1, 2, 3], len(rows))
        if what == "correct":
            content["cells"] = [list(pair) for pair in zip(rows, cells, strict=True)]
        now = self._told_now()
        answer = self.server.ask(what, number, content, die)
        new = self._kept(what)
        self.counts[f"{what} {answer[0] if answer else 'killed'}"] += 1
        if answer is None:  # not acknowledged: all rows of the change, or none
            if len({row.time for row in new}) > 1 or {row.specimen for row in new} > {
                self.material.shown[number].name
            }:
                self.faults.append(f"{what}: a part of it, or more, is in the log")
            self.rows += new
            return
        status, told = answer
        if status == 409 and (new or revision == len(self.rows)):
            self.faults.append(f"{what}: refused, but saved or up to date")
        elif status == 200:
            if (revision, pins) != (len(self.rows), now):
                self.faults.append(f"{what}: accepted from a window that has not seen {now}")
            if what == "correct":
                after = self._pins_of(self.material.shown[number].name,
                                      self.material.shown[number].ids.tolist())  # fmt: skip
                wanted = dict(zip(rows, cells, strict=True))
                if any(after.get(row) != cell for row, cell in wanted.items()):
                    self.faults.append(f"correct: {wanted} was acknowledged, the log has {after}")
            self.rows += new
            if told["revision"] != len(self.rows):
                self.faults.append(f"{what}: revision {told['revision']} of {len(self.rows)} rows")
        elif status not in (200, 409):
            self.faults.append(f"{what}: {status} {told}")

    def _told_now(self) -> list[dict[int, int]]:
        return [self._pins_of(one.name, one.ids.tolist()) for one in self.material.shown]

    def other(self) -> None:
        """Add a pin by another program; sometimes while a window sends a correction."""
        one = self.random.choice(self.material.shown)
        cell = self.material.atlas.names[self.random.randrange(4, 9)]
        key = (one.name, int(one.ids[self.random.randrange(5, 9)]))
        if not self.rows:  # a log, not a plain table
            return
        if self.random.random() < 0.5:
            add_pins({key: cell}, self.path)
            self.rows += self._kept("the other program")
            return
        thread = threading.Thread(target=add_pins, args=({key: cell}, self.path))
        number = self.random.randrange(len(self.material.shown))
        content = {"seen": self.seen[0][0], "cells": [[0, 0]]}
        thread.start()
        answer = self.server.ask("correct", number, content)
        thread.join()
        new = self._kept("both at once")
        if len(new) < 1 + (answer[0] == 200) or read_pins(self.path).get(key) != cell:
            self.faults.append("both at once: one of them is gone")
        self.counts["both at once"] += 1
        self.rows += new

    def step(self) -> None:
        """Play one event."""
        event = self.random.random()
        window = self.random.randrange(2)
        if event < 0.35:
            self.seen[window] = self._look()
        elif event < 0.78:
            self.change(window)
        elif event < 0.88:
            self.change(window, die=self.random.randrange(1, 12))
        elif event < 0.94:
            self.other()
        else:
            self.server.end()
            self.counts["killed between"] += 1
        if not self.server.process:
            self.server = Server(self.material)
            self.counts["restarts"] += 1
            if self._look()[0] != len(self.rows):
                self.faults.append("another revision after a restart")

    def play(self) -> None:
        """Play all events, then look at the end."""
        for _ in range(STEPS):
            self.step()
        if self._kept("the end"):
            self.faults.append("rows that nobody sent")
        self._look()
        self.server.end()


@contextmanager
def table() -> Iterator[Material]:
    """Yield a small folder of annotations."""
    from toy_curation import toy_folder

    place = Path(tempfile.mkdtemp()).resolve() / "annotated"
    try:
        yield open_material(toy_folder(place, specimens=2, cells=12))
    finally:
        shutil.rmtree(place.parent)


def play(interleavings: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Play interleavings; return what happened, and faults."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    with table() as material:
        for number in range(interleavings):
            game = Game(material, seed * 1_000_003 + number)
            game.play()
            counts += game.counts
            faults += [f"interleaving {number}: {fault}" for fault in game.faults]
    return counts, faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interleavings", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4], help="equal shares of them")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    faults: list[str] = []
    each = options.interleavings // len(options.seeds)
    for seed in options.seeds:
        more, wrong = play(each, seed)
        counts += more
        faults += wrong
    print(json.dumps(counts, indent=1, sort_keys=True), *faults[:20], sep="\n")
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "interleavings": each * len(options.seeds),
        "seeds": options.seeds,
        "events": dict(sorted(counts.items())),
        "faults": len(faults),
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
