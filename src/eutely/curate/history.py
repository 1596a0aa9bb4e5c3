"""Corrections and how they came about: the log of all, and what can be undone of a specimen."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eutely.cliques import UNMATCHED
from eutely.errors import EutelyError
from eutely.io.pins import Change, append_pins, identity, read_changes

log = logging.getLogger("eutely")

MOST_TOLD = 3
"""Changes of another window that are told one by one."""

Pin = int | None
"""Cell of a nucleus, -1 for none; None where it is open."""


class ConflictError(EutelyError):
    """The corrections have changed since the window was told about them.

    Attributes
    ----------
    revision
        of all corrections, now.
    numbers
        of the specimens that were corrected meanwhile.
    """

    def __init__(self, words: str, revision: int = 0, numbers: Iterable[int] = ()) -> None:
        super().__init__(words)
        self.revision = revision
        self.numbers = sorted(set(numbers))


@dataclass(frozen=True)
class Edit:
    """One correction: nuclei (rows) with their pins before and after."""

    before: Mapping[int, Pin]
    after: Mapping[int, Pin]


@dataclass
class Log:
    """The log of all corrections, as far as it was read; what is on disk is what counts.

    Attributes
    ----------
    path
        of the file; it may be absent.
    changes
        its rows.
    before
        revision of an empty log: 0, unless rows have vanished from the file.
    """

    path: Path
    changes: list[Change] = field(default_factory=list)
    before: int = 0
    _file: tuple[int, ...] | None = None

    @property
    def revision(self) -> int:
        """Of all corrections: it grows with each row, and is the same after a restart."""
        return self.before + len(self.changes)

    def read(self) -> tuple[bool, list[Change]]:
        """Return whether all rows that were known are still there, and those that follow them.

        Where they are not, all rows of the file follow.
        """
        now = identity(self.path)
        if now == self._file:
            return True, []
        rows = read_changes(self.path) if now else []
        known = len(self.changes)
        same = rows[:known] == self.changes
        if not same:
            log.warning("%s was changed by another program; it is read anew", self.path)
            self.before = self.revision + 1
        self.changes, self._file = rows, now
        return same, rows[known:] if same else rows

    def add(self, rows: Sequence[Change]) -> None:
        """Add rows; when this returns, they are on disk."""
        append_pins(rows, self.path)
        self.changes, self._file = read_changes(self.path), identity(self.path)

    def since(self, seen: int) -> list[Change] | None:
        """Return the rows after revision ``seen``; None where that revision is not of this log."""
        return self.changes[seen - self.before :] if self.before <= seen <= self.revision else None


def in_words(changes: Sequence[Change] | None) -> str:
    """Return what has changed, for a person; "" if nothing."""
    if changes is None:
        return "the corrections were read anew"
    words = [f"nucleus {row.id} of {row.specimen} {_became(row)}" for row in changes[:MOST_TOLD]]
    more = f" and {len(changes) - MOST_TOLD} more" if len(changes) > MOST_TOLD else ""
    return ", ".join(words) + more


def _became(change: Change) -> str:
    if change.cell is None:
        return "was opened"
    who = f" by {change.author}" if change.author else ""
    cell = f"cell {change.cell}" if isinstance(change.cell, int) else change.cell or "no cell"
    return f"was set to {cell}{who}"


@dataclass
class History:
    """The pins of a specimen, and how they came about.

    Attributes
    ----------
    pins
        row -> cell, -1 for no cell.
    revision
        of all corrections of the folder, at the last change of this specimen.
    done, undone
        corrections that can be undone, and done again.
    last
        rows of the last change -> their pins after it.
    """

    pins: dict[int, int] = field(default_factory=dict)
    revision: int = 0
    done: list[Edit] = field(default_factory=list)
    undone: list[Edit] = field(default_factory=list)
    last: Mapping[int, Pin] = field(default_factory=dict)

    def plan(self, wanted: Mapping[int, Pin]) -> Edit:
        """Return the correction that a person wants, who has seen all that there is.

        A cell belongs to one nucleus: a pin of another one to the same cell is taken back.
        """
        cells = [cell for cell in wanted.values() if cell is not None and cell != UNMATCHED]
        if len(set(cells)) < len(cells):
            raise EutelyError("two nuclei cannot be the same cell; choose one of them")
        after: dict[int, Pin] = dict(wanted)
        for row, cell in self.pins.items():
            if row not in wanted and cell in cells:
                after[row] = None
        return Edit({row: self.pins.get(row) for row in after}, after)

    def undo(self) -> Edit | None:
        """Return the correction that takes the last one back, or None."""
        return Edit(self.done[-1].after, self.done[-1].before) if self.done else None

    def redo(self) -> Edit | None:
        """Return the last correction that was taken back, or None."""
        return self.undone[-1] if self.undone else None

    def apply(self, edit: Edit, revision: int, kind: str = "new") -> None:
        """Take a correction over, which leads to ``revision``.

        ``kind`` is ``new``, ``undo`` or ``redo``.
        """
        self.revision = revision
        self.last = edit.after
        for row, cell in edit.after.items():
            if cell is None:
                self.pins.pop(row, None)
            else:
                self.pins[row] = cell
        if kind == "undo":
            self.undone.append(self.done.pop())
        elif kind == "redo":
            self.done.append(self.undone.pop())
        else:
            self.done.append(edit)
            self.undone.clear()
