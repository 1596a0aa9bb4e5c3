"""The first screen in words: what was found, how good it is, what to check."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.plots import compute
from eutely.results import NO_CELL, Story

MOST = 6
"""Specimens or cells that a sentence names before it says how many more there are."""


class Tile(NamedTuple):
    """One number of the first screen, with what it means."""

    value: str
    what: str
    more: str


class Check(NamedTuple):
    """One thing to look at: how bad (``good``, ``look``, ``bad``), what, why, and where."""

    level: str
    what: str
    advice: str
    specimens: tuple[int, ...] = ()
    cells: tuple[int, ...] = ()


def percent(share: float) -> str:
    """Return a share of 0 .. 1 in percent; one decimal, none at the ends."""
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def unit_of(atlas: Atlas) -> str:
    """Return the unit of lengths as people write it."""
    return {"um": "µm", "voxel": "voxels", "unit": "units"}.get(atlas.unit, atlas.unit)


def many(count: int, one: str, more: str = "") -> str:
    """Return ``count`` with its noun, in singular or plural."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def sentence(text: str) -> str:
    """Return ``text`` with a full stop, unless it ends in a mark of its own."""
    return text if text[-1:] in ".?!" else f"{text}."


def headline(story: Story) -> str:
    """Return the title of the page: what was found."""
    cells = many(len(story.atlas), "cell")
    if story.title:
        return story.title
    if story.kind == "annotate" and story.specimens:
        return f"{many(len(story.specimens), 'specimen')} annotated"
    if story.kind == "atlas" or not story.specimens:
        return f"An atlas of {cells}"
    return f"{cells} found in {many(len(story.specimens), 'specimen')}"


def tiles(story: Story) -> list[Tile]:
    """Return the numbers of the first screen."""
    atlas = story.atlas
    named, rare = sum(map(bool, atlas.names)), int(atlas.rare.sum())
    about = f"{named:,} named" if named else "none named yet: run “eutely name”"
    found = [Tile(f"{len(atlas):,}", "cells", f"{about}{f', {rare} rare' if rare else ''}")]
    if story.specimens:
        nuclei = sum(map(len, story.specimens))
        found.append(Tile(f"{len(story.specimens):,}", "specimens", f"{nuclei:,} nuclei"))
    else:
        found.append(Tile(f"{atlas.specimens:,}", "specimens", "that the atlas was made from"))
    ranked = compute.consistency(story.specimens)
    if len(ranked.values):
        lowest = f"lowest {percent(ranked.values[0])} ({ranked.names[0]})"
        found.append(Tile(percent(float(np.median(ranked.values))), "consistent", lowest))
    sure = compute.confidences(story.specimens)
    if len(sure):
        unsure = int((sure < compute.UNSURE).sum())
        more = f"{many(unsure, 'uncertain nucleus', 'uncertain nuclei')}"
        found.append(Tile(percent(float(sure.mean())), "confident", more))
    if story.evaluation is not None:
        values = story.evaluation.accuracies
        more = f"mean of {many(len(values), 'specimen')}, lowest {percent(float(values.min()))}"
        found.append(Tile(percent(float(values.mean())), "named right", more))
    return found


def checks(story: Story) -> list[Check]:
    """Return what deserves a look, the worst first."""
    found = [*_outliers(story), *_unmatched(story), *_uncertain(story), *_rare(story)]
    found.sort(key=lambda one: one.level != "bad")
    if not any(map(bool, story.atlas.names)):
        found.append(
            Check("look", "No cell has a name yet.", "eutely name ATLAS INPUT names them all.")
        )
    if not found and story.specimens:
        found.append(Check("good", "Nothing stands out.", "Look through the specimens anyway."))
    return found


def _outliers(story: Story) -> list[Check]:
    odd = [(number, one) for number, one in enumerate(story.specimens) if one.outlier]
    found = [
        Check("bad", f"{one.name}: {sentence(one.outlier)}", "", (number,))
        for number, one in odd[:MOST]
    ]
    if len(odd) > MOST:
        found.append(Check("bad", f"{len(odd) - MOST} more specimens stand out.", "Orange dots."))
    return found


def _unmatched(story: Story) -> list[Check]:
    lost = np.array([int((one.cells == NO_CELL).sum()) for one in story.specimens], dtype=np.int64)
    if not lost.sum():
        return []
    worst = _largest(lost)
    return [
        Check(
            "look",
            f"{many(int(lost.sum()), 'nucleus has', 'nuclei have')} no cell, in "
            f"{many(int((lost > 0).sum()), 'specimen')}.",
            "Spurious or split segments, or cells that few specimens have.",
            worst,
        )
    ]


def _uncertain(story: Story) -> list[Check]:
    unsure = np.array(
        [
            0 if one.confidence is None else int((one.confidence < compute.UNSURE).sum())
            for one in story.specimens
        ],
        dtype=np.int64,
    )
    if not unsure.sum():
        return []
    cells = compute.cell_confidence(story.atlas, story.specimens)
    doubtful = np.flatnonzero(cells < 0.8)
    ranked = doubtful[np.argsort(cells[doubtful], kind="stable")][:MOST]
    return [
        Check(
            "look",
            f"{many(int(unsure.sum()), 'nucleus is', 'nuclei are')} uncertain "
            f"(confidence below {compute.UNSURE:g}).",
            "Most often neighbours that lie closer together than they vary.",
            _largest(unsure)[:3],
            tuple(ranked.tolist()),
        )
    ]


def _rare(story: Story) -> list[Check]:
    rare = np.flatnonzero(story.atlas.rare)
    if not len(rare):
        return []
    return [
        Check(
            "look",
            f"{many(len(rare), 'cell is', 'cells are')} rare: seen in so few specimens that "
            "their place is mostly a guess.",
            "Spurious segments, or cells that only some individuals have.",
            (),
            tuple(rare[:MOST].tolist()),
        )
    ]


def _largest(counts: NDArray[np.int64], most: int = MOST) -> tuple[int, ...]:
    """Return the numbers of the largest counts above 0, the largest first."""
    order = np.argsort(-counts, kind="stable")[:most]
    return tuple(order[counts[order] > 0].tolist())
