"""Good files of every format, made with the library that owns the format."""

import csv
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import others, programs

SIZE = (0.1, 0.2, 0.5)
"""Voxel size of the seeds, x, y, z."""


@dataclass(frozen=True)
class Seed:
    """A good file.

    Attributes
    ----------
    name
        of the file or folder.
    write
        function that writes it into a folder.
    checksummed
        whether the format protects the payload: any other content is then a fault.
    """

    name: str
    write: Callable[[Path], None]
    checksummed: bool = False


def labels(dtype: str = "uint16") -> np.ndarray:
    """Twelve boxes on a rising diagonal, z, y, x, and some noise that does not compress away."""
    random = np.random.default_rng(5)
    volume = np.zeros((14, 30, 40), dtype=np.uint16)
    for number in range(12):
        z, y, x = number, 2 * number, 3 * number
        volume[z : z + 2, y : y + 3, x : x + 4] = number + 1
    speck = random.integers(0, 500, volume.shape) == 0
    volume[speck & (volume == 0)] = 13
    return volume.astype(dtype)


def _ome() -> dict[str, Any]:
    metadata: dict[str, Any] = {"axes": "ZYX"}
    for axis, side in zip("XYZ", SIZE, strict=True):
        metadata |= {f"PhysicalSize{axis}": side, f"PhysicalSize{axis}Unit": "µm"}
    return metadata


def _tiff(name: str, dtype: str = "uint16", **options: Any) -> Seed:
    def write(folder: Path) -> None:
        import tifffile

        tifffile.imwrite(folder / name, labels(dtype), photometric="minisblack", **options)

    return Seed(name, write)


def _zarr(name: str, version: int, **options: Any) -> Seed:
    def write(folder: Path) -> None:
        import zarr

        group = zarr.create_group(folder / name, zarr_format=version)
        axes = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
        scale = [{"type": "scale", "scale": list(SIZE[::-1])}]
        image = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
        group.attrs["multiscales"] = [{"version": "0.4", **image}]
        if version == 3:
            group.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
        given = {"chunks": (7, 15, 20), "config": {"write_empty_chunks": True}, **options}
        group.create_array("0", data=labels(), **given)

    return Seed(name, write)


def _volume(name: str, checksummed: bool = True) -> Seed:
    def write(folder: Path) -> None:
        from eutely.io.volumes import write_volume

        write_volume(labels(), folder / name, SIZE)

    return Seed(name, write, checksummed)


def _hdf5(name: str, version: str = "earliest", dtype: str = "uint16", **options: Any) -> Seed:
    def write(folder: Path) -> None:
        import h5py

        with h5py.File(folder / name, "w", libver=version) as file:
            dataset = file.create_dataset("labels", data=labels(dtype), **options)
            dataset.attrs["element_size_um"] = SIZE[::-1]
            tags = [{"key": key, "typeFlags": 2} for key in "zyx"]
            dataset.attrs["axistags"] = json.dumps({"axes": tags})
            file["notes/profile"] = np.arange(10)

    return Seed(name, write)


def _nrrd(name: str, encoding: str) -> Seed:
    def write(folder: Path) -> None:
        import nrrd

        header = {"encoding": encoding, "spacings": list(SIZE), "units": ["um"] * 3}
        apart = name.endswith(".nhdr")
        nrrd.write(str(folder / name), labels(), header, detached_header=apart, index_order="C")

    return Seed(name, write, encoding in {"gzip", "bzip2"})


def _dd(name: str) -> Seed:
    def write(folder: Path) -> None:
        from eutely.io.dd import write_dd
        from eutely.problem import PairProblem

        random = np.random.default_rng(2)
        pairs = []
        for g, h in ((0, 1), (0, 2), (1, 2)):
            nodes = np.argwhere(random.random((5, 6)) < 0.6)
            ends = random.integers(0, len(nodes), (12, 2))
            costs = random.normal(size=len(nodes)).round(3)
            extra = random.normal(size=len(ends)).round(3)
            pairs.append((g, h, PairProblem.from_arrays((5, 6), nodes, costs, ends, extra)))
        write_dd(folder / name, pairs)

    return Seed(name, write, name.endswith(".xz"))


def _qap(name: str) -> Seed:
    def write(folder: Path) -> None:
        random = np.random.default_rng(9)
        rows = [" ".join(map(str, row)) for row in random.integers(0, 90, (12, 6)).tolist()]
        text = "\n".join(["6 54321 50000", "", *rows[:6], "", *rows[6:], ""]).encode()
        (folder / name).write_bytes(lzma.compress(text) if name.endswith(".xz") else text)

    return Seed(name, write, name.endswith(".xz"))


