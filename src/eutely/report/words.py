"""The first screen in words: what was found, how good it is, what to check."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import MORE_DOUBT, NOT_CLEAR
from eutely.atlas import Atlas
from eutely.plots import compute
from eutely.results import Report
from eutely.specimen import UNMATCHED

MOST_LISTED = 6
"""Number of specimens or cells that an entry of the list of checks names or links."""

DOUBTFUL_CELL = 0.8
"""Cells with a mean confidence below this are linked from the check of uncertain nuclei."""


class Tile(NamedTuple):
    """A number of the first screen, what it counts, and a detail."""

    value: str
    what: str
    more: str


class Check(NamedTuple):
    """An entry of the list of things to check.

    Attributes
    ----------
    level
        ``good``, ``look`` or ``bad``.
    what
        a sentence that says what was found.
    advice
        its usual cause, or what to do; "" for none.
    specimens, cells
        numbers of those to look at.
    """

    level: str
    what: str
    advice: str
    specimens: tuple[int, ...] = ()
    cells: tuple[int, ...] = ()


def percent(share: float) -> str:
    """Return a share of 0 .. 1 in percent, with one decimal unless it is 0."""
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def unit_of(atlas: Atlas) -> str:
    """Return the unit of lengths as people write it."""
    return {"um": "µm", "voxel": "voxels", "unit": "units"}.get(atlas.unit, atlas.unit)


def grouping(atlas: Atlas) -> str:
    """Return what the groups of cells are, in words."""
    prefixes = any(group.endswith("…") for group in compute.cell_groups(atlas.names))
    return "first letters" if prefixes else "ganglion"


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return ``count`` with its noun; the plural ends in "s" unless given."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def sentence(text: str) -> str:
    """Return ``text`` with a full stop, unless it ends in a punctuation mark."""
    return text if text[-1:] in ".?!" else f"{text}."


def duration(seconds: float) -> str:
    """Return a time in the units that people would use."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def headline(atlas: Atlas, report: Report) -> str:
    """Return the title of the page."""
    cells = counted(len(atlas), "cell")
    specimens = counted(len(report.specimens), "specimen")
    if report.kind == "annotate" and report.specimens:
        return f"{specimens} annotated"
    if report.kind == "atlas" or not report.specimens:
        return f"An atlas of {cells}"
    return f"{cells} found in {specimens}"


def tiles(atlas: Atlas, report: Report) -> list[Tile]:
    """Return the numbers of the first screen."""
    named, rare = sum(map(bool, atlas.names)), int(atlas.rare.sum())
    about = f"{named:,} named" if named else "none named yet: run “eutely name”"
    result = [Tile(f"{len(atlas):,}", "cells", f"{about}{f', {rare} rare' if rare else ''}")]
    if report.specimens:
        nuclei = sum(map(len, report.specimens))
        what = "specimen" if len(report.specimens) == 1 else "specimens"
        result.append(Tile(f"{len(report.specimens):,}", what, f"{nuclei:,} nuclei"))
    else:
        result.append(Tile(f"{atlas.specimens:,}", "specimens", "that the atlas was made from"))
    ranked = compute.consistency(report.specimens)
    if len(ranked.values):
        lowest = f"median of specimens, lowest {percent(ranked.values[0])} ({ranked.names[0]})"
        result.append(Tile(percent(float(np.median(ranked.values))), "confirmed by others", lowest))
    confidences = compute.confidences(report.specimens)
    if len(confidences):
        unsure = int((confidences < compute.UNSURE).sum())
        more = (
            f"nuclei with confidence {compute.UNSURE:g} or more; {unsure:,} uncertain, mean "
            f"confidence {percent(float(confidences.mean()))}"
        )
        result.append(Tile(f"{len(confidences) - unsure:,}", "confident", more))
    if report.evaluation is not None:
        values = report.evaluation.accuracies
        more = f"mean of {counted(len(values), 'specimen')}, lowest {percent(float(values.min()))}"
        unnamed = sum(score.unnamed for score in report.evaluation.scores)
        if unnamed:
            more += f"; {counted(unnamed, 'nucleus', 'nuclei')} of cells without a name"
        result.append(Tile(percent(float(values.mean())), "named right", more))
    return result


