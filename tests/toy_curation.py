"""A small folder of annotated specimens to curate, made without annotating anything."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from eutely.atlas import Atlas
from eutely.curate.folder import annotation_of
from eutely.io.annotations import write_annotations
from eutely.io.sources import Files, write_files
from eutely.io.volumes import write_volume
from eutely.results import Report, Shown
from eutely.specimen import Specimen
from eutely.tasks.outputs import write_annotated_page
from toy_reports import toy_cohort

EVIL = "<img src=x onerror=document.title='hacked'>"
"""A name that must stay text."""

VOXEL = 3.0
"""Side of a voxel of the toy volumes, micrometres."""


def toy_folder(
    path: Path, specimens: int = 3, cells: int = 40, *, evil: bool = False, volumes: bool = False
) -> Path:
    """Write a folder as ``eutely annotate`` leaves it.

    ``evil`` gives cell 0 a name that is HTML, ``volumes`` adds label volumes and images.
    """
    atlas, shown = toy_cohort(specimens, cells)
    if evil:
        atlas = atlas.named([EVIL, *atlas.names[1:]])
    corner = np.min([one.positions.min(axis=0) for one in shown], axis=0) - 10.0
    worms = [
        Specimen.from_arrays(one.name, one.positions - corner, ids=one.ids, unit="um")
        for one in shown
    ]
    shown = tuple(
        replace(one, names=(), outlier="", alternatives=((),) * len(one), cells=near(atlas, one))
        for one in shown
    )
    path.mkdir(parents=True, exist_ok=True)
    annotations = [annotation_of(atlas, one) for one in shown]
    write_annotations(annotations, atlas.names, path, specimens=worms)
    write_annotated_page(path, atlas, Report("annotate", specimens=shown))
    if volumes:
        write_files(path, _volumes(path, worms))
    return path


def near(atlas: Atlas, one: Shown) -> np.ndarray:
    """Return the true cells of a toy specimen."""
    number = {name: cell for cell, name in enumerate(atlas.names)}
    cells = [number.get(name, 0) for name in one.names]
    return np.array(cells, np.int32)


def _volumes(path: Path, worms: list[Specimen]) -> Files:
    labels, images = {}, {}
    for worm in worms:
        voxels = np.rint(worm.centroids / VOXEL).astype(int)
        volume = np.zeros(voxels.max(axis=0)[::-1] + 4, np.uint16)
        for (x, y, z), id_ in zip(voxels, worm.ids, strict=True):
            volume[z - 1 : z + 2, y - 1 : y + 2, x - 1 : x + 2] = id_
        labels[worm.name] = str(path / f"{worm.name}.tif"), ""
        images[worm.name] = str(path / f"{worm.name}-raw.tif")
        write_volume(volume, labels[worm.name][0], VOXEL)
        write_volume((volume > 0).astype(np.uint16) * 100 + 5, images[worm.name], VOXEL)
    return Files(labels, images)
