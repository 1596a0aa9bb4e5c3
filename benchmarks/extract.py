"""Nuclei from a label volume: time and memory against scikit-image's ``regionprops_table``.

Draws 558 ellipsoids into a volume of 1600 x 350 x 350 voxels (uint16, 392 MB), writes it as plain
and as compressed TIFF and as chunked Zarr, then measures, each in a process of its own:

- time, best of several: the volume in memory to centroids and inertia tensors (peer), or to
  centroids, semi-axes, directions, connected pieces and border (eutely), and both again from the
  files; compiled kernels come from Numba's cache, warmed by a first call;
- memory: peak resident size (VmHWM) of the process after reading and measuring, minus that
  of a process that has imported the same modules and done the same with a tiny volume.

Run: python benchmarks/extract.py
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from eutely import Specimen

RESULTS = Path(__file__).parent / "results" / "extract.json"
SHAPE, LABELS = (350, 350, 1600), 558
PROPERTIES = ("label", "centroid", "inertia_tensor")


def draw(shape: tuple[int, int, int], count: int) -> np.ndarray:
    """Draw ellipsoids of 6 to 12 voxels at random places; later ones cover earlier ones."""
    random = np.random.default_rng(0)
    labels = np.zeros(shape, dtype=np.uint16)
    for label in range(1, count + 1):
        radii = np.minimum(random.uniform(6, 12, 3), min(shape) / 3)
        turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
        centre = np.array([random.uniform(radii.max(), side - radii.max()) for side in shape])
        low = np.maximum(0, np.floor(centre - radii.max())).astype(int)
        high = np.minimum(shape, np.ceil(centre + radii.max()) + 1).astype(int)
        box = tuple(map(slice, low, high))
        points = np.stack(np.mgrid[box], axis=-1) - centre
        inside = ((points @ turn / radii) ** 2).sum(axis=-1) <= 1
        labels[box][inside] = label
    return labels


def write(labels: np.ndarray, folder: Path) -> dict[str, Path]:
    import tifffile

    from eutely.io.volumes import write_volume

    paths = {
        "TIFF": folder / "plain.tif",
        "TIFF, zlib": folder / "zlib.tif",
        "Zarr": folder / "chunked.zarr",
    }
    metadata = {"axes": "ZYX", **{f"PhysicalSize{axis}": 1.0 for axis in "XYZ"}}
    tifffile.imwrite(paths["TIFF"], labels, ome=True, metadata=metadata)
    write_volume(labels, paths["TIFF, zlib"], 1.0)
    write_volume(labels, paths["Zarr"], 1.0)
    return paths


def race(ours: Callable[[], object], peers: Callable[[], object], repeats: int) -> dict[str, float]:
    """Return the best times of both, measured in turn under the same load."""
    seconds: dict[str, list[float]] = {"eutely_s": [], "peer_s": []}
    for _ in range(repeats):
        for program, work in zip(seconds, (ours, peers), strict=True):
            start = time.perf_counter()
            work()
            seconds[program].append(time.perf_counter() - start)
    return {program: min(some) for program, some in seconds.items()}


def peak() -> int:
    """Return the peak resident size of this process in bytes.

    On Linux ``ru_maxrss`` would start at the size of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_memory(program: str, path: Path) -> None:
    """Read and measure one file; print the peak resident size (a process of its own runs this)."""
    work_from_file(program, path)
    print(peak())


def work_from_file(program: str, path: Path) -> None:
    if program == "eutely":
        import eutely

        eutely.read(path)
        return
    from skimage.measure import regionprops_table

    if path.suffix == ".zarr":
        import zarr

        labels = zarr.open(path)["0"][:]
    else:
        import tifffile

        labels = tifffile.imread(path)
    regionprops_table(labels, properties=PROPERTIES)


def memory_of(program: str, path: Path, tiny: Path) -> int:
    sizes = []
    for file in (path, tiny):
        command = [sys.executable, __file__, "--memory", program, str(file)]
        sizes.append(int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    return sizes[0] - sizes[1]


def in_memory(labels: np.ndarray, repeats: int) -> dict[str, float]:
    """Return the times of both for a volume in memory, after a check that they agree."""
    from skimage.measure import regionprops_table

    from eutely.nuclei import measure

    def ours() -> Specimen:
        return measure([(labels, (0, 0, 0))], labels.shape, (1.0, 1.0, 1.0), "worm")

    def peers() -> dict[str, np.ndarray]:
        return regionprops_table(labels, properties=PROPERTIES)

    found, table = ours(), peers()
    assert found.ids.tolist() == table["label"].tolist()
    centroids = np.stack([table[f"centroid-{axis}"] for axis in (2, 1, 0)], axis=1)
    clean = found.features["detached"] == 0
    np.testing.assert_allclose(found.centroids[clean], centroids[clean])
    return race(ours, peers, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(options.memory[0], Path(options.memory[1]))
        return
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        labels = draw(SHAPE, LABELS)
        volume = labels.nbytes
        paths = write(labels, folder)
        (folder / "tiny").mkdir()
        tiny = write(draw((40, 40, 200), 8), folder / "tiny")
        rows.append({"from": "memory", **in_memory(labels, options.repeats)})
        for kind, path in paths.items():
            ours, peers = (partial(work_from_file, program, path) for program in ("eutely", "peer"))
            row = {"from": kind, **race(ours, peers, options.repeats)}
            for program in ("eutely", "peer"):
                row[f"{program}_peak"] = memory_of(program, path, tiny[kind]) / volume
            rows.append(row)
    print(f"{'from':12} {'eutely':>9} {'skimage':>9} {'ratio':>6}   peak memory / volume")
    for row in rows:
        row["ratio"] = row["peer_s"] / row["eutely_s"]
        memory = f"{row['eutely_peak']:.2f} / {row['peer_peak']:.2f}" if "peer_peak" in row else "-"
        print(
            f"{row['from']:12} {row['eutely_s']:8.3f}s {row['peer_s']:8.3f}s "
            f"{row['ratio']:6.1f}   {memory}"
        )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps(
            {
                "command": "python benchmarks/extract.py",
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": f"{platform.machine()}, {platform.system()}, "
                f"Python {platform.python_version()}",
                "volume": {"shape": SHAPE, "dtype": "uint16", "labels": LABELS, "bytes": volume},
                "rows": rows,
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
