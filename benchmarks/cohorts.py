"""Annotated worms for `compare.py`: as they are, changed in some cells, bent or scaled as a batch.

Annotations take most of the time, and do not depend on how groups are compared: they are kept in
the folder ``EUTELY_CACHE`` (by default one for temporary files), under a hash of the specimens and
of the code that names them.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import eutely
from eutely import Annotation, Atlas, Specimen, annotate
from eutely.evaluation import comparable
from eutely.geometry import spacing
from worms import worms

CACHE = Path(os.environ.get("EUTELY_CACHE", Path(tempfile.gettempdir()) / "eutely-compare"))

CHANGED = 30
"""Cells that are shifted; half as many are dropped, and half as many enlarged."""

DROPPED, ENLARGED = 0.5, 1.25
"""Probability of a cell to be dropped in an animal, and factor on radii."""

BATCH_SIZE = 40
"""Training worms that are deformed as a batch."""

BATCHES = ("bend", "stretch", "warp", "scale")

METHOD = ("align", "costs", "find", "fit", "pose", "solver")
"""Rooms of the package that name specimens."""

Points = NDArray[np.float64]


@cache
def built_in() -> Atlas:
    return Atlas.load("celegans-l1")


class Changed(NamedTuple):
    """Animals of which some cells were changed before they were annotated."""

    specimens: list[Specimen]
    cells: NDArray[np.int64]


def annotations(specimens: Sequence[Specimen], atlas: Atlas | None = None) -> list[Annotation]:
    """Annotate specimens, each by itself, or take what was kept."""
    chosen = built_in() if atlas is None else atlas
    wanted = [CACHE / f"{_key(chosen, specimen)}.npz" for specimen in specimens]
    missing = [number for number, path in enumerate(wanted) if not path.exists()]
    CACHE.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(missing), 10):
        part = missing[start : start + 10]
        renamed = [replace(specimens[k], name=f"{k:06d}") for k in part]
        for number, one in zip(
            part, annotate(chosen, renamed, adapt=False, workers=1), strict=True
        ):
            keep(wanted[number], one)
        print(f"annotated {start + len(part)} of {len(missing)}", file=sys.stderr, flush=True)
    return [kept(path, specimen, chosen) for path, specimen in zip(wanted, specimens, strict=True)]


@cache
def _method() -> bytes:
    """Return a hash of the code that names specimens."""
    package = Path(eutely.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] in METHOD:
            digest.update(path.read_bytes())
    return digest.digest()


def _key(atlas: Atlas, specimen: Specimen) -> str:
    digest = hashlib.sha256(atlas.means.tobytes() + _method())
    for values in (specimen.ids, specimen.centroids, np.nan_to_num(specimen.radii, nan=-1.0)):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:24]


def keep(path: Path, annotation: Annotation) -> None:
    rows = [
        (nucleus, cell, share)
        for nucleus, others in enumerate(annotation.alternatives)
        for cell, share in others
    ]
    aside = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")
    np.savez_compressed(
        aside,
        cells=annotation.cells,
        confidence=annotation.confidence,
        places=annotation.places,
        others=np.array(rows, dtype=np.float64).reshape(-1, 3),
        single=np.array([annotation.cost, annotation.mirrored,
                         np.nan if annotation.support is None else annotation.support]),
    )  # fmt: skip
    aside.replace(path)


def kept(path: Path, specimen: Specimen, atlas: Atlas) -> Annotation:
    stored = np.load(path)
    others: list[list[tuple[int, float]]] = [[] for _ in range(len(specimen))]
    for nucleus, cell, share in stored["others"].tolist():
        others[int(nucleus)].append((int(cell), share))
    cost, mirrored, support = stored["single"].tolist()
    cells = stored["cells"]
    return Annotation(
        specimen.name,
        specimen.ids,
        cells,
        tuple(atlas.names[cell] if cell >= 0 else "" for cell in cells),
        stored["confidence"],
        tuple(map(tuple, others)),
        cost,
        stored["places"],
        bool(mirrored),
        None,
        None if np.isnan(support) else support,
    )


def frame_map(specimen: Specimen, annotation: Annotation) -> Points:
    """Return (3, 3), the linear part of the map from the frame of the atlas to the specimen."""
    design = np.column_stack([np.ones(len(specimen)), annotation.places])
    fitted, *_ = np.linalg.lstsq(design, specimen.centroids, rcond=None)
    return fitted[1:].T


def named_rows(specimen: Specimen) -> dict[str, int]:
    return {comparable(name): row for row, name in enumerate(specimen.names or ()) if name}


def shifted(base: Sequence[Specimen], distance: float, seed: int) -> Changed:
    """Shift ``CHANGED`` random cells, each in a direction that all animals share."""
    atlas = built_in()
    random = np.random.default_rng(seed)
    cells = np.sort(random.choice(np.flatnonzero(np.array(atlas.names) != ""), CHANGED, False))
    ways = random.standard_normal((CHANGED, 3))
    ways *= distance * spacing(atlas.means) / np.linalg.norm(ways, axis=1)[:, None]
    moved = []
    for specimen, annotation in zip(base, annotations(base), strict=True):
        to_specimen, rows = frame_map(specimen, annotation), named_rows(specimen)
        centroids = specimen.centroids.copy()
        for cell, way in zip(cells.tolist(), ways, strict=True):
            row = rows.get(comparable(atlas.names[cell]))
            if row is not None:
                centroids[row] += to_specimen @ way
        moved.append(replace(specimen, centroids=centroids))
    return Changed(moved, cells)


def dropped_and_enlarged(base: Sequence[Specimen], seed: int) -> tuple[list[Specimen], Points]:
    """Drop random cells in half of the animals, and enlarge others; cells (2, CHANGED / 2)."""
    atlas = built_in()
    random = np.random.default_rng(seed + 1000)
    named = np.flatnonzero(np.array(atlas.names) != "")
    cells = random.choice(named, CHANGED, False).reshape(2, -1)
    result = []
    for specimen in base:
        rows = named_rows(specimen)
        radii = specimen.radii.copy()
        kept_rows = np.ones(len(specimen), dtype=bool)
        for cell in cells[0].tolist():
            row = rows.get(comparable(atlas.names[cell]))
            if row is not None and random.random() < DROPPED:
                kept_rows[row] = False
        for cell in cells[1].tolist():
            row = rows.get(comparable(atlas.names[cell]))
            if row is not None:
                radii[row] *= ENLARGED
        result.append(replace(specimen, radii=radii).take(kept_rows))
    return result, cells


def batch(base: Sequence[Specimen], kind: str) -> list[Specimen]:
    """Bend, stretch, warp or scale all animals alike."""
    return [replace(one, centroids=_deformed(one.centroids, kind), radii=_sizes(one, kind))
            for one in base]  # fmt: skip


def _sizes(specimen: Specimen, kind: str) -> Points:
    return specimen.radii * {"scale": 1.15, "stretch": 1.1 ** (1 / 3)}.get(kind, 1.0)


def _deformed(points: Points, kind: str) -> Points:
    """Return deformed points; the body lies along x."""
    if kind == "scale":
        return points * 1.15
    if kind == "stretch":
        return points * np.array([1.1, 1.0, 1.0])
    middle = points.mean(axis=0)
    apart = points - middle
    length = np.ptp(points[:, 0])
    if kind == "bend":  # a circle of 40 degrees
        radius = length / np.radians(40.0)
        angle = apart[:, 0] / radius
        out = radius + apart[:, 1]
        return middle + np.column_stack([out * np.sin(angle), out * np.cos(angle) - radius,
                                         apart[:, 2]])  # fmt: skip
    along = apart[:, 0] / length  # a twist of 15 degrees and waves of a hundredth of the length
    turn = np.radians(15.0) * 2 * along
    y = apart[:, 1] * np.cos(turn) - apart[:, 2] * np.sin(turn)
    z = apart[:, 1] * np.sin(turn) + apart[:, 2] * np.cos(turn)
    wave = 0.01 * length
    return middle + np.column_stack([
        apart[:, 0] + wave * np.sin(3 * np.pi * along), y + wave * np.sin(2 * np.pi * along), z,
    ])  # fmt: skip


def halves(
    seed: int, most: int = 50, which: str = "test2"
) -> tuple[list[Specimen], list[Specimen]]:
    """Return two random halves of a set of worms, at most ``most`` in the second."""
    everyone = worms(which)
    chosen = [everyone[k] for k in np.random.default_rng(seed).permutation(len(everyone)).tolist()]
    half = len(chosen) // 2
    return chosen[:half], chosen[half : half + most]
