"""Nuclei from a label volume: time and memory against scikit-image's ``regionprops_table``.

Draws 558 ellipsoids into a volume of 1600 x 350 x 350 voxels (uint16, 392 MB), writes it as plain
and as compressed TIFF and as chunked Zarr, then measures, each in a process of its own:

- time, best of several: the volume in memory to centroids and inertia tensors (peer), or to
  centroids, semi-axes, directions, connected pieces and border (eutely), and both again from the
  files; compiled kernels come from Numba's cache, warmed by a first call;
- memory: peak resident size (VmHWM) of the process after reading and measuring, minus that
  of a process that has imported the same modules and done the same with a tiny volume.

Then draws an image of four channels (1 GB) for such labels, writes it as plain TIFF, as compressed
TIFF and as Zarr, and compares, in turn under the same load:

- reading the image whole with the library of its format (tifffile, zarr-python);
- nuclei from the labels, and mean, median, total and spread of all channels in each: eutely.

Run: python benchmarks/extract.py [--only image]
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
IMAGE_SHAPE, CHANNELS = (350, 350, 1024), 4
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


def write_image(labels: np.ndarray, folder: Path) -> dict[str, Path]:
    """Write an image of four channels: nuclei of different brightness, and noise."""
    import tifffile
    import zarr

    random = np.random.default_rng(1)
    bright = random.integers(200, 3000, (CHANNELS, int(labels.max()) + 1)).astype(np.uint16)
    bright[:, 0] = 100
    paths = {
        "TIFF": folder / "plain.ome.tif",
        "TIFF, zlib": folder / "zlib.ome.tif",
        "Zarr": folder / "chunked.zarr",
    }
    shape = (CHANNELS, *labels.shape)
    group = zarr.create_group(paths["Zarr"])
    axes = [{"name": "c", "type": "channel"}]
    axes += [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    scale = [{"type": "scale", "scale": [1.0] * 4}]
    level = {"path": "0", "coordinateTransformations": scale}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
    chunked = group.create_array("0", shape=shape, dtype="u2", chunks=(1, 64, 128, 256))
    noise = random.integers(0, 64, labels.shape, dtype=np.uint8)

    def channel(number: int) -> np.ndarray:
        return bright[number][labels] + np.roll(noise, number * 7, axis=2)

    for number in range(CHANNELS):
        chunked[number] = channel(number)
    metadata = {"axes": "CZYX", **{f"PhysicalSize{axis}": 1.0 for axis in "XYZ"}}
    for kind, options in (("TIFF", {}), ("TIFF, zlib", {"compression": "zlib"})):
        planes = (plane for number in range(CHANNELS) for plane in channel(number))
        tifffile.imwrite(
            paths[kind], planes, shape=shape, dtype="u2", ome=True, metadata=metadata,
            photometric="minisblack", bigtiff=True, **options,
        )  # fmt: skip
    return paths


def read_whole(path: Path) -> np.ndarray:
    """Read an image with the library of its format."""
    if path.suffix == ".zarr":
        import zarr

        return zarr.open(path)["0"][:]
    import tifffile

    return tifffile.imread(path)


def with_image(labels: Path, path: Path) -> None:
    import eutely

    (worm,) = eutely.read(labels, image=path)
    assert sum(key.endswith("_median") for key in worm.features) == CHANNELS


def measure_images(repeats: int) -> list[dict[str, object]]:
    """Compare extraction with reading, for each format."""
    from eutely.io.volumes import write_volume

    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        labels = draw(IMAGE_SHAPE, LABELS)
        write_volume(labels, folder / "labels.tif", 1.0)
        paths = write_image(labels, folder)
        (folder / "tiny").mkdir()
        small = draw((40, 40, 200), 8)
        write_volume(small, folder / "tiny" / "labels.tif", 1.0)
        tiny = write_image(small, folder / "tiny")
        del labels
        for kind, path in paths.items():
            with_image(folder / "tiny" / "labels.tif", tiny[kind])  # compiled code is loaded
            ours = partial(with_image, folder / "labels.tif", path)
            times = race(ours, partial(read_whole, path), repeats)
            peaks = []
            for some in (path, tiny[kind]):
                command = [sys.executable, __file__, "--with-image", str(some)]
                found = subprocess.run(command, check=True, stdout=subprocess.PIPE)
                peaks.append(int(found.stdout))
            row = {
                "from": kind, "extract_s": times["eutely_s"], "read_s": times["peer_s"],
                "ratio": times["eutely_s"] / times["peer_s"], "peak_gb": peaks[0] / 1e9,
                "above_tiny_gb": (peaks[0] - peaks[1]) / 1e9,
            }  # fmt: skip
            rows.append(row)
            print(
                f"image, {kind:11} extract {row['extract_s']:.2f} s, read {row['read_s']:.2f} s, "
                f"ratio {row['ratio']:.2f}, peak {row['peak_gb']:.2f} GB "
                f"({row['above_tiny_gb']:.2f} GB above that of a tiny image)"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--with-image", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=("labels", "image"))
    options = parser.parse_args()
    if options.with_image:
        image = Path(options.with_image)
        with_image(image.parent / "labels.tif", image)
        print(peak())
        return
    if options.memory:
        measure_memory(options.memory[0], Path(options.memory[1]))
        return
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {
        **before,
        "command": "python benchmarks/extract.py",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
    }
    if options.only != "image":
        size = int(np.prod(SHAPE)) * 2
        about = {"shape": SHAPE, "dtype": "uint16", "labels": LABELS, "bytes": size}
        results |= {"volume": about, "rows": measure_labels(options.repeats)}
    if options.only != "labels":
        size = int(np.prod(IMAGE_SHAPE)) * 2 * CHANNELS
        about = {"shape": (CHANNELS, *IMAGE_SHAPE), "dtype": "uint16", "bytes": size}
        results |= {"image": about, "image_rows": measure_images(options.repeats)}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def measure_labels(repeats: int) -> list[dict[str, object]]:
    """Compare the measurement of labels with the peer's, from memory and from files."""
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        labels = draw(SHAPE, LABELS)
        volume = labels.nbytes
        paths = write(labels, folder)
        (folder / "tiny").mkdir()
        tiny = write(draw((40, 40, 200), 8), folder / "tiny")
        rows.append({"from": "memory", **in_memory(labels, repeats)})
        for kind, path in paths.items():
            ours, peers = (partial(work_from_file, program, path) for program in ("eutely", "peer"))
            row = {"from": kind, **race(ours, peers, repeats)}
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
    return rows


if __name__ == "__main__":
    main()
