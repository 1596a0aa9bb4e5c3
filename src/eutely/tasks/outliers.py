"""Specimens that do not fit an atlas: another organism, another scale, a broken segmentation."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import NOT_CLEAR, UNCLEAR, Annotation
from eutely.fit.evidence import PLACED

log = logging.getLogger("eutely")

FAR = 6.0
"""Robust standard deviations from the cohort at which a specimen's cost is no chance."""

EXCESS = 0.223
"""Difference by which the cost of a specimen, a log-density per cell, must be above the cohort's as
well (its densities 1.25 times as low): a cohort of very similar specimens has no outliers."""

FEW = 0.5
"""Share of the cells, found or confirmed, below which a specimen does not fit in any case."""

DOUBTFUL = 0.2
"""Probability of lying right below which a specimen is hardly placed."""

MORE = 2.0
"""How many times as probable as usual another handedness is in a specimen that is called doubtful,
where sides are alike in all."""

COHORT = 5
"""Specimens that are needed to say what is usual."""


def outliers(
    fits: Sequence[Annotation],
    cells: int,
    consistency: NDArray[np.float64] | None = None,
    *,
    parts: bool = False,
) -> dict[str, str]:
    """Return the specimens that are unlike the others -> in which way.

    Parameters
    ----------
    fits
        all specimens, matched with one atlas.
    cells
        how many it has.
    consistency
        for each the share of its cells that the atlas confirms, if it was built from them.
    parts
        whether specimens may show parts of the body: then few nuclei are nothing unusual.
    """
    whole = [fit for fit in fits if fit.view is None]
    costs = np.array([fit.cost for fit in whole or fits])
    middle = float(np.median(costs))
    scatter = 1.4826 * float(np.median(np.abs(costs - middle)))
    unlike: dict[str, str] = {}
    for number, fit in enumerate(fits):
        # Costs are log-densities: their difference is what counts, their zero means nothing.
        worse = len(whole) >= COHORT and fit.cost > middle + max(FAR * scatter, EXCESS)
        if fit.support is not None and fit.support < PLACED:
            unlike[fit.specimen] = (
                f"could not be placed: the atlas explains its {len(fit.ids)} nuclei no better than "
                "chance; is it of another organism, or badly segmented?"
            )
        elif fit.placed is not None and fit.placed < DOUBTFUL:
            unlike[fit.specimen] = (
                "is hardly placed: its nuclei lie much worse than those of specimens of the atlas; "
                "is it of another age or organism, or badly segmented?"
            )
        elif fit.view is not None:  # few nuclei, and a cost of its own, are those of a part
            continue
        elif not parts and not FEW <= len(fit.ids) / cells <= 1 / FEW:
            unlike[fit.specimen] = (
                f"has {len(fit.ids)} nuclei, the atlas {cells} cells; is it of another organism, "
                "or badly segmented?"
            )
        elif consistency is not None and consistency[number] < FEW:
            unlike[fit.specimen] = (
                f"does not fit the atlas: only {consistency[number]:.0%} of its cells are "
                "confirmed; is it of another organism, or badly segmented?"
            )
        elif worse:
            unlike[fit.specimen] = (
                f"fits the atlas worse than the others (cost {fit.cost:.2f} a cell, "
                f"the cohort has {middle:.2f}); is it of another organism, or badly segmented?"
            )
    return unlike


def warn(unlike: Mapping[str, str]) -> None:
    """Log a warning for each specimen of `outliers`."""
    for specimen, why in unlike.items():
        log.warning("%s %s", specimen, why)


def warn_unsettled(names: Sequence[str], total: int) -> None:
    """Log a warning of the specimens, of so many, that fit nowhere in the others."""
    if names:
        count = f"{len(names)} of {total} specimens fit nowhere in the others"
        log.warning("%s: %s", count, ", ".join(names))


def unclear_hands(fits: Sequence[Annotation]) -> list[str]:
    """Return the specimens whose handedness is not clear, those most in doubt first."""
    unclear = [fit for fit in fits if fit.other_hand >= UNCLEAR]
    unclear.sort(key=lambda fit: (-fit.other_hand, fit.specimen))
    return [fit.specimen for fit in unclear]


def sides_alike(fits: Sequence[Annotation]) -> bool:
    """Return whether the handedness of no specimen is clear."""
    return len(unclear_hands(fits)) == len(fits)


def doubtful_hands(fits: Sequence[Annotation]) -> list[str]:
    """Return the specimens that may be mirror images, those most in doubt first.

    Where sides are alike in all, these are the ones that are more in doubt than most.
    """
    unclear = unclear_hands(fits)
    if not sides_alike(fits):
        return unclear
    usual = float(np.median([fit.other_hand for fit in fits]))
    apart = {fit.specimen for fit in fits if fit.other_hand > MORE * usual}
    return [name for name in unclear if name in apart]


def warn_of_hands(fits: Sequence[Annotation]) -> None:
    """Log a warning of the specimens of `doubtful_hands`."""
    if doubtful := doubtful_hands(fits):
        log.warning("%s: %s", NOT_CLEAR, ", ".join(doubtful))
