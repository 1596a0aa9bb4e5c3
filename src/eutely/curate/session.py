"""A curation under way: corrections go to disk first, then the specimen is matched again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import UNMATCHED
from eutely.curate.cohort import Cohort
from eutely.curate.experience import Experience, doubts
from eutely.curate.folder import PINS, Material, annotation_of, tables_agree, write_results
from eutely.curate.history import ConflictError, Edit, History, Log, Pin, in_words
from eutely.curate.placed import Placed
from eutely.curate.queue import Known, Question, questions
from eutely.errors import EutelyError
from eutely.evaluation import comparable
from eutely.io.pins import Change, Pins, alone, stamp
from eutely.results import Shown
from eutely.tasks.annotate import annotate
from eutely.tasks.export import Results

log = logging.getLogger("eutely")


@dataclass
class Case:
    """One specimen being curated.

    Attributes
    ----------
    shown
        as it was annotated.
    history
        its pins.
    placed
        matched around the pins of revision ``solved``; None before it was first opened.
    solved, asked
        revisions (see `History`) that ``placed`` and ``queue`` are of; -1 for none.
    before
        as it was matched before the last correction, to show what changed.
    queue
        questions, the most valuable first.
    doubt
        (n,), probability of each nucleus being wrong.
    known
        consequences of answers, as computed before.
    """

    shown: Shown
    history: History = field(default_factory=History)
    placed: Placed | None = None
    solved: int = -1
    asked: int = -1
    before: Placed | None = None
    queue: list[Question] = field(default_factory=list)
    doubt: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    known: Known = field(default_factory=dict)


class Session:
    """All specimens of a folder, their pins on disk, and the work in the background.

    Parameters
    ----------
    material
        the folder.
    author
        written beside each correction.
    read_only
        refuse corrections.

    Attributes
    ----------
    lock
        held by who reads or changes pins together with their revision.
    """

    def __init__(
        self,
        material: Material,
        *,
        author: str = "",
        read_only: bool = False,
    ) -> None:
        self.material = material
        self.author = author
        self.read_only = read_only
        self.saved = 0
        self.cohort = Cohort(material.atlas, material.shown, material.specimens)
        self.cases = [Case(shown) for shown in material.shown]
        self.lock = threading.RLock()
        self._solving = threading.RLock()
        self._counted: dict[int, tuple[int, Experience]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="curate")
        self._idle = ThreadPoolExecutor(1, thread_name_prefix="curate-idle")
        names = material.atlas.names
        count = {comparable(name): 0 for name in names} | {"": 2}
        for name in names:
            count[comparable(name)] += 1
        self._cells = {comparable(n): c for c, n in enumerate(names) if count[comparable(n)] == 1}
        self.log = Log(material.path / PINS)
        self.catch_up()
        if not author:  # who goes on with a folder is, unless said, who corrected it last
            self.author = next((row.author for row in reversed(self.log.changes) if row.author), "")
        for number, case in enumerate(self.cases):
            if case.history.pins:
                self._idle.submit(self._count, number)

    @property
    def revision(self) -> int:
        """Of all corrections, see `Log`."""
        return self.log.revision

    def pin_of(self, cell: Pin) -> str | int | None:
        """Return what stands in a table of pins for a cell: its name, or its number without one."""
        if cell is None or cell == UNMATCHED:
            return None if cell is None else ""
        name = self.material.atlas.names[cell]
        return name if self._cells.get(comparable(name)) == cell else cell

    def _take(self, name: str, changes: Iterable[Change]) -> None:
        number = self.cohort.number.get(name)
        if number is None:
            return  # pins of other specimens stay in the file
        case = self.cases[number]
        rows = {id_: row for row, id_ in enumerate(case.shown.ids.tolist())}
        after: dict[int, Pin] = {}
        for change in changes:
            cell: Pin = None
            if change.cell == "" or change.cell == UNMATCHED:
                cell = UNMATCHED
            elif isinstance(change.cell, int):
                cell = change.cell
            elif change.cell is not None:
                cell = self._cells.get(comparable(change.cell))
            known = cell is None or cell < len(self.material.atlas)
            if change.id not in rows or not known or (cell is None and change.cell is not None):
                log.warning(
                    "%s: nucleus %d of %s is pinned to %s, which is not there; the row is kept "
                    "and left aside", self.log.path, change.id, name, change.cell,
                )  # fmt: skip
                continue
            after[rows[change.id]] = cell
        before = {row: case.history.pins.get(row) for row in after}
        if after:
            case.history.apply(Edit(before, after), self.revision)

    def catch_up(self) -> None:
        """Take over what is new in the log: all at first, later what other programs have added."""
        with self.lock:
            same, changes = self.log.read()
            if not same:
                for case in self.cases:
                    case.history = History(revision=self.revision)
            # Rows of one correction have one time, and are undone together.
            for (name, _), step in groupby(enumerate(changes), _step):
                self._take(name, [change for _, change in step])
            for number in self.touched(changes) if same else range(len(self.cases)):
                if self.cases[number].placed is not None:
                    self.ask(number)

    def touched(self, changes: Iterable[Change] | None) -> list[int]:
        """Return the numbers of the specimens that changes are of; of all for None."""
        if changes is None:
            return [*range(len(self.cases))]
        names = {change.specimen for change in changes}
        return sorted(self.cohort.number[name] for name in names & {*self.cohort.number})

    def correct(self, number: int, wanted: Mapping[int, Pin], seen: int) -> int:
        """Settle nuclei of a specimen; on disk when this returns. Return the new revision.

        Parameters
        ----------
        number
            of the specimen.
        wanted
            row -> cell, -1 for no cell, None to take a pin back.
        seen
            revision that the person has seen; if it is not the present one, this is a
            `ConflictError`.
        """
        case = self.cases[number]
        cells = len(self.material.atlas)
        for row, cell in wanted.items():
            if not 0 <= row < len(case.shown) or not (cell is None or UNMATCHED <= cell < cells):
                raise EutelyError(f"there is no nucleus {row}, or no cell {cell}")
        return self._change(number, seen, lambda: (case.history.plan(wanted), "new"))

    def undo(self, number: int, seen: int) -> int:
        """Take the last correction of a specimen back; see `correct`."""
        return self._change(number, seen, lambda: (self.cases[number].history.undo(), "undo"))

    def redo(self, number: int, seen: int) -> int:
        """Do a correction again that was taken back; see `correct`."""
        return self._change(number, seen, lambda: (self.cases[number].history.redo(), "redo"))

    def _change(self, number: int, seen: int, make: Callable[[], tuple[Edit | None, str]]) -> int:
        if self.read_only:
            raise EutelyError("this curation is read-only")
        with self.lock, alone(self.log.path):
            self.catch_up()
            if seen != self.revision:
                new = self.log.since(seen)
                raise ConflictError(
                    f"not saved: in another window, {in_words(new)} meanwhile; look at it again",
                    self.revision, self.touched(new),
                )  # fmt: skip
            case = self.cases[number]
            edit, kind = make()
            if edit is None:
                return self.revision
            now = stamp()
            ids = case.shown.ids
            rows = [
                Change(case.shown.name, int(ids[row]), self.pin_of(cell), self.author, now)
                for row, cell in edit.after.items()
            ]
            self.log.add(rows)
            self.saved += 1
            case.history.apply(edit, self.revision, kind)
            self.ask(number)
            return self.revision

    def ask(self, number: int) -> None:
        """Match a specimen in the background if its pins have changed, then renew its queue."""
        self._pool.submit(self._work, number)

    def _work(self, number: int) -> None:
        try:
            self.solve(number)
            self.renew(number)
            if self.cases[number].history.pins or number in self._counted:
                self._count(number)
        except Exception:  # shown in the log; the next correction tries again
            log.exception("%s could not be matched again", self.cases[number].shown.name)

    def solve(self, number: int) -> Placed:
        """Match a specimen around its present pins."""
        case = self.cases[number]
        with self._solving:  # one after the other: what the last correction changed is kept
            with self.lock:
                revision, pins = case.history.revision, dict(case.history.pins)
                if case.placed is not None and case.solved == revision:
                    return case.placed
            first = self.cohort.placed(case.shown.name)
            result = first.around(pins)
            if result.lies_wrong:
                result = self._anew(case, pins) or result
            doubt = doubts(result, self.experience(number))
            with self.lock:
                case.before = case.placed or (first if pins else None)
                case.placed, case.solved, case.doubt = result, revision, doubt
            return result

    def _anew(self, case: Case, pins: Mapping[int, int]) -> Placed | None:
        """Find the place of a specimen anew, given its pins; None where that is not possible."""
        name, atlas = case.shown.name, self.cohort.atlas
        specimen = self.cohort.specimens.get(name)
        if specimen is None:
            return None
        known: Pins = {(name, int(specimen.ids[row])): cell for row, cell in pins.items()}
        [found] = annotate(atlas, [specimen], adapt=False, pins=known, workers=1)
        moved = replace(
            case.shown, positions=found.places, cells=found.cells, confidence=found.confidence,
            note=found.note(atlas),
        )  # fmt: skip
        self.cohort.replace(moved)
        return self.cohort.placed(name).around(pins)

    def renew(self, number: int) -> None:
        """Compute the queue of a specimen that is solved."""
        case = self.cases[number]
        with self.lock:
            specimen, revision = case.placed, case.solved
        if specimen is None or (case.asked == revision and case.queue):
            return
        experience = self.experience(number)
        queue = questions(specimen, experience, case.known)
        with self.lock:
            if revision >= case.asked:
                case.queue, case.asked = queue, revision
                case.doubt = doubts(specimen, experience)

    def experience(self, number: int) -> Experience:
        """Return what answers in the other specimens have shown, as far as it is counted."""
        m = len(self.material.atlas)
        total = Experience.of((), m)
        with self.lock:
            for other, (_, counted) in self._counted.items():
                if other != number:
                    total = total.plus(counted)
        return total

    def _count(self, number: int) -> None:
        """Count the answers of a specimen against what was shown without them."""
        case = self.cases[number]
        with self.lock:
            revision, settled = case.history.revision, dict(case.history.pins)
            if self._counted.get(number, (-1, None))[0] == revision:
                return
        first = self.cohort.placed(case.shown.name)
        counted = Experience.of([first.around(settled)], len(self.material.atlas))
        with self.lock:
            self._counted[number] = revision, counted

    def current(self) -> list[Shown]:
        """Return all specimens as they are now; those without corrections as annotated."""
        result = []
        for number, case in enumerate(self.cases):
            if not case.history.pins:
                result.append(case.shown)
                continue
            placed = self.solve(number)
            nuclei = placed.nuclei
            rows = zip(nuclei.other_cells.tolist(), nuclei.other_shares.tolist(), strict=True)
            others = tuple(
                tuple((c, share) for c, share in zip(*row, strict=True) if c != UNMATCHED)
                for row in rows
            )
            result.append(
                replace(
                    self.cohort.shown[number],
                    positions=nuclei.places,
                    cells=nuclei.cells,
                    confidence=nuclei.confidence,
                    alternatives=others,
                )
            )
        return result

    def results(self) -> Results:
        """Return all specimens with all corrections, for other programs."""
        material = self.material
        shown = [one for one in self.current() if one.name in material.specimens]
        if len(shown) < len(self.cases):
            raise EutelyError(
                f"{material.path} holds no coordinates of its specimens (a run, or a folder of an "
                "earlier version); annotate them into a folder, then export that"
            )
        annotations = [annotation_of(material.atlas, one) for one in shown]
        specimens = [material.specimens[one.name] for one in shown]
        return Results(material.atlas, annotations, specimens, material.files)

    def close(self) -> str:
        """Stop working and write the tables; return a line that says what was saved."""
        self.catch_up()
        for pool in (self._idle, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)
        if self.read_only:
            return "read-only: nothing was changed"
        pins = sum(len(case.history.pins) for case in self.cases)
        changes = "1 change" if self.saved == 1 else f"{self.saved} changes"
        settled = "1 nucleus is" if pins == 1 else f"{pins} nuclei are"
        line = f"{changes} saved in {self.log.path} ({settled} settled)"
        if not self.saved and tables_agree(self.material, self.log.path):
            return line
        if self.material.kind == "build":
            return f"{line}; eutely build with the same inputs uses them"
        complete = all(case.shown.name in self.material.specimens for case in self.cases)
        if not complete:
            return f"{line}; eutely annotate --pins {self.log.path} uses them"
        write_results(self.material, self.current(), self.log.path)
        return f"{line}; tables and page in {self.material.path} agree with them"


def _step(item: tuple[int, Change]) -> tuple[str, object]:
    """Return what rows of one correction have in common; rows without a time have nothing."""
    row, change = item
    return change.specimen, change.time or row
