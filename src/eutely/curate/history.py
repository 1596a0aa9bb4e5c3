"""The pins of one specimen and how they came about: what can be undone, and what was seen when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eutely.cliques import UNMATCHED
from eutely.errors import EutelyError

Pin = int | None
"""Cell of a nucleus, -1 for none; None where it is open."""


class ConflictError(EutelyError):
    """Somebody else has changed the same nucleus meanwhile."""


@dataclass(frozen=True)
class Edit:
    """One correction: nuclei (rows) with their pins before and after."""

    before: Mapping[int, Pin]
    after: Mapping[int, Pin]


@dataclass
class History:
    """Pins that change; every change has a number.

    Attributes
    ----------
    pins
        row -> cell, -1 for no cell.
    revision
        number of changes so far.
    changed
        row -> revision of its last change.
    done, undone
        corrections that can be undone, and done again.
    last
        rows of the last change -> their pins after it.
    """

    pins: dict[int, int] = field(default_factory=dict)
    revision: int = 0
    changed: dict[int, int] = field(default_factory=dict)
    done: list[Edit] = field(default_factory=list)
    undone: list[Edit] = field(default_factory=list)
    last: Mapping[int, Pin] = field(default_factory=dict)

    def plan(self, wanted: Mapping[int, Pin], seen: int) -> Edit:
        """Return the correction that a person wants, who has seen revision ``seen``.

        A cell belongs to one nucleus: a pin of another one to the same cell is taken back.
        """
        late = [row for row in wanted if self.changed.get(row, 0) > seen]
        if late:
            raise ConflictError(
                "this nucleus was changed in another window meanwhile; look at it again"
            )
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

    def apply(self, edit: Edit, kind: str = "new") -> None:
        """Take a correction over; ``kind`` is ``new``, ``undo`` or ``redo``."""
        self.revision += 1
        self.last = edit.after
        for row, cell in edit.after.items():
            self.changed[row] = self.revision
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
