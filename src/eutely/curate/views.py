"""What the page is told: plain values about the folder, a specimen, its queue and its changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from eutely.cliques import UNMATCHED
from eutely.curate.history import in_words
from eutely.curate.placed import Placed
from eutely.curate.session import Case, Session
from eutely.report.data import packed

MOST_QUESTIONS, MOST_OTHERS = 40, 8
"""Questions, and alternatives of a nucleus, that the page is told."""

SMALLEST_SHARE = 0.005
"""Alternatives less likely than this are not told."""


def overview(session: Session, until: float) -> dict[str, Any]:
    """Return the state of all specimens."""
    session.catch_up()
    with session.lock:
        return _overview(session, until)


def _overview(session: Session, until: float) -> dict[str, Any]:
    return {
        "specimens": [
            {
                "name": case.shown.name,
                "nuclei": len(case.shown),
                "pins": len(case.history.pins),
                "right": _right(case),
                **revisions(session, case),
                "outlier": case.shown.outlier,
                "note": case.shown.note,
            }
            for case in session.cases
        ],
        "until": until,
        "readOnly": session.read_only,
        "author": session.author,
        "folder": session.material.path.name,
    }


def _right(case: Case) -> float:
    """Return the share of names expected to be right; by the annotation until it is opened."""
    if case.placed is not None:
        return 1 - float(case.doubt.mean())
    sure = np.nan_to_num(case.shown.confidence, nan=0.5)
    return float(sure.mean()) if len(sure) else 1.0


def revisions(session: Session, case: Case) -> dict[str, int]:
    """Return the revision of all corrections, and those that a specimen is matched and asked by.

    Corrections of other specimens change neither: it is matched by all there are.
    """
    now, own = session.revision, case.history.revision
    return {
        "revision": now,
        "changed": own,
        "solved": now if case.solved == own else min(case.solved, now - 1),
        "asked": now if case.asked == own else min(case.asked, now - 1),
    }


def specimen_state(
    session: Session, number: int, until: float, seen: int | None = None
) -> dict[str, Any]:
    """Return all about a specimen; it is matched first if it was not opened before.

    With ``seen``, a revision, also what has changed since then, in words.
    """
    session.catch_up()
    case = session.cases[number]
    if case.placed is None:
        session.solve(number)
    if case.asked < case.solved:
        session.ask(number)
    with session.lock:
        told = _state(session, number, until)
        told["meanwhile"] = "" if seen is None else in_words(session.log.since(seen))
    return told


def _state(session: Session, number: int, until: float) -> dict[str, Any]:
    case = session.cases[number]
    placed = case.placed
    assert placed is not None
    nuclei = placed.nuclei
    doubt = case.doubt
    wrong = float(doubt.sum())
    pins = dict(case.history.pins)
    fresh = case.solved == case.history.revision
    return {
        "number": number,
        "name": case.shown.name,
        "note": case.shown.note,
        "outlier": case.shown.outlier,
        "ids": [str(id_) for id_ in placed.ids.tolist()],
        "places": packed(nuclei.places, "f4"),
        "own": packed(case.shown.colours, "u1"),
        "cells": nuclei.cells.tolist(),
        "sure": [round(float(value), 4) for value in placed.sure],
        "doubt": [round(float(value), 4) for value in doubt],
        "others": [_others(placed, row) for row in range(len(placed.ids))],
        "pins": [[row, cell] for row, cell in sorted(pins.items())],
        **revisions(session, case),
        "queue": [
            {
                "row": question.row,
                "doubt": round(question.doubt, 4),
                "value": round(question.value, 4),
                "follow": list(question.follow),
            }
            for question in case.queue[:MOST_QUESTIONS]
            if question.row not in pins
        ],
        "changes": changes(case) if fresh else [],
        "wrong": round(wrong, 2),
        "reached": wrong <= (1 - until) * len(placed.ids),
        "undo": bool(case.history.done),
        "redo": bool(case.history.undone),
    }


def _others(placed: Placed, row: int) -> list[list[float]]:
    nuclei = placed.nuclei
    pairs = zip(nuclei.other_cells[row].tolist(), nuclei.other_shares[row].tolist(), strict=True)
    likely = [[cell, round(share, 3)] for cell, share in pairs
              if cell != UNMATCHED and share >= SMALLEST_SHARE]  # fmt: skip
    return likely[:MOST_OTHERS]


def changes(case: Case) -> list[dict[str, Any]]:
    """Return which nuclei the last correction gave another cell: before, after, and why.

    ``why`` is ``pinned``; ``opened``, its pin was taken back; ``taken``, its cell is that of
    nucleus ``by`` now; ``free``, its new cell was that of nucleus ``by``; or ``neighbours``, which
    fit better so.
    """
    if case.before is None or case.placed is None:
        return []
    before, after = case.before.nuclei.cells, case.placed.nuclei.cells
    now = {int(cell): row for row, cell in enumerate(after) if cell != UNMATCHED}
    then = {int(cell): row for row, cell in enumerate(before) if cell != UNMATCHED}
    last = case.history.last
    rows = np.flatnonzero(before != after).tolist()
    result = []
    for row in sorted(rows, key=lambda row: row not in last):
        old, new = int(before[row]), int(after[row])
        why, by = "neighbours", None
        if row in last:
            why = "opened" if last[row] is None else "pinned"
        elif old in now and now[old] != row:
            why, by = "taken", now[old]
        elif new in then and then[new] != row:
            why, by = "free", then[new]
        result.append({"row": row, "before": old, "after": new, "why": why, "by": by})
    return result
