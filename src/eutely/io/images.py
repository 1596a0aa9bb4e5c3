"""Images of specimens: which belongs to which, and what they have in nuclei and labels."""

import logging
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eutely.errors import ReadError
from eutely.io import nwb_file, volumes
from eutely.io.limits import check_memory
from eutely.io.sources import Files, Reading, ReadProgress, Source
from eutely.io.volumes import bioio
from eutely.io.volumes.image import Image, check_voxel_size, image_of
from eutely.io.volumes.volume import Volume, VoxelSize
from eutely.specimen import MICROMETRE, VOXEL, Specimen

if TYPE_CHECKING:
    from eutely.intensities import Regions
    from eutely.nuclei import Block

log = logging.getLogger("eutely")

SUFFIXES = (*volumes.SUFFIXES, *bioio.SUFFIXES, *nwb_file.SUFFIXES)
"""Endings of the names of images, longer endings first."""

TAILS = re.compile(
    r"[_. -](cp[_-]masks?|masks?|labels?|seg(mentation)?|stardist|raw|image|img|ome)$",
    re.IGNORECASE,
)
"""Last word of a file's name that says what it is, not of which specimen it is."""

CENTRE = 1.0
"""Radius in micrometres in which points without radii are measured: inside the nucleus of a
neuron."""

LABELS_SHARE = 0.5
"""Share of the labels in the progress of a volume with an image."""

OUTSIDE = 0.5
"""Share of the nuclei outside the image from which the two do not belong together."""


@dataclass(frozen=True)
class Images:
    """Images of specimens, in one file or in a folder.

    Attributes
    ----------
    path
        the image of the only specimen (``file.h5:dataset`` too), or a folder of images.
    channels
        names of the channels, see `eutely.io.volumes.image.image_of`.
    background
        whether the median of what surrounds a nucleus is taken off.
    """

    path: Path
    channels: tuple[str, ...] = ()
    background: bool = False

    @property
    def single(self) -> bool:
        """Whether there is one image, not a folder of them."""
        return not self.path.is_dir() or volumes.is_zarr(self.path)

    @cached_property
    def by_name(self) -> dict[str, list[Path]]:
        """The images of a folder, by specimen."""
        images: dict[str, list[Path]] = {}
        try:
            entries = sorted(self.path.iterdir())
        except OSError as error:
            raise ReadError(f"cannot read {self.path}: {error.strerror or error}") from error
        for path in entries:
            known = path.name.lower().endswith(SUFFIXES) or volumes.is_zarr(path)
            if known and not path.name.startswith("."):
                images.setdefault(without_tail(_stem(path)), []).append(path)
        return images

    def files(self) -> list[Path]:
        """Return all images: files that a command reads."""
        if self.single:
            return [self.path]
        return [path for paths in self.by_name.values() for path in paths]

    @contextmanager
    def opened(self, specimen: str) -> Iterator[Volume]:
        """Open the image of a specimen; see `eutely.io.volumes.opened`."""
        path, dataset = self.of(specimen)
        name = path.name.lower()
        opener: AbstractContextManager[Volume]
        if name.endswith(nwb_file.SUFFIXES):
            opener = nwb_file.open_nwb(path, dataset)
        elif name.endswith(bioio.SUFFIXES):
            opener = bioio.open_bioio(path)
        else:
            opener = volumes.opened(path, dataset, image=True)
        with opener as volume:
            yield volume

    def of(self, specimen: str) -> tuple[Path, str | None]:
        """Return the image of a specimen, and its place in an HDF5 file."""
        file, dataset = self.inside()
        if file is not None:
            return file, dataset
        if self.single:
            return self.path, None
        found = self.by_name.get(without_tail(specimen), [])
        exact = [path for path in found if _stem(path) == specimen]
        fitting = exact or found
        if len(fitting) == 1:
            return fitting[0], None
        if fitting:
            names = ", ".join(path.name for path in fitting[:5])
            raise ReadError(f"{self.path}: several images of {specimen}: {names}; keep one")
        some = [path.name for paths in self.by_name.values() for path in paths]
        there = f"found: {', '.join(sorted(some)[:3])}" if some else "no images there"
        raise ReadError(
            f"{self.path}: no image of {specimen} ({there}); expected a file of the same name, "
            f"such as {specimen}.tif"
        )

    def there(self) -> bool:
        """Return whether the file of ``file.h5:dataset`` exists."""
        file, _, _ = str(self.path).rpartition(":")
        return bool(file) and Path(file).is_file()

    def inside(self) -> tuple[Path | None, str]:
        """Return file and dataset of ``file.h5:dataset``; None for any other path that exists."""
        file, _, dataset = str(self.path).rpartition(":")
        if self.path.exists():
            return None, ""
        if not file or not Path(file).is_file():
            raise ReadError(f"image {self.path} does not exist; check the path")
        return Path(file), dataset

    def check(self, specimens: int) -> None:
        """Raise an error if there is no image, or only one for several specimens."""
        self.inside()
        if specimens > 1 and self.single:
            raise ReadError(
                f"image {self.path}: one image for {specimens} specimens; give a folder with an "
                "image of the same name for each"
            )

    def remembered(self, files: Files, specimens: Sequence[str]) -> Files:
        """Return files with the images of specimens; a specimen without one is left out."""
        self.check(len(specimens))
        places = {}
        for name in specimens:
            try:
                path, dataset = self.of(name)
            except ReadError:
                continue
            places[name] = str(path.resolve()) + (f":{dataset}" if dataset else "")
        if specimens and not places:
            self.of(specimens[0])  # says what is wrong
        return replace(files, images=places, channels=self.channels)


