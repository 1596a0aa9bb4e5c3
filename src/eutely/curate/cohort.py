"""The specimens of a folder; each is placed by the atlas of its series when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.curate.placed import Placed, placed
from eutely.features import scores
from eutely.fit.model import Model, model_of_atlas
from eutely.geometry import folds
from eutely.origin import origin_of
from eutely.results import Shown
from eutely.series.shared import FOLDS, SERIES, shifted
from eutely.specimen import Specimen


class Cohort:
    """Annotated specimens and their atlas.

    Attributes
    ----------
    atlas
        that the specimens were annotated with.
    shown
        the specimens as they were annotated.
    specimens
        the same with their features; fewer where these are not known.
    """

    def __init__(
        self,
        atlas: Atlas,
        shown: Sequence[Shown],
        specimens: Mapping[str, Specimen] | None = None,
    ) -> None:
        self.atlas = atlas
        self.shown = tuple(shown)
        self.specimens = dict(specimens or {})
        self.number = {one.name: number for number, one in enumerate(self.shown)}
        # As `annotate` does: specimens of one series show each other where their cells are.
        self._series = len(self.shown) >= SERIES
        self._fold = folds(len(self.shown), FOLDS)
        self._models: dict[tuple[int, str], Model] = {}
        self._placed: dict[str, Placed] = {}
        self._lock = threading.Lock()

    def placed(self, name: str) -> Placed:
        """Return a specimen without pins, placed by the atlas of its series."""
        with self._lock:
            if name not in self._placed:
                one = self.shown[self.number[name]]
                self._placed[name] = placed(
                    self.atlas, one, self.specimens.get(name), self._model(self.number[name])
                )
            return self._placed[name]

    def replace(self, shown: Shown) -> None:
        """Take another annotation of a specimen, one that lies differently."""
        with self._lock:
            number = self.number[shown.name]
            self.shown = (*self.shown[:number], shown, *self.shown[number + 1 :])
            self._placed.pop(shown.name, None)

    def _model(self, number: int) -> Model:
        """Return the cells as specimens of that origin, and of other folds, have them."""
        fold = int(self._fold[number]) if self._series else 0
        specimen = self.specimens.get(self.shown[number].name)
        origin = "" if specimen is None else origin_of(specimen)
        if (fold, origin) not in self._models:
            atlas = self.atlas.of_origin(origin)
            if self._series:
                others = [one for one, at in zip(self.shown, self._fold, strict=True) if at != fold]
                atlas = moved(atlas, others, self.specimens)
            self._models[fold, origin] = model_of_atlas(atlas)
        return self._models[fold, origin]


def moved(
    atlas: Atlas,
    shown: Sequence[Shown],
    specimens: Mapping[str, Specimen],
) -> Atlas:
    """Return an atlas shifted to annotated specimens."""
    places = [by_cell(atlas, one.cells, one.positions) for one in shown]
    unknown = np.full((len(atlas), len(atlas.features)), np.nan)
    values = [
        by_cell(atlas, one.cells, scores(specimens[one.name], atlas.features))
        if one.name in specimens
        else unknown
        for one in shown
    ]
    return shifted(atlas, np.stack(places), np.stack(values)) if shown else atlas


def by_cell(
    atlas: Atlas, cells: NDArray[np.int32], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (m, d) from ``values`` (n, d) of nuclei that are ``cells`` (n,); NaN without one."""
    table = np.full((len(atlas), values.shape[1]), np.nan)
    matched = cells != UNMATCHED
    table[cells[matched]] = values[matched]
    return table
