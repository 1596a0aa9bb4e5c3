"""Two groups of simulated animals with true names, some cells of the second one changed."""

from dataclasses import replace

import numpy as np

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import estimate
from eutely.frame import Body
from eutely.geometry import spacing
from eutely.simulation import simulate
from eutely.specimen import Specimen

MOVED, ENLARGED, LOST = 11, 23, 37
"""Cells of the second group that are shifted, enlarged, and lost in most animals."""


def toy_groups(
    size: int = 8, cells: int = 60, shift: float = 1.5, seed: int = 3
) -> tuple[Atlas, dict[str, list[Specimen]]]:
    """Return an atlas and groups "control" and "mutant" of ``size`` animals each.

    In mutants cell ``MOVED`` lies ``shift`` spacings further ahead, ``ENLARGED`` has 1.5 times the
    radius, and ``LOST`` is missing in all but two.
    """
    worms = simulate(2 * size + 8, cells=cells, seed=seed, pose="none", variation=0.6)
    names = sorted(set(worms[0].names or ()))
    places = np.array([worm.centroids[_rows(worm, names)] for worm in worms])
    middle = places.mean(axis=(0, 1))
    body = Body(np.array([300.0, 30.0]), 13.0)
    atlas = replace(estimate(places - middle, body, Estimate()), unit="um").named(names)
    distance = spacing(atlas.means)
    animals = [replace(worm, centroids=worm.centroids - middle) for worm in worms[: 2 * size]]
    mutants = []
    for number, worm in enumerate(animals[size:]):
        rows = _rows(worm, names)
        centroids, radii = worm.centroids.copy(), worm.radii.copy()
        centroids[rows[MOVED], 0] += shift * distance
        radii[rows[ENLARGED]] *= 1.5
        kept = np.ones(len(worm), dtype=bool)
        kept[rows[LOST]] = number < 2
        mutants.append(replace(worm, centroids=centroids, radii=radii).take(kept))
    return atlas, {"control": animals[:size], "mutant": mutants}


def _rows(worm: Specimen, names: list[str]) -> list[int]:
    assert worm.names is not None
    return [worm.names.index(name) for name in names if name in worm.names]


def true_annotations(
    atlas: Atlas, groups: dict[str, list[Specimen]], confidence: float = 0.95
) -> dict[str, list[Annotation]]:
    """Return annotations by true names, in place as the animals are."""

    def annotated(worm: Specimen) -> Annotation:
        cells = np.array([atlas.names.index(name) for name in worm.names or ()], np.int32)
        sure = np.full(len(worm), confidence)
        nothing = ((),) * len(worm)
        return Annotation(
            worm.name, worm.ids, cells, worm.names or (), sure, nothing, 0.0, worm.centroids
        )

    return {label: [annotated(worm) for worm in worms] for label, worms in groups.items()}
