"""NWB files of annotated nuclei from any input, in the layout of public NeuroPAL collections.

The types are those of the extension ndx-multichannel-volume 0.1.12, whose specification comes with
this package (``ndx``, BSD-3): the extension itself needs pynwb before 3. The specification is
stored in each file, so that pynwb reads it without the extension. A file has

- the image, where there is one: a ``MultiChannelVolume`` x, y, z, channel in ``acquisition``, its
  ``RGBW_channels``, -1 for a colour that it lacks;
- an ``ImagingVolume`` with the size of a voxel and the channels;
- a ``PlaneSegmentation``: for each nucleus its voxels, its name in ``ID_labels``, the columns
  ``eutely_cell`` and ``eutely_confidence``, and its features.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation
from eutely.errors import WriteError
from eutely.intensities import Regions, RunCollector, inside
from eutely.io.limits import check_memory
from eutely.io.nwb import COLOURS, FEATURE
from eutely.io.nwb_write import COLUMNS, About, faults_of, object_id, pynwb_library
from eutely.io.volumes import Volume
from eutely.io.volumes.image import Image
from eutely.io.volumes.volume import VoxelSize
from eutely.io.whole import new_bytes, whole
from eutely.meaning import matched
from eutely.record import digest
from eutely.specimen import MICROMETRE, Specimen

NAMESPACE = "ndx-multichannel-volume"

UNKNOWN_START = datetime(1970, 1, 1, tzinfo=UTC)
"""Start of a session that nobody stated: NWB needs one."""

FINE = 0.05
"""Side of a voxel in micrometres on which centres are written where nothing else is known."""

PER_RADIUS = 4.0
"""Voxels that a radius is drawn with where there are radii, but no voxels."""

MOST_VALUES = 2**16 - 1
"""Largest value of an image: the extension stores 16 bits."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The voxels of nuclei.

    Attributes
    ----------
    regions
        of each nucleus, in the order of the specimen.
    voxel_size
        x, y, z in micrometres.
    origin
        (3,), x, y, z of the first voxel in micrometres.
    """

    regions: Regions
    voxel_size: VoxelSize
    origin: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))


def drawn_labels(volume: Volume, specimen: Specimen) -> Drawn:
    """Return the voxels of an open label volume."""
    collector = RunCollector(volume.shape)
    for block, start in volume.blocks():
        collector.add(block, start)
        check_memory(volume.path, 4 * collector.nbytes, "runs of labels")
    order = np.argsort(specimen.ids)
    found = collector.regions(specimen.ids[order])
    runs = found.runs.copy()
    runs[:, 2] = order[runs[:, 2]]
    counts = np.zeros(len(specimen), np.int64)
    counts[order] = found.counts
    return Drawn(Regions(found.shape, found.starts, runs, counts), volume.size)


def drawn_points(specimen: Specimen, image: Volume | None = None) -> Drawn:
    """Return the voxels of points: ellipsoids where radii are known, else the voxel of the centre.

    Parameters
    ----------
    specimen
        in micrometres.
    image
        on whose voxels, if there is one.
    """
    if specimen.unit != MICROMETRE:
        raise WriteError(
            f"{specimen.name}: coordinates in '{specimen.unit}', and NWB needs micrometres; "
            "annotate it again with --voxel-size X,Y,Z"
        )
    if image is not None and image.voxel_size is not None:
        size, origin, shape = image.voxel_size, np.zeros(3), image.shape
    else:
        radius = float(np.nanmedian(specimen.radii)) if np.isfinite(specimen.radii).any() else 0.0
        side = max(radius / PER_RADIUS, FINE) if radius else FINE
        size = (side, side, side)
        reach = np.nan_to_num(specimen.radii.max(axis=1)).max(initial=0.0) + max(size)
        low = specimen.centroids.min(axis=0) - reach
        origin = np.floor(low / size) * size if (low < 0).any() else np.zeros(3)
        span = (specimen.centroids.max(axis=0) + reach - origin) / size
        x, y, z = (np.ceil(span).astype(int) + 1).tolist()
        shape = (z, y, x)
    check_memory(specimen.name, 8 * shape[0] * shape[1], "an index of rows")
    balls = np.where(np.isfinite(specimen.radii), specimen.radii, 0.0)
    moved = replace(specimen, radii=balls, centroids=specimen.centroids - origin)
    regions = inside(moved, shape, size)
    if (regions.counts == 0).any():
        raise WriteError(
            f"{specimen.name}: {(regions.counts == 0).sum()} nuclei lie outside the image; leave "
            "the image out"
        )
    return Drawn(regions, size, origin)


def write_nwb(
    path: Path,
    specimen: Specimen,
    annotation: Annotation,
    drawn: Drawn,
    image: Image | None = None,
    about: About | None = None,
) -> None:
    """Write an NWB file of a specimen, completely or not at all, and verify it with pynwb.

    Parameters
    ----------
    path
        of the file.
    specimen, annotation
        the nuclei, and what they are.
    drawn
        their voxels.
    image
        opened; of the same voxels.
    about
        what is known about the recording.
    """
    import h5py

    pynwb = pynwb_library()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the extension was made for an older version of NWB
        kinds = _Kinds(pynwb)
        file = _session(kinds, specimen, about or About())
        plane = _imaging_volume(kinds, file, drawn, image)
        if image is not None:
            _add_image(kinds, file, plane, image)
        _add_nuclei(pynwb, file, plane, specimen, annotation, drawn)
        _number(file)
        memory = io.BytesIO()  # HDF5 crashes where the disk is full
        with (
            h5py.File(memory, "w") as store,
            pynwb.NWBHDF5IO(file=store, mode="w", manager=kinds.manager()) as out,
        ):
            out.write(file)
        with whole(path) as aside:
            new_bytes(aside, memory.getbuffer())
            faults = faults_of(aside)
            if faults:
                raise WriteError(f"cannot write {path}: not valid NWB ({min(faults)[:160]})")


class _Kinds:
    """The types of the extension, apart from what else this process knows of NWB."""

    def __init__(self, pynwb: Any) -> None:
        self.pynwb = pynwb
        with as_file(files("eutely.io") / "ndx") as folder:
            self.types = pynwb.get_type_map()
            self.types.load_namespaces(str(folder / f"{NAMESPACE}.namespace.yaml"))

    def __getattr__(self, kind: str) -> Any:
        """Return the class of a type."""
        return self.types.get_dt_container_cls(kind, NAMESPACE)

    def manager(self) -> Any:
        """Return what writes these types."""
        from hdmf.build import BuildManager

        return BuildManager(self.types)


def _session(kinds: _Kinds, specimen: Specimen, about: About) -> Any:
    """Return a file with the session and the animal."""
    session = dict(about.session)
    start = session.pop("session_start_time", UNKNOWN_START)
    note = "" if start != UNKNOWN_START else "; when the session began is not known"
    words = session.pop("session_description", f"nuclei of {specimen.name}, named by eutely{note}")
    key = digest({"centroids": specimen.centroids, "ids": specimen.ids})[:12]
    file = kinds.pynwb.NWBFile(
        session_description=words,
        identifier=f"{specimen.name}-{key}",
        session_start_time=start,
        file_create_date=start,  # the same input is written as the same bytes, on any day
        **session,
    )
    subject = {"subject_id": specimen.name, "description": "an individual", **about.subject}
    if set(subject) & {"growth_stage", "cultivation_temp"}:
        subject.setdefault("growth_stage", "unknown")
        file.subject = kinds.CElegansSubject(**subject)
    else:
        file.subject = kinds.pynwb.file.Subject(**subject)
    return file


def _number(file: Any) -> None:
    """Give each object of a file an id that follows from the file, not from chance."""
    for number, each in enumerate(file.all_children()):
        # hdmf draws ids at random, and has no public way to give them
        each._AbstractContainer__object_id = object_id(file.identifier, str(number))


def _plain_name(text: str) -> str:
    """Return a name that an object of NWB may have."""
    return re.sub(r"[/:]", "_", text).strip() or "channel"


def _imaging_volume(kinds: _Kinds, file: Any, drawn: Drawn, image: Image | None) -> Any:
    """Add the microscope and the grid of voxels to a file; return the latter."""
    names = [_plain_name(name or f"channel{number}") for number, name in
             enumerate(image.channels if image is not None else ("nuclei",))]  # fmt: skip
    unknown = [float("nan")] * 2
    channels = [
        kinds.OpticalChannelPlus(
            name=name, description=f"channel {name}; wavelengths are not known to eutely",
            excitation_lambda=float("nan"), emission_lambda=float("nan"), excitation_range=unknown,
            emission_range=unknown,
        )
        for name in names
    ]  # fmt: skip
    device = file.create_device(name="microscope", description="microscope of the recording")
    plane = kinds.ImagingVolume(
        name="NeuroPALImVol",
        description="voxels x, y, z of the segmentation, and of the image if there is one",
        optical_channel=channels,
        order_optical_channels=kinds.OpticalChannelReferences(
            name="order_optical_channels", channels=names
        ),
        device=device,
        excitation_lambda=float("nan"),
        indicator="nuclear fluorescence",
        location="see the subject",
        reference_frame="axes x, y, z of the input file; handedness as in the file",
        origin_coords=drawn.origin.tolist(),
        origin_coords_unit="micrometers",
        grid_spacing=list(drawn.voxel_size),
        grid_spacing_unit="micrometers",
    )
    file.add_imaging_plane(plane)
    return plane


def _add_image(kinds: _Kinds, file: Any, plane: Any, image: Image) -> None:
    """Add an image to a file, in 16 bits."""
    pixels, note = _pixels(image)
    there = [number for number, name in enumerate(image.channels) if name]
    colours = matched(COLOURS, [image.channels[number] for number in there])
    order = [image.channels.index(colours[key]) if key in colours else -1 for key in COLOURS]
    known = {} if max(order) < 0 else {"RGBW_channels": np.array(order, np.int8)}
    compressed = kinds.pynwb.H5DataIO(pixels, compression="gzip", shuffle=True)
    file.add_acquisition(
        kinds.MultiChannelVolume(
            name="NeuroPALImageRaw", description=f"image x, y, z, channel{note}",
            data=compressed, imaging_volume=plane, **known,
        )
    )  # fmt: skip


def _pixels(image: Image) -> tuple[NDArray[np.uint16], str]:
    """Return an image as x, y, z, channel in 16 bits, and in words what its values are."""
    volume = image.volume
    lengths = dict(zip(volume.axes, volume.stored, strict=True))
    form = tuple(lengths.get(axis, 1) for axis in "xyzc")
    check_memory(volume.path, 3 * math.prod(form) * volume.dtype.itemsize, "the image")
    low, step, note = 0.0, 1.0, ""
    if volume.dtype not in (np.uint8, np.uint16, np.bool_):
        ends = [(float(np.nanmin(part)), float(np.nanmax(part))) for part, _ in volume.parts()]
        low, high = min(a for a, _ in ends), max(b for _, b in ends)
        if low < 0 or high > MOST_VALUES or volume.dtype.kind == "f":
            step = (high - low) / MOST_VALUES or 1.0
            note = f"; scaled to 16 bits: value = {low:.9g} + {step:.9g} * stored"
        else:
            low = 0.0
    result = np.zeros(form, np.uint16)
    for part, start in volume.parts():
        first = dict(zip(volume.axes, start, strict=True))
        keep = [axis for axis in "xyzc" if axis in volume.axes]
        drop = tuple(n for n, axis in enumerate(volume.axes) if axis not in keep)
        left = [axis for axis in volume.axes if axis in keep]
        block = np.squeeze(part, drop).transpose([left.index(axis) for axis in keep])
        block = block if "c" in keep else block[..., None]
        if note:
            block = np.rint((np.nan_to_num(block, nan=low) - low) / step)
        at = tuple(
            slice(first.get(axis, 0), first.get(axis, 0) + n)
            for axis, n in zip("xyzc", block.shape, strict=True)
        )
        result[at] = block
    return result, note


def _add_nuclei(
    pynwb: Any, file: Any, plane: Any, specimen: Specimen, annotation: Annotation, drawn: Drawn
) -> None:
    """Add the table of nuclei to a file."""
    from hdmf.common import ElementIdentifiers, VectorData, VectorIndex

    voxels, ends = _voxels(drawn.regions)
    mask = VectorData(name="voxel_mask", description="voxels x, y, z of the nucleus", data=voxels)
    columns = [mask, VectorIndex(name="voxel_mask_index", data=ends, target=mask)]
    confidence = annotation.confidence

    def add(name: str, description: str, data: Any) -> None:
        columns.append(VectorData(name=name, description=description, data=data))

    add("ID_labels", "name of the cell, by eutely; empty where it has none", list(annotation.names))
    add("eutely_cell", COLUMNS["eutely_cell"], annotation.cells.astype(np.int64))
    add("eutely_confidence", COLUMNS["eutely_confidence"], confidence.astype(np.float64))
    taken = {column.name for column in columns} | {"id", "pixel_mask", "image_mask"}
    for key, values in specimen.features.items():
        name = _plain_name(key)
        name = f"{name}_feature" if name in taken else name
        taken.add(name)
        add(name, f"{FEATURE} {key}", np.array(values))
    table = pynwb.ophys.PlaneSegmentation(
        name="NeuroPALNeurons",
        description="nuclei: voxels, names, how sure they are, measurements",
        imaging_plane=plane,
        id=ElementIdentifiers(name="id", data=specimen.ids.astype(np.int64)),
        columns=columns,
        colnames=["voxel_mask", *(column.name for column in columns[2:])],
    )
    module = file.create_processing_module(name="NeuroPAL", description="nuclei and their names")
    module.add(
        pynwb.ophys.ImageSegmentation(name="NeuroPALSegmentation", plane_segmentations=[table])
    )


def _voxels(regions: Regions) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the voxels (k,) of all regions, one after the other, and where each ends."""
    depth, height, width = regions.shape
    check_memory("the voxels of nuclei", 48 * int(regions.counts.sum()), "their list")
    box: Sequence[tuple[int, ...]] = ((0, 0, 0), regions.shape, (height * width, width, 1))
    _, bounds, places = regions.voxels(*box)
    kind = np.dtype([("x", "u4"), ("y", "u4"), ("z", "u4"), ("weight", "f4")])
    voxels = np.zeros(len(places), kind)
    voxels["z"], voxels["y"], voxels["x"] = np.unravel_index(places, (depth, height, width))
    voxels["weight"] = 1.0
    return voxels, bounds[1:]
