"""Label volumes in TIFF: plain, OME, ImageJ, BigTIFF; page by page, compressed or not.

OME-XML of strangers: only the attributes that are needed, no tree, no entities, no DTD.
"""

import logging
import math
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError, WriteError
from eutely.io.limits import check_regular, check_unpacked
from eutely.io.volumes.volume import (
    BROKEN,
    Volume,
    VoxelSize,
    broken,
    grid_steps,
    in_micrometres,
    slab_depth,
    slabs,
)
from eutely.io.whole import new_file

DEEPEST = 64
"""Elements inside each other; OME-XML has about ten."""

MOST_PLANES = 10_000_000
"""Planes of an image, and largest number of a plane."""

COUNTS = ("SizeZ", "SizeC", "SizeT", "SizeX", "SizeY", "IFD", "PlaneCount", "NumPlanes",
          "FirstZ", "FirstC", "FirstT")  # fmt: skip
"""Attributes by which readers allocate lists of planes."""

Element = tuple[str, dict[str, str]]
"""Name of an element without its name space, and its attributes."""


def ome_elements(xml: str) -> list[Element]:
    """Return the elements ``Pixels``, ``Channel``, ``TiffData`` and ``UUID`` of OME-XML, in order.

    Raises
    ------
    ValueError
        if it is malformed, has a DTD, is nested too deeply, or counts too many planes.
    """
    elements: list[Element] = []
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"OME metadata nested more than {DEEPEST} deep")
        name = tag.rpartition(":")[2]
        if name in {"Pixels", "Channel", "TiffData", "UUID"}:
            elements.append((name, attributes))

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise ValueError("OME metadata with a DTD")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(xml.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise ValueError(f"malformed OME metadata, {error}") from error
    for name, attributes in elements:
        for key in COUNTS:
            if not 0 <= int(attributes.get(key, 0)) <= MOST_PLANES:
                raise ValueError(f"OME metadata: {name} {key} is {attributes[key][:20]}")
    return elements


def check_ome(xml: str) -> None:
    """Raise a ValueError if OME-XML is not safe to be read by others, or points elsewhere."""
    for name, attributes in ome_elements(xml):
        file = attributes.get("FileName", "")
        if name == "UUID" and ("/" in file or "\\" in file or "\0" in file):
            raise ValueError(f"OME metadata: the file {file[:80]} lies outside the folder")
        planes = [int(attributes.get(f"Size{axis}", 1)) for axis in "ZCT"]
        if planes[0] * planes[1] * planes[2] > MOST_PLANES:
            raise ValueError(f"OME metadata: {' x '.join(map(str, planes))} planes")


def ome_voxel_size(xml: str) -> tuple[VoxelSize | None, str]:
    """Return x, y, z in micrometres of the first image, or None and the reason."""
    pixels = next((found for name, found in ome_elements(xml) if name == "Pixels"), None)
    if pixels is None:
        return None, "OME metadata without an image"
    sides = []
    for axis in "XYZ":
        text = pixels.get(f"PhysicalSize{axis}")
        scale = in_micrometres(pixels.get(f"PhysicalSize{axis}Unit", "µm"))
        if text is None or scale is None:
            return None, f"OME metadata has no PhysicalSize{axis} in a unit of length"
        sides.append(float(text) * scale)
    x, y, z = sides
    if not min(sides) > 0:
        return None, f"metadata says {x} x {y} x {z}"
    return (x, y, z), ""


def ome_channels(xml: str) -> tuple[str, ...]:
    """Return the names of the channels of the first image; () unless all have one."""
    elements = ome_elements(xml)
    begins = [number for number, (name, _) in enumerate(elements) if name == "Pixels"]
    first = elements[slice(*begins[:2])] if begins[1:] else elements
    names = tuple(found.get("Name", "") for name, found in first if name == "Channel")
    return names if all(names) else ()


SUFFIXES = (
    ".ome.tif", ".ome.tiff", ".ome.btf", ".tif", ".tiff", ".btf", ".tf8", ".tf2",
)  # fmt: skip
"""Endings of TIFF files, longer endings first."""

COMPRESSIONS = {1, 5, 8, 32773, 32946, 34925, 34926, 50000}
"""Allowed compressions, all without loss: none, LZW, deflate, PackBits, LZMA, Zstandard."""


@contextmanager
def open_tiff(path: Path) -> Iterator[Volume]:
    """Open the first image series of a TIFF file."""
    import tifffile

    check_regular(path)
    with ExitStack() as stack:
        # tifffile only logs what is missing from a truncated file, and continues.
        logged = stack.enter_context(_LoggedErrors())
        try:
            file = stack.enter_context(tifffile.TiffFile(path))
            volume = _volume(file, path, logged)
            logged.check()
        except (*BROKEN, tifffile.TiffFileError) as error:
            raise broken(path, error) from error
        yield volume


class _LoggedErrors(logging.Handler):
    """Collects the errors that tifffile logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message."""
        self.messages.append(record.getMessage())

    def check(self) -> None:
        """Raise the first error."""
        if self.messages:
            raise ValueError(self.messages[0])

    def __enter__(self) -> Self:
        logging.getLogger("tifffile").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("tifffile").removeHandler(self)


def _volume(file: Any, path: Path, logged: _LoggedErrors) -> Volume:
    len(file.pages)  # reads the list of all pages
    if file.is_ome:
        check_ome(file.pages[0].description)
    series = file.series[0]
    # A stack of pages along an unnamed axis is a stack along z; of several, the last one.
    axes = re.sub(r"[iqo](?=[^iqo]*$)", "z", series.axes.lower())
    if axes.count("z") > 1:
        axes = series.axes.lower()
    size, why = _voxel_size(file)
    shape = tuple(map(int, series.shape))
    bytes_of_page = series.keyframe.nbytes if series.dataoffset is None else 1
    tile = math.prod(series.keyframe.chunks) * series.dtype.itemsize  # may exceed its page
    deep = math.prod(grid_steps(shape, series.dtype.itemsize)) * series.dtype.itemsize
    return Volume(
        path=str(path),
        axes=axes,
        stored=shape,
        dtype=np.dtype(series.dtype),
        voxel_size=size,
        parts=lambda: _checked_parts(file, series, path, logged),
        why_unknown=why,
        part_bytes=max(bytes_of_page, tile, deep),
        channels=ome_channels(file.ome_metadata) if file.is_ome else (),
        named=not set("iqo") & set(series.axes.lower()),
    )


def _checked_parts(
    file: Any, series: Any, path: Path, logged: _LoggedErrors
) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield slabs of a series, after checks of what it declares."""
    if int(series.keyframe.compression) not in COMPRESSIONS:
        name = getattr(series.keyframe.compression, "name", series.keyframe.compression)
        raise ReadError(f"{path}: compression {name}, expected one without loss such as deflate")
    size = file.filehandle.size
    if series.dataoffset is not None:
        if series.dataoffset + series.nbytes > size:
            raise EOFError(f"{series.nbytes} bytes of voxels in a file of {size}")
    else:
        check_unpacked(path, series.nbytes, size)
    yield from _parts(file, series)
    logged.check()


def _parts(file: Any, series: Any) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield slabs of a series: directly from the file if it is contiguous, or page by page."""
    shape = tuple(map(int, series.shape))
    if series.dataoffset is not None:
        dtype = series.dtype.newbyteorder(file.byteorder)
        file.filehandle.seek(series.dataoffset)
        for start, form in slabs(shape, dtype.itemsize):
            slab = np.empty(form, dtype)
            if file.filehandle.readinto(slab) != slab.nbytes:
                raise EOFError(f"the file ends before entry {start} of {shape}")
            yield slab, start
        return
    pages = len(series.pages)
    for number, page in enumerate(series.pages):
        if page is None or not all(page.databytecounts) or not all(page.dataoffsets):
            raise ValueError(f"page {number} of {pages} is missing, or a part of it")
    if pages == 1:
        yield series.asarray(), (0,) * len(shape)
        return
    axes = next((n for n in range(1, len(shape)) if math.prod(shape[:n]) == pages), 0)
    if not axes:
        raise ValueError(f"{pages} pages for {shape} entries")
    last, rest = shape[axes - 1], (0,) * (len(shape) - axes)
    step = slab_depth((pages, *shape[axes:]), series.dtype.itemsize)
    for outer in np.ndindex(*shape[: axes - 1]):
        before = int(np.ravel_multi_index((*outer, 0), shape[:axes]))
        for first in range(0, last, step):
            some = range(before + first, before + min(first + step, last))
            # Several pages at once are decompressed by several threads.
            slab = file.asarray(key=some, series=series)
            yield slab.reshape(*(1,) * len(outer), -1, *shape[axes:]), (*outer, first, *rest)


def _voxel_size(file: Any) -> tuple[VoxelSize | None, str]:
    """Return x, y, z in micrometres, or None and the reason."""
    if file.is_ome:
        return ome_voxel_size(file.ome_metadata)
    if file.is_imagej:
        metadata = file.imagej_metadata or {}
        unit = str(metadata.get("unit", ""))
        scale = in_micrometres(unit)
        tags = file.pages[0].tags
        if scale is None:
            return None, f"ImageJ unit '{unit}'" if unit else "ImageJ metadata without a unit"
        if "XResolution" not in tags or "YResolution" not in tags:
            return None, "ImageJ metadata without a pixel size"
        x, y = (_pixel_side(tags[f"{axis}Resolution"].value) for axis in "XY")
        if "spacing" not in metadata:
            return None, (
                f"the z spacing is missing: ImageJ metadata say {x * scale:.4g} x {y * scale:.4g} "
                "um and no depth, as where it was not set or is 1"
            )
        return _positive(x * scale, y * scale, abs(float(metadata["spacing"])) * scale)
    return None, "neither OME nor ImageJ metadata"


def _pixel_side(resolution: tuple[int, int]) -> float:
    """Return the side of a pixel from the resolution (pixels, units of length)."""
    pixels, lengths = resolution
    return lengths / pixels if pixels else 0.0


def _positive(x: float, y: float, z: float) -> tuple[VoxelSize | None, str]:
    if min(x, y, z) > 0:
        return (x, y, z), ""
    return None, f"metadata says {x} x {y} x {z}"


def write_tiff(labels: NDArray[np.integer], path: Path, voxel_size: VoxelSize) -> None:
    """Write a compressed OME-TIFF (BigTIFF where needed)."""
    import tifffile

    if labels.dtype.itemsize == 8:  # OME has no integers of 64 bits
        least, most = int(labels.min(initial=0)), int(labels.max(initial=0))
        smaller = np.dtype(np.int32 if least < 0 else np.uint32)
        if most > np.iinfo(smaller).max or least < np.iinfo(smaller).min:
            raise WriteError(
                f"the largest label is {most}, OME-TIFF holds labels up to {2**32 - 1}; write "
                ".zarr, .h5 or .nrrd"
            )
        labels = labels.astype(smaller)
    metadata: dict[str, Any] = {"axes": "ZYX"}
    for axis, side in zip("XYZ", voxel_size, strict=True):
        metadata |= {f"PhysicalSize{axis}": side, f"PhysicalSize{axis}Unit": "µm"}
    with new_file(path) as file:
        tifffile.imwrite(
            file,
            labels,
            ome=True,
            bigtiff=labels.nbytes > 2**31,
            photometric="minisblack",
            compression="zlib",
            metadata=metadata,
        )
