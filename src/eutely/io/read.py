"""Specimens from files and folders: the format of each path, and checks of the cohort."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError, ReadError
from eutely.io import volumes
from eutely.io.apo import read_apo, read_marker
from eutely.io.columns import columns_of
from eutely.io.images import Images, in_image, read_labels
from eutely.io.names import named_by, read_names, with_names
from eutely.io.nwb import read_nwb
from eutely.io.programs import program_of
from eutely.io.sources import Reading, ReadProgress, Source, sources
from eutely.io.tables import read_table, specimens_of
from eutely.io.volumes.volume import VoxelSize, triple
from eutely.specimen import MICROMETRE, UNKNOWN, VOXEL, Specimen

__all__ = [
    "BadFilesError", "Images", "Reading", "Source", "Survey", "paired_planes", "read", "read_names",
    "readings", "sources", "survey", "usable", "voxel_triple", "with_names",
]  # fmt: skip

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("eutely")

FEWEST_NUCLEI = 4
"""Smallest number of nuclei of a specimen: fewer have no pose."""

SurveyProgress = Callable[[int, float], None]
"""Called with the number of a file and the fraction of it that was read."""


class BadFilesError(ReadError):
    """Files that cannot be used: one line for each in ``problems``."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Survey:
    """What could be read of some files, and what is wrong with the rest."""

    readings: tuple[Reading, ...]
    problems: tuple[str, ...]
    """one line per file (or specimen) that cannot be used"""

    def renamed(self, features: Mapping[str, str]) -> Survey:
        """Return the same with other names of features; see `eutely.Specimen.renamed`."""
        there = {key for reading in self.readings for key in reading.specimen.features}
        absent = sorted(set(features) - there)
        if absent and self.readings:
            columns = ", ".join(sorted(there)) or "none"
            raise ReadError(
                f"--features-map: no specimen has the feature '{absent[0]}'; there are: {columns}"
            )
        changed = (
            replace(reading, specimen=reading.specimen.renamed(features))
            for reading in self.readings
        )
        return replace(self, readings=tuple(changed))


def read(
    *inputs: str | PathLike[str] | pd.DataFrame | Sequence[str | PathLike[str] | pd.DataFrame],
    voxel_size: float | Sequence[float] | None = None,
    names: str | PathLike[str] | None = None,
    skip_bad: bool = False,
    image: str | PathLike[str] | None = None,
    channels: Sequence[str] = (),
    background: bool = False,
) -> list[Specimen]:
    """Read specimens from files and folders.

    Parameters
    ----------
    inputs
        label volumes (TIFF, OME-Zarr, HDF5, NRRD), tables (CSV, TSV, Parquet, Excel) of a specimen
        or a cohort, Vaa3D point clouds (``.apo``, ``.ano.txt``, ``.marker``), recordings of other
        programs (``embryo.zip:120`` for time point 120), or folders of such files, which are read
        in the order of their names. Also pandas tables of nuclei with the columns of such files,
        and lists of all these.
    voxel_size
        x, y, z in micrometres (or one number if all are equal); takes precedence over the files.
        Tables and point clouds in voxels are converted.
    names
        table of the names of nuclei by their ids, or folder of such tables, see `with_names`.
        Without it, a table ``worm.csv`` beside the volume ``worm.tif`` is used.
    skip_bad
        leave out what cannot be read, with a warning, instead of raising an error.
    image
        image that was segmented, or folder with an image for each specimen, of the same name. Mean,
        median, total and standard deviation of each channel in each nucleus become features,
        ``<channel>_mean`` and so on. Points need radii.
    channels
        names of the channels of the images, "-" for one to leave out.
    background
        take off the median of what surrounds each nucleus.

    Raises
    ------
    EutelyError
        if a file cannot be read, a specimen has fewer than 4 nuclei, two specimens have the same
        name, or units differ.

    Examples
    --------
    >>> import eutely
    >>> cohort = eutely.read("worms/", "another.csv")  # doctest: +SKIP
    """
    flat: list[Any] = []
    for given in inputs:
        flat += given if isinstance(given, list | tuple) else [given]
    files = sources(flat)
    for key, value in (("names", names), ("image", image)):
        if value is not None and not isinstance(value, str | PathLike):
            raise ReadError(f"{key}: expected a path, found {type(value).__name__}")
    channels = (channels,) if isinstance(channels, str) else channels
    images = None if image is None else Images(Path(image), tuple(channels), background)
    cohort = usable(survey(files, voxel_size, images=images), skip_bad)
    specimens = [reading.specimen for reading in cohort]
    return specimens if names is None else with_names(specimens, Path(names))