@contextmanager
def image_in(
    files: Files, specimen: str, like: tuple[int, int, int] | None = None
) -> Iterator[Image | None]:
    """Open the image of a specimen that a folder remembers; None where there is none.

    Parameters
    ----------
    files
        of the folder.
    specimen
        its name.
    like
        voxels of its labels, see `eutely.io.volumes.image.image_of`.
    """
    place = files.images.get(specimen)
    images = None if place is None else Images(Path(place), files.channels)
    if images is None or not (images.path.exists() or images.there()):
        yield None
        return
    with images.opened(specimen) as raw:
        image = image_of(raw, like, files.channels)
        size = raw.voxel_size or files.size_of(specimen)
        yield replace(image, volume=replace(image.volume, voxel_size=size))


def with_own_image(files: Files, specimen: str) -> Files:
    """Return files with the image beside the nuclei of a specimen, where it came from NWB.

    An image that a person gave counts first; of several in the file, none is chosen.
    """
    kind, place, _ = files.others.get(specimen, ("", "", ""))
    if kind != "nwb" or specimen in files.images or files.channels or not Path(place).exists():
        return files
    with nwb_file.opened(Path(place)) as file:
        single = len(nwb_file.volumes_of(file)) == 1
    return replace(files, images={**files.images, specimen: place}) if single else files


def without_tail(name: str) -> str:
    """Return the name of a specimen from that of a file.

    >>> without_tail("worm1_cp_masks"), without_tail("worm1_raw"), without_tail("worm1")
    ('worm1', 'worm1', 'worm1')
    """
    short = TAILS.sub("", name)
    return short or name


def _stem(path: Path) -> str:
    """Return the name of an image without its ending."""
    low = path.name.lower()
    suffix = next((end for end in SUFFIXES if low.endswith(end)), "")
    return path.name[: len(path.name) - len(suffix)]


def in_image(specimen: Specimen, images: Images, voxel_size: VoxelSize | None) -> Specimen:
    """Return points with what their image has within their radii.

    Parameters
    ----------
    specimen
        with radii, in micrometres or voxels.
    images
        where to find the image.
    voxel_size
        of the image, which takes precedence over its file.
    """
    from eutely.intensities import inside

    if not np.isfinite(specimen.radii).any():
        if specimen.unit != MICROMETRE:
            raise ReadError(
                f"{specimen.name}: nuclei without radii cannot be measured in an image; add a "
                "column r"
            )
        log.info(
            "%s: nuclei without radii are measured within %g um of their centres",
            specimen.name, CENTRE,
        )  # fmt: skip
        balls = np.full(specimen.radii.shape, CENTRE)
        measured = in_image(replace(specimen, radii=balls), images, voxel_size)
        return replace(measured, radii=specimen.radii)
    with images.opened(specimen.name) as raw:
        image = image_of(raw, None, images.channels)
        size = voxel_size or raw.voxel_size
        if specimen.unit == VOXEL:
            size = (1.0, 1.0, 1.0)
        elif specimen.unit != MICROMETRE or size is None:
            raise ReadError(
                f"{specimen.name}: coordinates in '{specimen.unit}' and voxels of "
                f"{'unknown size' if size is None else 'known size'} in {raw.path}; give the "
                "coordinates in um or voxel (column unit), and --voxel-size X,Y,Z where it is "
                "unknown"
            )
        regions = inside(specimen, raw.shape, size)
        outside = int((regions.counts == 0).sum())
        if outside > OUTSIDE * len(specimen):
            raise ReadError(
                f"{specimen.name}: {outside} of {len(specimen)} nuclei lie outside {raw.path}; "
                "check unit, voxel size and order of axes"
            )
        if outside:
            log.warning(
                "%s: %d of %d nuclei lie outside the image or have no radius",
                specimen.name, outside, len(specimen),
            )  # fmt: skip
        return in_regions(specimen, regions, image, images, size)


