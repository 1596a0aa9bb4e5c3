"""The numbers that the scripts of the page draw, packed to keep the page small."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.evaluation import comparable, spellings
from eutely.geometry import spacing
from eutely.plots import compute
from eutely.report.words import unit_of
from eutely.results import Report, Shown

STEPS = 65534
"""Positions are whole numbers of 0 .. STEPS along each axis, which is finer than any screen."""

UNKNOWN = 255
"""Stands for a confidence that is not known; known confidences are 0 .. 250."""

SURE = 0.9
"""Nuclei with at least this confidence are sent without alternatives."""

SMALLEST_SHARE = 0.01
"""Alternatives less likely than this are not sent."""

MOST_ALTERNATIVES = 3
"""Number of alternatives that are sent for a nucleus."""


def packed(values: NDArray[Any], kind: str) -> str:
    """Return ``values`` as base64 of little-endian numbers of NumPy's type ``kind``."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def page_data(atlas: Atlas, report: Report, kept: Sequence[int] | None = None) -> dict[str, Any]:
    """Return what the scripts need: plain values and packed arrays.

    Arrays of nuclei hold specimens one after another, all or those that are ``kept``; ``starts``
    has the first row of each.
    """
    rows, columns = np.triu_indices(3)
    accuracy = compute.cell_accuracy(atlas, report.specimens)
    confidence = compute.cell_confidence(atlas, report.specimens)
    data: dict[str, Any] = {
        "unit": unit_of(atlas),
        "of": atlas.specimens,
        "spacing": spacing(atlas.means),
        "names": list(atlas.names),
        "groups": compute.cell_groups(atlas.names),
        "colours": packed(compute.mean_colours(atlas), "u1"),
        "means": packed(atlas.means, "f4"),
        "covariances": packed(atlas.covariances[:, rows, columns], "f4"),
        "spread": packed(compute.spreads(atlas), "f4"),
        "seen": packed(atlas.seen, "i4"),
        "rare": packed(atlas.rare, "u1"),
        "accuracy": packed(accuracy, "f4") if np.isfinite(accuracy).any() else "",
        "confidence": packed(confidence, "f4") if np.isfinite(confidence).any() else "",
        "specimens": [],
    }
    if report.specimens:
        numbers = range(len(report.specimens)) if kept is None else kept
        data |= _nuclei([report.specimens[number] for number in numbers])
    return data


def _nuclei(specimens: Sequence[Shown]) -> dict[str, Any]:
    positions = np.concatenate([shown.positions for shown in specimens])
    known = np.isfinite(positions).all(axis=1)
    low = positions[known].min(axis=0) if known.any() else np.zeros(3)
    step = (np.ptp(positions[known], axis=0) if known.any() else np.ones(3)) / STEPS
    step = np.where(step > 0, step, 1.0)
    whole = np.rint((np.where(known[:, None], positions, low) - low) / step)
    lexicon, truth = _true_names(specimens)
    return {
        "specimens": [
            {
                "name": shown.name,
                "consistency": None if np.isnan(shown.consistency) else float(shown.consistency),
                "outlier": shown.outlier,
                "note": shown.note,
            }
            for shown in specimens
        ],
        "starts": np.cumsum([0, *map(len, specimens)]).tolist(),
        "low": low.tolist(),
        "step": step.tolist(),
        "places": packed(whole, "u2"),
        "cells": packed(np.concatenate([shown.cells for shown in specimens]), "i4"),
        "sure": packed(np.concatenate([_bytes(shown.confidence) for shown in specimens]), "u1"),
        # Numbers of JavaScript are doubles: whole numbers up to 2^53 are exact.
        "ids": packed(np.concatenate([shown.ids for shown in specimens]), "f8"),
        "lexicon": lexicon,
        "others": _alternatives(specimens),
        "truth": packed(truth, "i4") if lexicon else "",
        "own": _own(specimens),
    }


def _own(specimens: Sequence[Shown]) -> str:
    """Return the colours of all nuclei, black where not known; "" where none has any."""
    if not any(len(shown.colours) for shown in specimens):
        return ""
    given = [
        shown.colours if len(shown.colours) else np.zeros((len(shown), 3), np.uint8)
        for shown in specimens
    ]
    return packed(np.concatenate(given), "u1")


def _alternatives(specimens: Sequence[Shown]) -> dict[int, list[list[int]]]:
    """Return other cells of uncertain nuclei: nucleus -> (cell, percent), likeliest first."""
    result: dict[int, list[list[int]]] = {}
    start = 0
    for shown in specimens:
        for row, alternatives in enumerate(shown.alternatives):
            likely = [
                [cell, round(100 * share)]
                for cell, share in alternatives
                if share >= SMALLEST_SHARE
            ]
            # An unknown confidence (NaN) counts as uncertain.
            if likely and not shown.confidence[row] >= SURE:
                result[start + row] = likely[:MOST_ALTERNATIVES]
        start += len(shown)
    return result


def _bytes(confidence: NDArray[np.float64]) -> NDArray[np.uint8]:
    known = np.isfinite(confidence)
    scaled = np.rint(250 * np.clip(np.where(known, confidence, 0), 0, 1))
    return np.where(known, scaled, UNKNOWN).astype(np.uint8)


def _true_names(specimens: Sequence[Shown]) -> tuple[list[str], NDArray[np.int64]]:
    """Return all true names as people spell them, and for each nucleus the number of its name.

    The number is -1 where the true name is not known.
    """
    numbers: dict[str, int] = {}
    rows = []
    for shown in specimens:
        for name in shown.names or ("",) * len(shown):
            plain = comparable(name)
            rows.append(numbers.setdefault(plain, len(numbers)) if plain else -1)
    spelt = spellings(shown.names for shown in specimens)
    return [spelt[name] for name in numbers], np.array(rows, dtype=np.int64)
