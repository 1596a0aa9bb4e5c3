"""Which specimens of a large cohort the page carries: it must stay small enough to open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eutely.report.words import Check
from eutely.results import Report

MOST_NUCLEI = 150_000
"""Nuclei that a page carries, about 35 bytes each; figures and tables are about all of them."""


def sampled(report: Report) -> tuple[int, ...]:
    """Return the specimens whose nuclei the page carries, all where they are few enough.

    Outliers come first, then the rest from the least to the most consistent at even steps: what
    should be looked at is there, and what is usual is represented.
    """
    sizes = [len(shown) for shown in report.specimens]
    if sum(sizes) <= MOST_NUCLEI:
        return tuple(range(len(sizes)))
    consistency = np.nan_to_num([shown.consistency for shown in report.specimens], nan=1.0)
    by_rank = np.argsort(consistency, kind="stable").tolist()
    outliers = [number for number in by_rank if report.specimens[number].outlier]
    usual = [number for number in by_rank if not report.specimens[number].outlier]
    room = MOST_NUCLEI - sum(sizes[number] for number in outliers)
    count = int(max(room, 0) / np.mean(sizes))
    even = np.linspace(0, len(usual) - 1, min(count, len(usual))).round().astype(int)
    wanted = [*outliers, *(usual[at] for at in np.unique(even).tolist())]
    kept: list[int] = []
    total = 0
    for number in wanted:
        if kept and total + sizes[number] > MOST_NUCLEI:
            continue
        kept.append(number)
        total += sizes[number]
    return tuple(sorted(kept))


def with_specimens(report: Report, kept: Sequence[int]) -> Report:
    """Return a report of some of its specimens."""
    return replace(report, specimens=tuple(report.specimens[number] for number in kept))


def among(checks: Sequence[Check], kept: Sequence[int]) -> list[Check]:
    """Return checks that point to specimens by their numbers among those that are kept."""
    numbers = {number: at for at, number in enumerate(kept)}
    return [
        check._replace(specimens=tuple(numbers[one] for one in check.specimens if one in numbers))
        for check in checks
    ]