def in_regions(
    specimen: Specimen, regions: "Regions", image: Image, images: Images, size: VoxelSize
) -> Specimen:
    """Return a specimen with the intensities of its nuclei as features.

    Parameters
    ----------
    specimen
        of n nuclei.
    regions
        the voxels of each.
    image
        of the same shape.
    images
        whether the background is taken off.
    size
        x, y, z of a voxel, in the unit of the specimen.
    """
    from eutely.intensities import STATISTICS, intensities, shells

    count = len(specimen)
    if images.background:
        regions = regions.joined(shells(specimen, regions, size))
    check_memory(image.volume.path, 3 * regions.runs.nbytes, "runs of voxels")
    check = partial(check_memory, image.volume.path, what="values of nuclei")
    values = intensities(image.blocks(), regions, len(image.channels), check)
    features = dict(specimen.features)
    for number, channel in enumerate(image.channels):
        if not channel:
            continue
        columns = dict(zip(STATISTICS, values[number, :count].T, strict=True))
        if images.background:
            around = values[number, count:, STATISTICS.index("median")]
            if np.isnan(around).any():
                log.warning(
                    "%s: %d nuclei of %s have no free voxel around them: the median of all others "
                    "is their background",
                    image.volume.path, np.isnan(around).sum(), specimen.name,
                )  # fmt: skip
                known = around[np.isfinite(around)]
                around = np.where(np.isnan(around), np.median(known) if len(known) else 0.0, around)
            columns["mean"] = columns["mean"] - around
            columns["median"] = columns["median"] - around
            columns["total"] = columns["total"] - around * regions.counts[:count]
            columns["background"] = around
        taken = [f"{channel}_{key}" for key in columns if f"{channel}_{key}" in specimen.features]
        if taken:
            raise ReadError(
                f"{specimen.name}: has a column {taken[0]} already; name the channels of the image "
                "otherwise: --channels"
            )
        features |= {f"{channel}_{key}": column for key, column in columns.items()}
    return replace(specimen, features=features)


def read_labels(
    file: Source, voxel_size: VoxelSize | None, progress: ReadProgress, images: Images | None
) -> Reading:
    """Read the nuclei of a label volume.

    Parameters
    ----------
    file
        a label volume.
    voxel_size
        takes precedence over the file; without both, the image's is used.
    progress
        callback.
    images
        to measure the nuclei in.
    """
    # here, because importing Numba is slow
    from eutely.intensities import RunCollector
    from eutely.nuclei import measure

    with ExitStack() as stack:
        raw = None if images is None else stack.enter_context(images.opened(file.name))
        volume = stack.enter_context(
            volumes.open_volume(
                file.path, voxel_size, file.part, None if raw is None else raw.voxel_size
            )
        )
        image = None
        if images is not None and raw is not None:
            image = image_of(raw, volume.shape, images.channels)
            if voxel_size is None:
                check_voxel_size(raw, volume.path, volume.size)
        total, done = math.prod(volume.shape), 0
        runs = None if image is None else RunCollector(volume.shape)
        share = 1.0 if image is None else LABELS_SHARE

        def counted() -> "Iterator[Block]":
            nonlocal done
            for block, start in volume.blocks():
                if runs is not None:
                    runs.add(block, start)
                    check_memory(volume.path, 4 * runs.nbytes, "runs of labels")
                yield block, start
                done += block.size
                progress(share * done / total)

        specimen = measure(counted(), volume.shape, volume.size, file.name)
        if image is not None and images is not None and runs is not None:
            specimen = in_regions(specimen, runs.regions(specimen.ids), image, images, volume.size)
        return Reading(specimen, file.path, volume.size)