def checks(atlas: Atlas, report: Report) -> list[Check]:
    """Return what to check, the worst first."""
    result = [
        *_outliers(report),
        *_hands(report),
        *_unmatched(report),
        *_uncertain(atlas, report),
        *_rare(atlas),
    ]
    if not any(atlas.names):
        result.append(
            Check("look", "No cell has a name yet.", "eutely name ATLAS INPUT names them all.")
        )
    if not result and report.specimens:
        result.append(Check("good", "Nothing stands out.", "Look through the specimens anyway."))
    return result


def _outliers(report: Report) -> list[Check]:
    outliers = [(number, shown) for number, shown in enumerate(report.specimens) if shown.outlier]
    result = [
        Check("bad", f"{shown.name}: {sentence(shown.outlier)}", "", (number,))
        for number, shown in outliers[:MOST_LISTED]
    ]
    if len(outliers) > MOST_LISTED:
        hidden = counted(
            len(outliers) - MOST_LISTED, "more specimen stands", "more specimens stand"
        )
        result.append(Check("bad", f"{hidden} out.", "Orange dots in the figure of consistency."))
    return result


def _hands(report: Report) -> list[Check]:
    unclear = [at for at, shown in enumerate(report.specimens) if NOT_CLEAR in shown.note]
    if not unclear:
        return []
    if len(unclear) == len(report.specimens) > 1:
        what = "Left and right look alike: no specimen shows whether it is a mirror image."
        apart = [at for at in unclear if MORE_DOUBT in report.specimens[at].note]
        why = "Names may have left and right exchanged. Confidences allow for that."
        if apart:
            why += " These are more in doubt than the others."
        return [Check("look", what, why, tuple(apart[:MOST_LISTED]))]
    return [
        Check(
            "look",
            f"{counted(len(unclear), 'specimen')} of {len(report.specimens)}: {NOT_CLEAR}.",
            "Where one is a mirror image after all, left and right change places in its names. "
            "Confidences allow for that.",
            tuple(unclear[:MOST_LISTED]),
        )
    ]


def _unmatched(report: Report) -> list[Check]:
    unmatched = np.array(
        [int((shown.cells == UNMATCHED).sum()) for shown in report.specimens], dtype=np.int64
    )
    if not unmatched.sum():
        return []
    nuclei = counted(int(unmatched.sum()), "nucleus has", "nuclei have")
    specimens = counted(int((unmatched > 0).sum()), "specimen")
    return [
        Check(
            "look",
            f"{nuclei} no cell, in {specimens}.",
            "Spurious or split segments, or cells that few specimens have.",
            _largest(unmatched),
        )
    ]


def _uncertain(atlas: Atlas, report: Report) -> list[Check]:
    unsure = np.array(
        [int((shown.confidence < compute.UNSURE).sum()) for shown in report.specimens],
        dtype=np.int64,
    )
    if not unsure.sum():
        return []
    confidence = compute.cell_confidence(atlas, report.specimens)
    doubtful = np.flatnonzero(confidence < DOUBTFUL_CELL)
    ranked = doubtful[np.argsort(confidence[doubtful], kind="stable")][:MOST_LISTED]
    nuclei = counted(int(unsure.sum()), "nucleus is", "nuclei are")
    return [
        Check(
            "look",
            f"{nuclei} uncertain (confidence below {compute.UNSURE:g}).",
            "Usually neighbours that are closer together than their positions vary.",
            _largest(unsure, 3),
            tuple(ranked.tolist()),
        )
    ]


def _rare(atlas: Atlas) -> list[Check]:
    rare = np.flatnonzero(atlas.rare)
    if not len(rare):
        return []
    return [
        Check(
            "look",
            f"{counted(len(rare), 'cell is', 'cells are')} rare: seen in too few specimens for a "
            "reliable position.",
            "Spurious segments, or cells that only some individuals have.",
            cells=tuple(rare[:MOST_LISTED].tolist()),
        )
    ]


def _largest(counts: NDArray[np.int64], most: int = MOST_LISTED) -> tuple[int, ...]:
    """Return the indices of the ``most`` largest counts above 0, largest first."""
    order = np.argsort(-counts, kind="stable")[:most]
    return tuple(order[counts[order] > 0].tolist())
