"""Specimens that do not fit an atlas: another organism, another scale, a broken segmentation."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation

log = logging.getLogger("eutely")

FAR = 6.0
"""Robust standard deviations from the cohort at which a specimen's cost is no chance."""

EXCESS = 1.25
"""Factor by which the cost must be above the cohort's as well: a tight cohort has no outliers."""

FEW = 0.5
"""Share of the cells, found or confirmed, below which a specimen does not fit in any case."""

COHORT = 5
"""Specimens that are needed to say what is usual."""


def outliers(
    fits: Sequence[Annotation], cells: int, consistency: NDArray[np.float64] | None = None
) -> dict[str, str]:
    """Return which specimens are unlike the others, and in which way.

    Parameters
    ----------
    fits
        all specimens, matched with one atlas.
    cells
        how many it has.
    consistency
        for each the share of its cells that the atlas confirms, if it was built from them.
    """
    costs = np.array([fit.cost for fit in fits])
    middle = float(np.median(costs))
    scatter = 1.4826 * float(np.median(np.abs(costs - middle)))
    found: dict[str, str] = {}
    for number, fit in enumerate(fits):
        # Costs are log-densities: their difference is what counts, their zero means nothing.
        worse = len(fits) >= COHORT and fit.cost > middle + max(FAR * scatter, np.log(EXCESS))
        if not FEW <= len(fit.ids) / cells <= 1 / FEW:
            found[fit.specimen] = (
                f"has {len(fit.ids)} nuclei, the atlas {cells} cells; is it of another organism, "
                "or badly segmented?"
            )
        elif consistency is not None and consistency[number] < FEW:
            found[fit.specimen] = (
                f"does not fit the atlas: only {consistency[number]:.0%} of its cells are "
                "confirmed; is it of another organism, or badly segmented?"
            )
        elif worse:
            found[fit.specimen] = (
                f"fits the atlas worse than the others (cost {fit.cost:.2f} a cell, "
                f"the cohort has {middle:.2f}); is it of another organism, or badly segmented?"
            )
    return found


def warn(unlike: Mapping[str, str]) -> None:
    """Report what `outliers` found."""
    for specimen, why in unlike.items():
        log.warning("%s %s", specimen, why)
