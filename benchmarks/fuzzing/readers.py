"""What eutely reads from a file, and what a second reader of the same format does."""

import csv
import json
import lzma
import math
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from fuzzing import others
from fuzzing.seeds import SIZE, labels

LARGEST = 2**24
"""Voxels up to which contents are compared one by one."""

Content = dict[str, Any]
"""Named arrays and values that are compared."""


def read_eutely(kind: str, path: Path) -> Content:
    """Read a file as the commands do."""
    if kind in {"tiff", "zarr", "hdf5", "nrrd", "npy"}:
        return _volume(path, SIZE if kind == "npy" else None)
    if kind in {"matlab", "exported", "lists", "settings"}:
        return others.read_other(kind, path)
    if kind == "image":
        return _image(path)
    if kind == "dd":
        return _problems(path)
    if kind == "qap":
        return _assignment(path)
    if kind == "atlas":
        return _atlas(path)
    if kind == "run":
        return _run(path)
    from eutely.io.read import read

    size = (0.1, 0.1, 0.5) if path.name.startswith("CD") else None
    (specimen,) = read(path, voxel_size=size)
    return {"ids": specimen.ids, "centroids": specimen.centroids}


def _volume(path: Path, voxel_size: tuple[float, float, float] | None) -> Content:
    from eutely.io.read import read
    from eutely.io.volumes import open_volume

    (specimen,) = read(path, voxel_size=voxel_size)
    content: Content = {"ids": specimen.ids}
    with open_volume(path, voxel_size) as volume:
        if math.prod(volume.shape) <= LARGEST:
            labels = np.zeros(volume.shape, dtype=np.int64)
            for block, (z, y, x) in volume.blocks():
                depth, height, width = block.shape
                labels[z : z + depth, y : y + height, x : x + width] = block
            content["labels"] = labels
    return content


@cache
def _labels() -> Path:
    """Return the label volume to which all seeds of images belong."""
    from eutely.io.volumes import write_volume

    path = Path(mkdtemp()) / "worm.tif"
    write_volume(labels(), path, SIZE)
    return path


def _image(path: Path) -> Content:
    from eutely.io.read import read

    (specimen,) = read(_labels(), image=path, voxel_size=SIZE)
    keys = sorted(key for key in specimen.features if key.endswith(("_mean", "_median")))
    return {"values": np.array([specimen.features[key] for key in keys])}


def _image_at_once(path: Path) -> Content:
    """Read a whole image with the library of its format, and measure it with NumPy."""
    if path.suffix == ".h5":
        import h5py

        with h5py.File(path, "r") as file:
            pixels = file["raw"][()]
    elif path.suffix == ".npy":
        pixels = np.load(path)
    elif path.suffix == ".nrrd":
        import nrrd

        pixels, _ = nrrd.read(str(path), index_order="C")
    elif path.suffix == ".tif":
        from PIL import Image, ImageSequence

        with Image.open(path) as opened:
            planes = [np.array(plane) for plane in ImageSequence.Iterator(opened)]
        pixels = np.stack(planes).reshape(2, *labels().shape)
    else:
        raise ValueError("no second reader")
    ids = np.unique(labels())[1:]
    # in the order of the names: green before red, channel1 before channel2
    order = range(len(pixels)) if path.suffix in {".h5", ".nrrd", ".npy"} else (1, 0)
    rows = []
    for channel in order:
        values = [pixels[channel][labels() == id_] for id_ in ids]
        rows += [[v.mean() for v in values], [np.median(v) for v in values]]
    return {"values": np.array(rows)}


def _nwb_by_h5py(path: Path) -> Content:
    import h5py

    with h5py.File(path, "r") as file:
        table = file["processing/NeuroPAL/NeuroPALSegmentation/NeuroPALNeurons"]
        voxels = table["voxel_mask"][()]
        size = table["imaging_plane/grid_spacing"][()]
        unit = table["imaging_plane/grid_spacing"].attrs["unit"]
        if unit != "micrometers":
            raise ValueError(unit)
        places = np.stack([voxels[axis].astype(float) for axis in "xyz"], axis=1)
        if len(voxels) != len(table["id"]):  # several voxels for each nucleus
            raise ValueError("masks")
        return {"ids": table["id"][()], "centroids": places * size}


def _problems(path: Path) -> Content:
    from eutely.io.dd import read_dd

    content: Content = {}
    for g, h, problem in read_dd(path):
        arrays = problem.arrays
        content[f"{g} {h}"] = np.stack([arrays.owners, arrays.labels, arrays.linear])
        content[f"{g} {h} nodes"] = (problem.n_left, problem.n_right)
    return content


def _assignment(path: Path) -> Content:
    from eutely.io.qap import read_qap

    problem, best = read_qap(path)
    return {"flows": problem.flows, "distances": problem.distances, "best": best}


def _qap_by_hand(path: Path) -> Content:
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("ascii")
    head, rest = text.lstrip().split("\n", 1)
    n, *known = map(float, head.split())
    flows, distances = np.array(rest.split(), dtype=float).reshape(2, int(n), int(n))
    best = max(known) if len(known) == 2 else known[0] if known and known[0] >= 0 else None
    return {"flows": flows, "distances": distances, "best": best}


def _atlas(path: Path) -> Content:
    from eutely.fit.model import model_of_atlas
    from eutely.io.atlas import read_atlas

    atlas = read_atlas(path)
    model_of_atlas(atlas)
    keys = ("means", "covariances", "predictors", "neighbours", "edges", "seen", "conditionals")
    return {key: getattr(atlas, key) for key in keys} | {"freedom": atlas.freedom}


