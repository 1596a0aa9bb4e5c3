"""A specimen in the frame of an atlas, matched again around more and more pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import NucleusCells
from eutely.atlas import Atlas
from eutely.candidates import PairCosts
from eutely.cliques import UNMATCHED
from eutely.costs.near import FREE, NOBODYS
from eutely.features import scores
from eutely.fit.match import Fit, error_of, in_view, match_jointly, term_costs
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.posterior import nucleus_cells
from eutely.fit.refit import match_around
from eutely.frame import Points
from eutely.results import Shown
from eutely.solver.softassign import squared_distances
from eutely.specimen import Specimen

WHOLE = 0.9
"""Share of the usual number of cells from which a specimen shows the whole body."""

FAR, FAR_PINS = 30.0, 3
"""Squared distance, in variances, from which a pinned nucleus is far from its cell, and how many
such pins show that the specimen lies wrong as a whole."""


@dataclass(frozen=True, eq=False)
class Placed:
    """One specimen of ``n`` nuclei, and what they are given its pins.

    Attributes
    ----------
    name
        of the individual.
    ids
        (n,) int64, as in the input.
    model
        the ``m`` cells.
    fit
        to the cells, around the pins.
    pins
        (n,) int32, the cell that each nucleus must be, see `eutely.solver.softassign.Rules`.
    trust
        probability that the specimen lies right at all, as long as no pin shows it.
    """

    name: str
    ids: NDArray[np.int64]
    model: Model
    fit: Fit
    pins: NDArray[np.int32]
    trust: float = 1.0
    unpinned: Placed | None = field(default=None, repr=False)
    """the same specimen without pins; None for this one itself."""

    @property
    def first(self) -> Placed:
        """The same specimen without pins."""
        return self.unpinned or self

    @cached_property
    def nuclei(self) -> NucleusCells:
        """Cell, confidence and alternatives of each nucleus; a pinned one is certain."""
        agreed = self.pins[self.pins != FREE] == self.first_cells[self.pins != FREE]
        nuclei = nucleus_cells([self.fit], trust=1.0 if agreed.any() else self.trust)
        return nuclei._replace(confidence=np.where(self.pins >= 0, 1.0, nuclei.confidence))

    @property
    def first_cells(self) -> NDArray[np.int32]:
        """(n,), the cells of the nuclei without pins; no cell is `NOBODYS`, as in pins."""
        cells = np.full(len(self.ids), NOBODYS, np.int32)
        matched = np.flatnonzero(self.first.fit.nuclei >= 0)
        cells[self.first.fit.nuclei[matched]] = matched
        return cells

    @cached_property
    def terms(self) -> PairCosts | None:
        """Costs of features and odd nuclei, as they are without pins."""
        if self.unpinned is not None:
            return self.unpinned.terms
        fit = self.fit
        return term_costs(self.model if fit.view is None else self.model.through(fit.view), fit)

    @property
    def sure(self) -> NDArray[np.float64]:
        """(n,), probability of what is shown: being the cell, or being no cell."""
        nuclei = self.nuclei
        sure = np.where(
            nuclei.cells == UNMATCHED, 1 - nuclei.other_shares.sum(axis=1), nuclei.confidence
        )
        return np.where(self.pins == FREE, np.clip(sure, 0.0, 1.0), 1.0)

    @property
    def lies_wrong(self) -> bool:
        """Whether pins contradict the place of the specimen, not of single nuclei only."""
        rows = np.flatnonzero(self.pins >= 0)
        cells = self.pins[rows]
        centres = self.model.loosened(self.fit.error).centres
        apart = squared_distances(
            self.model.means[cells], centres.whitening[cells], self.first.fit.warped[rows]
        )
        return int((apart > FAR).sum()) >= FAR_PINS

    def around(self, pins: Mapping[int, int]) -> Placed:
        """Return the specimen matched again around ``pins``: row -> cell, -1 for no cell."""
        first = self.first
        if not pins:
            return first
        pinned = self.pinned(pins)
        fit = match_around(self.model, first.fit, pinned.pins, first.terms)
        return replace(pinned, fit=fit)

    def pinned(self, pins: Mapping[int, int]) -> Placed:
        """Return the specimen with pins that are not matched yet; see `around`."""
        values = np.full(len(self.ids), FREE, np.int32)
        for row, cell in pins.items():
            values[row] = NOBODYS if cell == UNMATCHED else cell
        return replace(self.first, pins=values, unpinned=self.first)


def placed(
    atlas: Atlas, shown: Shown, specimen: Specimen | None = None, model: Model | None = None
) -> Placed:
    """Return an annotated specimen as it lies in the frame of an atlas.

    Parameters
    ----------
    atlas
        that it was annotated with.
    shown
        where its nuclei lie, and their cells.
    specimen
        the same nuclei in the same order, for their features; None where these are not known.
    model
        of the atlas, shifted to the series of the specimen for instance; None for the atlas itself.
    """
    model = model_of_atlas(atlas) if model is None else model
    features = np.zeros((len(shown), 0)) if specimen is None else scores(specimen, atlas.features)
    fit = fit_at(model, shown.positions, features, shown.cells)
    bare = np.full(len(shown), FREE, np.int32)
    fit = match_jointly(model, fit, refits=1, probabilities=True)
    result = Placed(shown.name, shown.ids, model, fit, bare)
    told, now = np.nansum(shown.confidence), np.nansum(result.nuclei.confidence)
    # Doubt about the place as a whole is doubt about every nucleus, see `fit.evidence.trust`.
    return replace(result, trust=float(min(told / now, 1.0)) if told > 0 and now > 0 else 1.0)


def fit_at(model: Model, places: Points, features: Points, cells: NDArray[np.int32]) -> Fit:
    """Return the fit of nuclei that lie at ``places`` (n, 3) and are ``cells`` (n,), or -1."""
    nuclei = np.full(len(model.means), UNMATCHED, np.int32)
    rows = np.flatnonzero(cells != UNMATCHED)
    nuclei[cells[rows]] = rows
    places = np.ascontiguousarray(places)
    background = model.background
    part = len(places) < WHOLE * float(background.presence.sum())
    return Fit(
        places,
        places,
        features,
        nuclei,
        np.inf,
        background.rates(nuclei, len(places)),
        error_of(model, places, nuclei),
        view=in_view(model, nuclei, places) if part else None,
    )