def atlas() -> Any:
    """Return a small atlas: six cells on a line that predict each other."""
    from eutely.atlas import Atlas

    m = 6
    means = np.arange(m)[:, None] * [4.0, 0.5, 0.1]
    return Atlas(
        means=means - means.mean(axis=0),
        covariances=np.array([np.eye(3)] * m),
        radii=np.full((m, 3), 1.5),
        radius_covariances=np.array([np.eye(3)] * m),
        seen=np.arange(m) + 2,
        rare=np.arange(m) < 1,
        edges=np.stack([np.arange(m - 1), np.arange(1, m)], axis=1),
        offsets=means[:-1] - means[1:],
        offset_covariances=np.array([np.eye(3)] * (m - 1)),
        neighbours=np.stack([(np.arange(m) + 1) % m, (np.arange(m) + 2) % m], axis=1),
        predictors=np.full((m, 2, 3, 3), 0.1),
        conditionals=np.array([np.eye(3) / 2] * m),
        size=np.array([24.0, 3.0]),
        specimens=9,
        names=("AVAL", "AVAR", "", "x", "y", "z"),
        unit="um",
        provenance={"inputs": "a line"},
    )


def _atlas(folder: Path) -> None:
    from eutely.io.atlas import write_atlas

    write_atlas(atlas(), folder / "atlas.h5")


def rows() -> list[dict[str, Any]]:
    """Return twenty nuclei as rows of a table."""
    random = np.random.default_rng(3)
    return [
        {"id": 10 + i, **dict(zip("xyz", random.normal(size=3).round(4).tolist(), strict=True)),
         "r": round(1 + 0.1 * i, 2), "name": f"cell{i}", "gfp": round(0.5 * i, 2)}
        for i in range(20)
    ]  # fmt: skip