def _run(path: Path) -> Content:
    from eutely.store.folder import open_run

    with open_run(path) as run:
        record = run.get("poses", "0123456789abcdef")
        run.seconds("poses", "0123456789abcdef")
        list(run.journal("learn", "0123456789abcdef"))  # may be shorter: those are done again
        arrays = {} if record is None else dict(record.arrays)
        return {"absent": record is None, "metadata": record and record.metadata, **arrays}


def read_again(kind: str, path: Path) -> Content:
    """Read a file with another reader of its format; any error means that it refuses."""
    if kind in {"matlab", "exported", "lists", "settings"}:
        return others.read_other_again(kind, path)
    readers = {"tiff": _tiff_by_pillow, "zarr": _zarr_by_hand, "hdf5": _hdf5_at_once,
               "nrrd": _nrrd_by_pynrrd, "dd": _dd_by_hand, "qap": _qap_by_hand,
               "atlas": _atlas_by_h5py, "csv": _csv_by_hand, "parquet": _parquet_by_pandas,
               "image": _image_at_once, "nwb": _nwb_by_h5py, "points": _points_by_hand,
               "excel": others.excel_by_openpyxl, "programs": others.programs_by_hand,
               "npy": lambda path: {"labels": np.load(path).astype(np.int64)}}  # fmt: skip
    return readers[kind](path)


def _tiff_by_pillow(path: Path) -> Content:
    from PIL import Image, ImageSequence

    with Image.open(path) as image:
        planes = [np.array(plane) for plane in ImageSequence.Iterator(image)]
    return {"labels": np.stack(planes).astype(np.int64)}


def _zarr_by_hand(path: Path) -> Content:
    from numcodecs import get_codec

    folder = path / "0"
    if (folder / "zarr.json").exists():
        about = json.loads((folder / "zarr.json").read_text())
        side = about["chunk_grid"]["configuration"]["chunk_shape"]
        dtype = np.dtype(about["data_type"])
        codecs = [codec["name"] for codec in about["codecs"]][1:]
        name, between = "c/", "/"
        if "sharding_indexed" in json.dumps(about["codecs"]):
            raise ValueError("shards")
    else:
        about = json.loads((folder / ".zarray").read_text())
        side, dtype = about["chunks"], np.dtype(about["dtype"])
        codecs = [about["compressor"]["id"]] if about["compressor"] else []
        name, between = "", about.get("dimension_separator", ".")
    labels = np.zeros(about["shape"], dtype=np.int64)
    for index in np.ndindex(*(-(-a // b) for a, b in zip(about["shape"], side, strict=True))):
        data = (folder / (name + between.join(map(str, index)))).read_bytes()
        for codec in reversed(codecs):
            data = get_codec({"id": codec}).decode(data)
        at = tuple(slice(i * s, (i + 1) * s) for i, s in zip(index, side, strict=True))
        part = labels[at]
        part[...] = np.frombuffer(data, dtype).reshape(side)[tuple(map(slice, part.shape))]
    return {"labels": labels}


def _hdf5_at_once(path: Path) -> Content:
    import h5py

    with h5py.File(path, "r") as file:
        return {"labels": file["labels"][()].astype(np.int64)}


def _nrrd_by_pynrrd(path: Path) -> Content:
    import nrrd

    labels, _ = nrrd.read(str(path), index_order="C")
    return {"labels": labels.astype(np.int64)}


def _dd_by_hand(path: Path) -> Content:
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("latin-1")
    content: Content = {}
    g, h, rows = 0, 1, {}
    for line in text.split("\n"):
        words = line.split()
        if words[:1] == ["gm"]:
            g, h = int(words[1]), int(words[2])
        elif words[:1] == ["p"]:
            rows = {}
            content[f"{g} {h} nodes"] = (int(words[1]), int(words[2]))
            content[f"{g} {h}"] = rows
        elif words[:1] == ["a"]:
            rows[int(words[1])] = (int(words[2]), int(words[3]), float(words[4]))
    for key, found in content.items():
        if isinstance(found, dict):
            content[key] = np.array(sorted(found.values())).reshape(-1, 3).T
    return content


def _atlas_by_h5py(path: Path) -> Content:
    import h5py

    keys = ("means", "covariances", "predictors", "neighbours", "edges", "seen", "conditionals")
    with h5py.File(path, "r") as file:
        return {key: file[key][()] for key in keys} | {"freedom": float(file.attrs["freedom"])}


def _csv_by_hand(path: Path) -> Content:
    with path.open(newline="", encoding="utf-8-sig") as file:
        found = [row for row in csv.DictReader(file) if any(row.values())]
    ids = {"ids": np.array([int(Decimal(row["id"])) for row in found])} if "id" in found[0] else {}
    return ids | {"centroids": np.array([[float(row[a]) for a in "xyz"] for row in found])}


def _parquet_by_pandas(path: Path) -> Content:
    import pandas as pd

    table = pd.read_parquet(path)
    ids = {"ids": table["id"].to_numpy()} if "id" in table else {}
    return ids | {"centroids": table[["x", "y", "z"]].to_numpy()}


def _points_by_hand(path: Path) -> Content:
    ids, places = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split(",")]
        if line.strip() and not line.startswith("#"):
            ids.append(int(fields[0]))
            places.append([float(fields[5]), float(fields[6]), float(fields[4])])
    unique = {"ids": np.array(ids)} if len(set(ids)) == len(ids) else {}
    return unique | {"centroids": np.array(places)}


def same(one: Content, other: Content) -> bool:
    """Return whether contents agree in all that both have."""
    keys = set(one) & set(other)
    if not keys:
        return False
    return all(_equal(one[key], other[key]) for key in keys)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one.shape == other.shape and bool(
            np.allclose(one.astype(float), other.astype(float), rtol=1e-6, equal_nan=True)
        )
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
