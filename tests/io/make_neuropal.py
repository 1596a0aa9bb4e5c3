"""Writes neuropal.nwb.xz, a small file as laboratories publish NeuroPAL volumes.

It is made by the extension itself (ndx-multichannel-volume 0.1.12, which needs pynwb before 3):
an image of 30 x 20 x 12 voxels and five channels, the centres of six neurons with ``ID_labels``
that are split into characters, and the same six neurons with masks as a ``VolumeSegmentation``.

Run: python tests/io/make_neuropal.py (in an environment with the extension and scikit-image)
"""

import lzma
import warnings
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

NAMES = ("AVAL", "AVAR", "nan", "RIS", "", "I2L")
RGBW = (3, 2, 0, 4)


def pixels() -> np.ndarray:
    """The image: x, y, z, channel."""
    return np.random.default_rng(0).integers(0, 1000, (30, 20, 12, 5)).astype(np.uint16)


def centre(number: int) -> tuple[int, int, int]:
    """The voxel x, y, z of a neuron."""
    return 2 + 4 * number, 3 + 2 * number, 1 + number


def main() -> None:
    import ndx_multichannel_volume as ndx
    from pynwb import NWBHDF5IO, H5DataIO, NWBFile
    from pynwb.ophys import ImageSegmentation, PlaneSegmentation

    file = NWBFile(
        session_description="C. elegans head NeuroPAL",
        identifier="worm1",
        session_start_time=datetime(2021, 2, 24, tzinfo=UTC),
    )
    file.subject = ndx.CElegansSubject(
        subject_id="worm1", description="a simulated worm", species="Caenorhabditis elegans",
        sex="O", age="P2D", growth_stage="YA", strain="OH16230", cultivation_temp=20.0,
    )  # fmt: skip
    device = file.create_device(name="Microscope", description="none")
    names = ("mTagBFP2", "CyOFP1", "GFP", "mNeptune 2.5", "Tag RFP-T")
    channels = [
        ndx.OpticalChannelPlus(
            name=name, description=name, excitation_lambda=488.0, emission_lambda=505.0,
            excitation_range=[480.0, 490.0], emission_range=[500.0, 510.0],
        )
        for name in names
    ]  # fmt: skip
    order = ndx.OpticalChannelReferences(
        name="order_optical_channels", channels=[f"{name}-488-505" for name in names]
    )
    volume = ndx.ImagingVolume(
        name="NeuroPALImVol", description="NeuroPAL", optical_channel_plus=channels,
        order_optical_channels=order, device=device, location="head",
        grid_spacing=[0.2, 0.3, 0.5], grid_spacing_unit="micrometers", reference_frame="head",
    )  # fmt: skip
    file.add_imaging_plane(volume)
    file.add_acquisition(
        ndx.MultiChannelVolume(
            name="NeuroPALImageRaw", description="raw", RGBW_channels=list(RGBW),
            data=H5DataIO(pixels(), compression=True), imaging_volume=volume,
        )
    )  # fmt: skip
    centres = PlaneSegmentation(
        name="NeuroPALNeurons", description="Neuron centers", imaging_plane=volume
    )
    masks = ndx.VolumeSegmentation(
        name="Masks", description="Neuron masks", imaging_volume=volume,
        labels=[f"N{number}" for number in range(6)],
    )  # fmt: skip
    for number in range(6):
        x, y, z = centre(number)
        centres.add_roi(voxel_mask=[[x, y, z, 1.0]])
        more = [[x + 1, y, z, 1.0], [x, y + 1, z, 1.0], [x, y, z + 1, 1.0]]
        masks.add_roi(voxel_mask=[[x, y, z, 1.0], *more])
    centres.add_column(
        name="ID_labels", description="ROI ID labels", data=[list(name) for name in NAMES],
        index=True,
    )  # fmt: skip
    module = file.create_processing_module(name="NeuroPAL", description="NeuroPAL image data")
    tables = [centres, masks]
    module.add(ImageSegmentation(name="NeuroPALSegmentation", plane_segmentations=tables))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "neuropal.nwb"
        with NWBHDF5IO(str(path), "w") as io:
            io.write(file)
        packed = lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
    Path(__file__).with_name("neuropal.nwb.xz").write_bytes(packed)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
