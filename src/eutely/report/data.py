"""The numbers that the page's own script draws, small enough to travel inside the page."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.evaluation import comparable
from eutely.plots import compute
from eutely.report.words import unit_of
from eutely.results import Shown, Story

STEPS = 65534
"""Places are kept as whole numbers of 0 .. STEPS along each axis: finer than any screen."""

UNKNOWN = 255
"""Stands for a confidence that is not known; known ones are 0 .. 250."""


CERTAIN, LEAST, MOST = 0.9, 0.01, 3
"""Alternatives of surer nuclei, less likely ones, and more of them are not worth their room."""


def packed(values: NDArray[Any], kind: str) -> str:
    """Return ``values`` as base64 of little-endian numbers of NumPy's type ``kind``."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def page_data(story: Story) -> dict[str, Any]:
    """Return what the script needs: plain values and packed arrays.

    Arrays of all specimens follow one another; ``starts`` tells where each begins.
    """
    atlas = story.atlas
    upper = np.triu_indices(3)
    truth = compute.cell_accuracy(atlas, story.specimens)
    sure = compute.cell_confidence(atlas, story.specimens)
    data: dict[str, Any] = {
        "unit": unit_of(atlas),
        "of": atlas.specimens,
        "spacing": compute.spacing(atlas),
        "names": list(atlas.names),
        "groups": compute.groups(atlas.names),
        "means": packed(atlas.means, "f4"),
        "covariances": packed(atlas.covariances[:, upper[0], upper[1]], "f4"),
        "spread": packed(compute.spreads(atlas), "f4"),
        "seen": packed(atlas.seen, "i4"),
        "rare": packed(atlas.rare, "u1"),
        "accuracy": packed(truth, "f4") if np.isfinite(truth).any() else "",
        "confidence": packed(sure, "f4") if np.isfinite(sure).any() else "",
        "specimens": [],
    }
    if story.specimens:
        data |= _nuclei(story)
    return data


def _nuclei(story: Story) -> dict[str, Any]:
    shown = story.specimens
    places = np.concatenate([one.positions for one in shown])
    known = np.isfinite(places).all(axis=1)
    low = places[known].min(axis=0) if known.any() else np.zeros(3)
    step = (np.ptp(places[known], axis=0) if known.any() else np.ones(3)) / STEPS
    step = np.where(step > 0, step, 1.0)
    whole = np.rint((np.where(known[:, None], places, low) - low) / step)
    lexicon, truth = _true_names(story)
    return {
        "specimens": [
            {
                "name": one.name,
                "consistency": None if np.isnan(one.consistency) else float(one.consistency),
                "outlier": one.outlier,
            }
            for one in shown
        ],
        "starts": np.cumsum([0, *map(len, shown)]).tolist(),
        "low": low.tolist(),
        "step": step.tolist(),
        "places": packed(whole, "u2"),
        "cells": packed(np.concatenate([one.cells for one in shown]), "i4"),
        "sure": packed(np.concatenate([_bytes(one) for one in shown]), "u1"),
        "ids": packed(np.concatenate([_ids(one) for one in shown]), "i4"),
        "lexicon": lexicon,
        "others": _others(story),
        "truth": packed(truth, "i4") if lexicon else "",
    }


def _others(story: Story) -> dict[int, list[list[int]]]:
    """Return what uncertain nuclei may be as well: nucleus -> (cell, percent) of the likeliest."""
    found: dict[int, list[list[int]]] = {}
    first = 0
    for one in story.specimens:
        for row, others in enumerate(one.alternatives):
            unsure = one.confidence is None or not one.confidence[row] >= CERTAIN
            likely = [[cell, round(100 * share)] for cell, share in others if share >= LEAST]
            if unsure and likely:
                found[first + row] = likely[:MOST]
        first += len(one)
    return found


def _bytes(one: Shown) -> NDArray[np.uint8]:
    if one.confidence is None:
        return np.full(len(one), UNKNOWN, np.uint8)
    known = np.isfinite(one.confidence)
    scaled = np.rint(250 * np.clip(np.where(known, one.confidence, 0), 0, 1))
    return np.where(known, scaled, UNKNOWN).astype(np.uint8)


def _ids(one: Shown) -> NDArray[np.int64]:
    return np.arange(len(one)) if one.ids is None else np.asarray(one.ids)


def _true_names(story: Story) -> tuple[list[str], NDArray[np.int64]]:
    """Return all true names, and for each nucleus of all specimens the number of its own or -1."""
    numbers: dict[str, int] = {}
    rows = []
    for one in story.specimens:
        for name in one.names or ("",) * len(one):
            plain = comparable(name)
            rows.append(numbers.setdefault(plain, len(numbers)) if plain else -1)
    return list(numbers), np.array(rows, dtype=np.int64)