def _csv(folder: Path) -> None:
    with (folder / "worm.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows()[0]))
        table.writeheader()
        table.writerows(rows())


def _parquet(name: str, **options: Any) -> Seed:
    def write(folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        options.setdefault("write_page_checksum", True)
        pq.write_table(pa.Table.from_pylist(rows()), folder / name, **options)

    return Seed(name, write)


def _points(name: str) -> Seed:
    def write(folder: Path) -> None:
        lines = [
            f"{i}, {i}, cell{i},, {i}.5, {2 * i}, {i % 5}.25, 200, 90.5, 3.5, {100 + i}, 9000"
            for i in range(1, 21)
        ]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    return Seed(name, write)


def _program(name: str) -> Seed:
    return Seed(name, lambda folder: programs.FILES[name](folder / name))


def image() -> np.ndarray:
    """Two channels for the labels, c, z, y, x."""
    random = np.random.default_rng(6)
    return random.integers(0, 999, (2, *labels().shape)).astype(np.uint16)


def _image(name: str) -> Seed:
    def write(folder: Path) -> None:
        path = folder / name
        if name.endswith(".tif"):
            import tifffile

            about = {**_ome(), "axes": "CZYX", "Channel": {"Name": ["red", "green"]}}
            packed = "zlib" if name.startswith("packed") else None
            tifffile.imwrite(
                path, image(), ome=True, photometric="minisblack", metadata=about,
                compression=packed,
            )  # fmt: skip
        elif name.endswith(".zarr"):
            import zarr

            group = zarr.create_group(path, zarr_format=2)
            axes = [{"name": axis} for axis in "czyx"]
            scale = [{"type": "scale", "scale": [1.0, *SIZE[::-1]]}]
            level = {"path": "0", "coordinateTransformations": scale}
            group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": [level]}]
            group.attrs["omero"] = {"channels": [{"label": "red"}, {"label": "green"}]}
            group.create_array(
                "0", data=image(), chunks=(1, 7, 15, 20), config={"write_empty_chunks": True}
            )
        elif name.endswith(".h5"):
            import h5py

            with h5py.File(path, "w") as file:
                chunks = (1, 7, 15, 20)
                file.create_dataset(
                    "raw", data=image(), chunks=chunks, compression="gzip", fletcher32=True
                )
        elif name.endswith(".npy"):
            np.save(path, image())
        else:
            import nrrd

            header = {"kinds": ["domain"] * 3 + ["list"], "encoding": "gzip"}
            nrrd.write(str(path), image(), header, index_order="C")

    return Seed(name, write)


def _nwb(folder: Path) -> None:
    """Write a file that the extension ndx-multichannel-volume has made."""
    packed = Path(__file__).parents[2] / "tests" / "io" / "neuropal.nwb.xz"
    (folder / "worm.nwb").write_bytes(lzma.decompress(packed.read_bytes()))


def _nwb_of_ours(folder: Path) -> None:
    """Write a file as `eutely export` does."""
    from eutely.annotation import Annotation
    from eutely.io.nwb_layout import drawn_points, write_nwb
    from eutely.io.nwb_write import About
    from eutely.specimen import Specimen

    random = np.random.default_rng(4)
    worm = Specimen.from_arrays("worm", random.uniform(0, 30, (12, 3)).round(2), unit="um")
    found = Annotation(
        "worm", worm.ids, np.arange(12, dtype=np.int32), tuple(f"N{i}" for i in range(12)),
        np.full(12, 0.9), ((),) * 12, 0.0, worm.centroids,
    )  # fmt: skip
    write_nwb(folder / "ours.nwb", worm, found, drawn_points(worm), None, About())


def _array(name: str, order: str, dtype: str = "uint16") -> Seed:
    def write(folder: Path) -> None:
        np.save(folder / name, np.asarray(labels(dtype), order=order))

    return Seed(name, write)


def _text(name: str, text: str) -> Seed:
    return Seed(name, lambda folder: (folder / name).write_text(text, encoding="utf-8") and None)


def _matlab(name: str, packed: bool) -> Seed:
    return Seed(name, lambda folder: others.matlab(folder / name, packed))


def record() -> Any:
    """Return what the seed of a run folder holds."""
    from eutely.record import Record

    arrays = {"cells": np.arange(12, dtype=np.int32), "costs": np.linspace(0, 1, 5)}
    return Record(arrays, {"value": {"names": ["a", "b"], "losses": [0.5, 0.25]}})


def _run(folder: Path) -> None:
    from eutely.store.folder import open_run

    with open_run(folder / "run") as run:
        run.put("poses", "0123456789abcdef", record(), 0.5)
        journal = run.journal("learn", "0123456789abcdef")
        for number in range(4):
            journal.append({"number": number, "value": 0.5 * number})


SEEDS: dict[str, list[Seed]] = {
    "tiff": [
        _tiff("worm.ome.tif", ome=True, compression="zlib", metadata=_ome()),
        _tiff("worm.tif", imagej=True, resolution=(10, 5),
              metadata={"spacing": 0.5, "unit": "um", "axes": "ZYX"}),
        _tiff("worm.ome.btf", ome=True, bigtiff=True, tile=(16, 16), compression="lzw",
              metadata=_ome()),
        _tiff("worm.tiff", ome=True, metadata=_ome()),
        _tiff("float.ome.tif", "float32", ome=True, metadata=_ome()),
    ],
    "zarr": [
        _zarr("worm.ome.zarr", 3),
        _zarr("worm.zarr", 2),
        _zarr("packed.zarr", 3, chunks=(7, 5, 10), shards=(14, 15, 20)),
        _volume("ours.ome.zarr"),
    ],
    "hdf5": [
        _hdf5("worm.h5", chunks=(7, 15, 20), compression="gzip", fletcher32=True),
        _hdf5("worm.hdf5"),
        _hdf5("new.h5", "latest", chunks=(5, 10, 40), compression="lzf", shuffle=True),
        _volume("ours.h5"),
        _hdf5("float.h5", dtype="float32", chunks=(7, 15, 20), fletcher32=True),
    ],
    "nrrd": [
        _nrrd("worm.nrrd", "gzip"),
        _nrrd("raw.nrrd", "raw"),
        _nrrd("worm.nhdr", "gzip"),
        _nrrd("small.nrrd", "bzip2"),
    ],
    "dd": [_dd("worms.dd"), _dd("worms.dd.xz")],
    "qap": [_qap("grid.qap"), _qap("grid.dat"), _qap("grid.qap.xz")],
    "atlas": [Seed("atlas.h5", _atlas)],
    "csv": [Seed("worm.csv", _csv)],
    "parquet": [_parquet("worm.parquet"), _parquet("worm.pq", compression="gzip", version="1.0")],
    "points": [_points("worm.apo"), _points("worm.ano.txt")],
    "image": [
        _image("worm.ome.tif"), _image("packed.ome.tif"), _image("worm.ome.zarr"),
        _image("worm.h5"), _image("worm.nrrd"), _image("worm.npy"),
    ],
    "nwb": [Seed("worm.nwb", _nwb), Seed("ours.nwb", _nwb_of_ours)],
    "programs": [_program(name) for name in programs.FILES],
    "run": [Seed("run", _run, True)],
    "matlab": [_matlab("packed.mat", True), _matlab("plain.mat", False)],
    "excel": [Seed("worm.xlsx", lambda folder: others.excel(folder / "worm.xlsx"))],
    "npy": [
        _array("worm.npy", "C"), _array("turned.npy", "F"), _array("float.npy", "C", "float32"),
    ],
    "exported": [Seed("exported", lambda folder: others.exported(folder / "exported", atlas()))],
    "lists": [_text(name, text) for name, text in others.LISTS.items()],
    "settings": [
        _text("settings.toml", others.SETTINGS), _text("about.toml", others.ABOUT),
    ],
}  # fmt: skip
"""Seeds by format."""