def readings(
    files: Sequence[Source],
    voxel_size: float | Sequence[float] | None = None,
    progress: ReadProgress = lambda _: None,
    images: Images | None = None,
) -> Iterator[Reading]:
    """Read one file after the other; the specimens of a file are consecutive."""
    size = voxel_triple(voxel_size)

    def points(specimen: Specimen, file: Source) -> Reading:
        placed = _in_micrometres(specimen, size)
        return Reading(placed if images is None else in_image(placed, images, size), file.path)

    for file in files:
        if file.kind == "volume":
            reading = read_labels(file, size, progress, images)
            yield replace(reading, specimen=_named(reading.specimen, file))
        else:
            specimens = list(_specimens(file, size))
            _say_units(file, specimens, size)
            if images is not None:
                images.check(len(specimens))
            for specimen in specimens:
                yield points(_named(specimen, file), file)
        progress(1.0)


def _specimens(file: Source, voxel_size: VoxelSize | None) -> list[Specimen]:
    """Read the specimens of a file that is no volume."""
    if file.kind == "nwb":
        return [read_nwb(file.path, file.name, file.part, voxel_size)]
    program = program_of(file.path) if file.kind == "recording" else None
    if program is not None:
        recording = program.read(file.path)
        return recording.specimens(file.path, file.name, file.part, voxel_size)
    if file.frame is not None:
        return specimens_of(columns_of(file.frame, file.path), file.name)
    if file.part is not None:
        raise ReadError(f"{file.path}: a table without time points; name it without :{file.part}")
    if file.kind == "points":
        marker = file.path.suffix.lower() == ".marker"
        return [read_marker(file.path, file.name) if marker else read_apo(file.path, file.name)]
    return read_table(file.path, file.name)


def _named(specimen: Specimen, file: Source) -> Specimen:
    """Return a specimen with the names of the table beside its file, if there is one."""
    return specimen if file.names is None else named_by([specimen], file.names)[0]


def _in_micrometres(specimen: Specimen, voxel_size: VoxelSize | None) -> Specimen:
    """Return a specimen in micrometres, if it is in voxels and their size is given.

    Coordinates without a unit are voxels then: whoever gives the size of voxels says so.
    """
    if voxel_size is None or specimen.unit not in (VOXEL, UNKNOWN):
        return specimen
    return replace(specimen.mapped(np.diag(voxel_size), np.zeros(3)), unit=MICROMETRE)


def _say_units(file: Source, specimens: Sequence[Specimen], size: VoxelSize | None) -> None:
    """Say what --voxel-size means for a file of points that does not state voxels."""
    if size is None or file.kind == "nwb":
        return
    units = {specimen.unit for specimen in specimens}
    if UNKNOWN in units:
        log.warning(
            "%s: no unit is stated: x, y, z are taken for voxels of %s um, as --voxel-size says",
            file.path, triple(size),
        )  # fmt: skip
    stated = sorted(units - {VOXEL, UNKNOWN})
    if stated and file.kind == "table":
        log.warning(
            "%s: in %s already, so --voxel-size does not apply; if its numbers are voxels, write "
            "so into the column unit", file.path, stated[0],
        )  # fmt: skip


def voxel_triple(given: float | Sequence[float] | None) -> VoxelSize | None:
    """Return x, y, z of a voxel size given as one or three numbers."""
    if given is None:
        return None
    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape not in {(1,), (3,)} or not np.isfinite(values).all() or (values <= 0).any():
        raise ReadError(f"voxel size {given}: expected one or three positive numbers (x, y, z)")
    x, y, z = np.broadcast_to(values, (3,)).tolist()
    return x, y, z


def survey(
    files: Sequence[Source],
    voxel_size: float | Sequence[float] | None = None,
    progress: SurveyProgress = lambda _, __: None,
    images: Images | None = None,
) -> Survey:
    """Read all files, and collect what is wrong with some instead of stopping at the first.

    Parameters
    ----------
    files
        see `sources`.
    voxel_size
        see `read`.
    progress
        called with the number of the file and the fraction of it that was read.
    images
        to measure the nuclei in.
    """
    size = voxel_triple(voxel_size)
    if images is not None:
        images.check(len(files))
    good, problems = [], []
    with _said_once():
        for number, file in enumerate(files):
            try:
                for reading in readings([file], size, partial(progress, number), images):
                    problem = _too_few(reading)
                    if problem:
                        problems.append(problem)
                    else:
                        good.append(reading)
            except EutelyError as error:
                line, where = str(error), str(file.path)
                named = f"{where}: {line.removeprefix(f'{file.name}: ')}"
                problems.append(line if where in line else named)
    tables = [file.names.name for file in files if file.names is not None]
    if tables:
        more = ", ..." if len(tables) > 3 else ""
        log.info("tables of names beside volumes are used: %s", ", ".join(tables[:3]) + more)
    return Survey(tuple(good), tuple(problems))


