"""Progress of long work: one line for the whole, what is left, and what Ctrl-C leaves.

A plan lists the steps of a command in words. On a terminal one line says which step it is, how far
it is and how long the rest will take; elsewhere each step gets a plain line with its time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from eutely.execute import PART

if TYPE_CHECKING:
    from rich.console import Console

    from eutely.execute import Progress as Callback

EVERY = 30.0
"""Seconds between plain lines within one step."""

PATIENCE = 5.0
"""Seconds after which work in a single step is shown as plain lines at all, and after which a step
gets a bar of its own."""

GRACE = 10.0
"""Seconds that processes of Dask get to end after Ctrl-C."""

FEWEST = 0.03
"""Share of the work from which the rest can be estimated."""


AT_ONCE = 0.05
"""Seconds within which a step is not computed but read from an earlier run."""

READING = "reading"
"""Name by which reading files reports itself; its note says which file it is."""


class Step(NamedTuple):
    """One step of a plan.

    Attributes
    ----------
    words
        what is done, for people.
    share
        of the time of the whole, roughly.
    whats
        names by which the work reports it, see `eutely.execute.Progress`; the last of them tells
        how much of the step is done.
    """

    words: str
    share: float
    whats: tuple[str, ...]


ORIENT = Step("finding heads and tails", 3, ("poses", "in-their-places", "one-handed"))
CHECK = Step("checking each specimen", 12, (
    "held-out-fits", "checking how specimens fit",
))  # fmt: skip
WRITE = Step("writing atlas and page", 3, ("writing",))

MATCH = Step("matching with the atlas", 90, ("matching",))
TABLES = Step("writing tables", 3, ("writing",))

PLANS = {
    "refine": (
        ORIENT,
        Step("choosing where to start", 5, ("targets",)),
        Step("matching all with one", 40, ("first-target", "first target")),
        Step("finding shared cells", 40, ("another-target", "last-round", "finding cells")),
        CHECK,
        WRITE,
    ),
    "learn": (
        ORIENT,
        Step("aligning the specimens", 3, ("aligned",)),
        Step("learning positions", 15, ("costs", "learning linear")),
        Step("learning matches", 15, ("learning sparsity",)),
        Step("learning neighbours", 20, ("learning offsets",)),
        Step("aligning again", 10, ("realigned", "matching all pairs")),
        Step("matching all pairs", 20, ("matched", "matching all pairs")),
        Step("joining matches", 3, ("synchronised", "cells-of-cliques", "improved")),
        CHECK,
        WRITE,
    ),
    "named": (
        ORIENT,
        Step("taking cells from names", 10, ("named-cells",)),
        Step("learning weights", 40, ("weights", "learning weights")),
        CHECK,
        WRITE,
    ),
    "annotate": (MATCH, TABLES),
    "labels": (MATCH, TABLES, Step("copying label volumes", 10, ("copying label volumes",))),
    "compare": (
        MATCH,
        Step("comparing groups", 30, ("comparing",)),
        Step("drawing figures", 10, ("drawing figures",)),
    ),
    "match": (MATCH,),
    "export": (
        Step("writing tables", 10, ("writing tables",)),
        Step("copying label volumes", 30, ("copying label volumes",)),
        Step("writing NWB", 60, ("writing NWB",)),
    ),
    "figures": (Step("drawing figures", 100, ("drawing figures",)),),
    "read": (Step("reading files", 100, (READING,)),),
}  # fmt: skip
"""Steps of each kind of work."""


class Watch:
    """Where long work is: the step, its share done, the time so far and the time left.

    Parameters
    ----------
    plan
        steps in order.
    clock
        function that returns seconds.
    """

    def __init__(self, plan: Sequence[Step], clock: Callable[[], float] = time.monotonic) -> None:
        self.plan = plan
        self.clock = clock
        self.begin = clock()
        self.number = 0
        self.inside = 0.0
        self.count = ""
        self.part = (0, 0)
        """items done and in total of what the step is doing just now"""
        self.before = 0.0
        """share of the work that was there already, from an earlier run"""
        self.entered = self.begin
        """when the present step began"""
        self._counted = (0, 1)
        self._last = self.begin

    def report(self, what: str, done: int, total: int, note: str = "") -> None:
        """Note what is being done; see `eutely.execute.Progress`."""
        if what == PART:
            self.part = done, total
            self._advance(done / total if total else 0.0)
            return
        # Work never goes back in the plan: a step may do again what one before it did.
        ahead = range(self.number, len(self.plan))
        number = next((at for at in ahead if what in self.plan[at].whats), None)
        if number is None:
            return
        share, now = self.share, self.clock()
        if number > self.number:
            self.number, self.inside, self.count = number, 0.0, ""
            self.entered, self.part, self._counted = now, (0, 0), (0, 1)
        if what == self.plan[number].whats[-1] and total > 0:
            self._counted = done, total
            self._advance(0.0)
            self.count = note if what == READING else f"{done} of {total}" if total > 1 else ""
        if now - self._last < AT_ONCE:
            self.before += max(self.share - share, 0.0)
        self._last = now

    def _advance(self, part: float) -> None:
        """Count what is done of the step, and the share of its present part."""
        done, total = self._counted
        self.inside = max(self.inside, min((done + part) / total, 1.0))

    @property
    def share(self) -> float:
        """Share of the whole that is done, 0 to 1."""
        shares = [step.share for step in self.plan]
        done = sum(shares[: self.number]) + self.inside * shares[self.number]
        return done / sum(shares)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self.begin

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take; None where there is no telling yet."""
        share, elapsed = self.share, self.elapsed
        fresh = share - self.before
        if fresh < FEWEST or elapsed < 1:
            return None
        return elapsed * (1 - share) / fresh

    @property
    def items(self) -> str:
        """Items that the step has done just now, such as "37 of 100"; "" for none."""
        done, total = self.part
        return f"{done} of {total}" if total > 1 else ""

    def line(self) -> str:
        """Return the progress in words."""
        step = self.plan[self.number]
        where = f"step {self.number + 1} of {len(self.plan)}: " if len(self.plan) > 1 else ""
        count = self.count or (self.items if self._counted[1] == 1 else "")
        parts = [f"{where}{step.words}", count, clock_time(self.elapsed)]
        if self.left is not None and self.share < 1:
            parts.append(f"about {rough_time(self.left)} left")
        return ", ".join(part for part in parts if part)


