"""The nuclei of a label volume, with what its image has in each, block by block."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from eutely.io import volumes
from eutely.io.images import Images, in_regions
from eutely.io.limits import check_memory
from eutely.io.sources import Reading, ReadProgress, Source
from eutely.io.volumes.image import check_voxel_size, image_of
from eutely.io.volumes.volume import VoxelSize

if TYPE_CHECKING:
    from eutely.nuclei import Block

LABELS_SHARE = 0.5
"""Share of the labels in the progress of a volume with an image."""


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