@contextmanager
def _said_once() -> Iterator[None]:
    """Collect warnings about files, and say what is true of many files in one line."""
    told: dict[tuple[str, tuple[object, ...]], list[Path]] = {}

    def keep(record: logging.LogRecord) -> bool:
        about, *rest = record.args if isinstance(record.args, tuple) and record.args else (None,)
        if record.levelno != logging.WARNING or not isinstance(about, Path):
            return True
        told.setdefault((str(record.msg), tuple(rest)), []).append(about)
        return False

    log.addFilter(keep)
    try:
        yield
    finally:
        log.removeFilter(keep)
        for (message, rest), paths in told.items():
            log.warning(message, f"{paths[0]}{_more(paths)}", *rest)


def _more(others: Sequence[object]) -> str:
    """Return how many there are besides the first, "" for none."""
    return f" and {len(others) - 1} more" if len(others) > 1 else ""


def _too_few(reading: Reading) -> str:
    """Return what is wrong if a specimen has too few nuclei; "" otherwise."""
    specimen, path = reading.specimen, reading.path
    if len(specimen) >= FEWEST_NUCLEI:
        return ""
    if len(specimen) == 1 and reading.voxel_size is not None:
        return (
            f"{path}: one label ({specimen.ids[0]}) for all nuclei: was it labelled? Expected "
            "another number for each nucleus; label the connected components of the mask first"
        )
    count = "1 nucleus" if len(specimen) == 1 else f"{len(specimen)} nuclei"
    return (
        f"{path}: {specimen.name} has {count}, expected at least {FEWEST_NUCLEI}; is the file "
        "complete?"
    )


def cohort_problems(cohort: Sequence[Reading]) -> list[str]:
    """Return why specimens do not make a cohort: equal names, different units."""
    seen: dict[str, Path] = {}
    units: dict[str, list[Path]] = {}
    again, called = [], []
    for reading in cohort:
        name, path = reading.specimen.name, reading.path
        if name in seen and seen[name] == path:
            again.append(path)
        elif name in seen:
            called.append(f"{name} ({seen[name]} and {path})")
        seen[name] = path
        units.setdefault(reading.specimen.unit, []).append(path)
    problems = []
    if again:
        problems.append(f"given twice: {again[0]}{_more(again)}; give each file once")
    if called:
        more = f", and so in {len(called) - 1} more cases" if len(called) > 1 else ""
        problems.append(f"two specimens are called {called[0]}{more}; rename one")
    if len(units) > 1:
        parts = [f"{paths[0]}{_more(paths)} in {unit}" for unit, paths in units.items()]
        problems.append(
            f"mixed units: {', '.join(parts)}; convert to one (tables: column 'unit'; tables in "
            "voxels: --voxel-size)"
        )
    return problems


def usable(found: Survey, skip_bad: bool = False) -> list[Reading]:
    """Return what can be used of a survey; raise `BadFilesError` if anything is wrong.

    With ``skip_bad``, files that cannot be used are left out with a warning; equal names and
    different units remain errors.
    """
    problems = [] if skip_bad else list(found.problems)
    problems += cohort_problems(found.readings)
    if skip_bad:
        for problem in found.problems:
            log.warning("left out: %s", problem)
        if not found.readings:
            problems.append("no specimen is left; correct the files")
    if problems:
        raise BadFilesError(problems)
    return list(found.readings)


@contextmanager
def paired_planes(
    first: Source, second: Source, voxel_size: float | Sequence[float] | None = None
) -> Iterator[Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]]:
    """Open two label volumes of the same image; yield their planes in pairs.

    Parameters
    ----------
    first, second
        label volumes.
    voxel_size
        see `read`.
    """
    size = voxel_triple(voxel_size)
    with (
        volumes.open_volume(first.path, size, first.part) as left,
        volumes.open_volume(second.path, size, second.part) as right,
    ):
        if left.shape != right.shape:
            shapes = [" x ".join(map(str, volume.shape)) for volume in (left, right)]
            raise ReadError(
                f"{first.path} has {shapes[0]} voxels (z, y, x), {second.path} {shapes[1]}; "
                "expected two segmentations of the same image"
            )
        yield zip(left.planes(), right.planes(), strict=True)