def clock_time(seconds: float) -> str:
    """Return a time as on a clock: 0:05, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rough_time(seconds: float) -> str:
    """Return a time as precisely as a guess can be: 20 s, 3 min, 2 h."""
    if seconds < 55:
        return f"{max(5, 5 * round(seconds / 5))} s"
    if seconds < 55 * 60:
        return f"{round(seconds / 60) or 1} min"
    return f"{seconds / 3600:.1f} h".replace(".0 ", " ")


@contextmanager
def watched(plan: Sequence[Step], console: Console, quiet: bool) -> Iterator[Callback]:
    """Yield a progress callback that shows the work on a terminal, or as plain lines elsewhere."""
    watch = Watch(plan)
    if quiet:
        yield lambda *_: None
    elif console.is_terminal:
        with _line(watch, console) as show:
            yield show
    else:
        yield _plain_lines(watch, console)


@contextmanager
def _line(watch: Watch, console: Console) -> Iterator[Callback]:
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=6))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(watch.line(), total=1.0)
        inside = bar.add_task("", total=1.0, visible=False)
        stop = threading.Event()

        def draw() -> None:
            done, total = watch.part
            bar.update(task, description=watch.line(), completed=watch.share)
            bar.update(
                inside,
                description=f"    {watch.items}",
                completed=done / max(total, 1),
                visible=total > 1 and watch.clock() - watch.entered > PATIENCE,
            )

        def tick() -> None:
            while not stop.wait(1.0):
                draw()

        threading.Thread(target=tick, daemon=True).start()

        def show(what: str, done: int, total: int, note: str) -> None:
            watch.report(what, done, total, note)
            draw()

        try:
            yield show
        finally:
            stop.set()


def _plain_lines(watch: Watch, console: Console) -> Callback:
    several = len(watch.plan) > 1
    last = [watch.begin if several else watch.begin + PATIENCE - EVERY, -1.0]

    def show(what: str, done: int, total: int, note: str) -> None:
        watch.report(what, done, total, note)
        now = watch.clock()
        begun = several and last[1] != watch.number
        if begun or now - last[0] >= EVERY:
            last[:] = [now, watch.number]
            console.print(watch.line(), markup=False, highlight=False, soft_wrap=True)

    return show


class Stop:
    """What Ctrl-C leaves behind, and how to go on; each command says it where it begins work."""

    kept = "nothing was written; the same command begins again"


@contextmanager
def stopping(say: Callable[[str], None]) -> Iterator[None]:
    """Answer Ctrl-C at once with one line, and end.

    Whatever is written appears completely or not at all, so ending at once loses nothing. Only
    processes of Dask get ``GRACE`` seconds to end by themselves.
    """

    def stop(number: int, frame: Any) -> None:  # noqa: ARG001
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say(f"stopped; {Stop.kept}")
        sys.stdout.flush()
        sys.stderr.flush()
        if not multiprocessing.active_children():
            os._exit(130)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what breaks now is of no interest
        end = threading.Timer(GRACE, os._exit, (130,))
        end.daemon = True
        end.start()
        raise SystemExit(130)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
