"""What a build leaves in its folder besides the atlas: cliques, parameters, the report."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eutely.config import Config, to_toml
from eutely.evaluation import pre_atlas
from eutely.store.folder import RunFolder, versions
from eutely.io.whole import whole
from eutely.tasks.learned import chosen_of, trials_of
from eutely.tasks.story import Facts, names_of, write_page

if TYPE_CHECKING:
    from eutely.tasks.build import Built


def write_results(built: Built, settings: Config, run: RunFolder, command: str) -> None:
    """Write ``cliques.csv``, ``parameters.json`` and the report."""
    with whole(run.path / "cliques.csv") as aside, aside.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("specimen", "id", "cell"))
        for specimen, cells in zip(built.specimens, built.cells, strict=True):
            order = np.argsort(specimen.ids)
            for id_, cell in zip(specimen.ids[order].tolist(), cells[order].tolist(), strict=True):
                writer.writerow((specimen.name, id_, "" if cell < 0 else cell))
    with whole(run.path / "parameters.json") as aside:
        text = json.dumps(parameters(built), indent=2, sort_keys=True)
        aside.write_text(text + "\n", encoding="utf-8")
    named = any(one.names for one in built.specimens)
    facts = Facts(
        "build",
        built.fits,
        built.cells,
        names_of(built.specimens),
        built.consistency(),
        built.unlike,
        pre_atlas(built.specimens, built.cells).scores if named else (),
        {
            "parameters": parameters(built),
            "timings": list(run.timings().items()),
            "versions": versions(),
            "config": to_toml(settings),
            "command": command,
            "trials": [] if built.learned is None else trials_of(built.learned),
            "chosen": {} if built.learned is None else chosen_of(built.learned),
        },
    )
    write_page(run.path, built.atlas, facts)


def parameters(built: Built) -> dict[str, object]:
    """Return what was learned about the cohort as a whole; lengths in the unit of the atlas."""
    atlas = built.atlas

    def variances(covariances: NDArray[np.float64]) -> list[float] | None:
        typical = np.median(np.diagonal(covariances, axis1=1, axis2=2), axis=0)
        return [float(value) for value in typical] if np.isfinite(typical).all() else None

    learned = {} if built.learned is None else {"learned": built.learned.parameters.as_dict()}
    return learned | {
        "unit": atlas.unit,
        "cells": len(atlas),
        "specimens": atlas.specimens,
        "length": float(atlas.size[0]),
        "width": float(atlas.size[1]),
        "centroid_variances": variances(atlas.covariances),
        "radius_variances": variances(atlas.radius_covariances),
        "offset_variances": variances(atlas.offset_covariances),
        "conditional_variances": variances(atlas.conditionals),
    }
