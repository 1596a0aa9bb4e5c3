"""NWB files as laboratories publish them, and with annotations: read, written, refused."""

import logging
import lzma
import sys
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy as np
import pytest

from eutely import Specimen, read
from eutely.annotation import Annotation
from eutely.errors import EutelyError, ReadError
from eutely.io.limits import VARIABLE
from eutely.io.nwb_write import COLUMNS, write_annotated
from eutely.io.tables import write_table

SIZE = (0.2, 0.3, 0.5)
NAMES = ("AVAL", "AVAR", "", "RIS", "", "I2L")
TABLE = "processing/NeuroPAL/NeuroPALSegmentation/NeuroPALNeurons"


def pixels():
    """The image in the published file, see make_neuropal.py."""
    return np.random.default_rng(0).integers(0, 1000, (30, 20, 12, 5)).astype(np.uint16)


def centres():
    return np.array([[2 + 4 * n, 3 + 2 * n, 1 + n] for n in range(6)])


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A file that the extension ndx-multichannel-volume has written."""
    path = tmp_path_factory.mktemp("nwb") / "worm.nwb"
    path.write_bytes(lzma.decompress(Path(__file__).with_name("neuropal.nwb.xz").read_bytes()))
    return path


def plain_nwb(path, spacing=SIZE, unit="micrometers", names=NAMES, tables=1):
    """Write a file with pynwb alone: texts as names, no image."""
    import pynwb
    from pynwb.ophys import ImageSegmentation, OpticalChannel, PlaneSegmentation

    file = pynwb.NWBFile(
        session_description="worm",
        identifier="w",
        session_start_time=datetime(2024, 1, 1, tzinfo=UTC),
    )
    file.subject = pynwb.file.Subject(
        subject_id="w", species="Caenorhabditis elegans", sex="XX", age="P2D"
    )
    device = file.create_device(name="microscope")
    channel = OpticalChannel(name="c", description="c", emission_lambda=500.0)
    plane = file.create_imaging_plane(
        name="plane", optical_channel=channel, description="d", device=device, location="head",
        excitation_lambda=488.0, indicator="GFP", grid_spacing=spacing, grid_spacing_unit=unit,
    )  # fmt: skip
    module = file.create_processing_module(name="ophys", description="d")
    made = []
    for number in range(tables):
        table = PlaneSegmentation(name=f"table{number}", description="d", imaging_plane=plane)
        for x, y, z in centres().tolist():
            table.add_roi(voxel_mask=[[x, y, z, 1.0]])
        if names:
            table.add_column(name="ID_labels", description="names", data=list(names))
        made.append(table)
    module.add(ImageSegmentation(plane_segmentations=made))
    with pynwb.NWBHDF5IO(str(path), "w") as io:
        io.write(file)


def annotated(worm):
    return Annotation(
        worm.name,
        worm.ids,
        np.array([3, 1, -1, 0, 2, 5], np.int32),
        ("AVBL", "AVAR", "", "RIS", "", "I2L"),
        np.array([0.9, 0.8, np.nan, 0.7, 0.6, 0.5]),
        ((),) * 6,
        1.0,
        np.zeros((6, 3)),
    )


# --- read


def test_a_published_file_has_names_centres_and_colours(published):
    (worm,) = read(published)
    assert (worm.name, worm.unit, worm.names) == ("worm", "um", NAMES)
    assert worm.ids.tolist() == list(range(6))
    np.testing.assert_allclose(worm.centroids, centres() * SIZE)
    assert np.isnan(worm.radii).all()  # only centres are known
    assert list(worm.features) == ["R", "G", "B", "W"]
    grid = np.stack(np.meshgrid(*map(np.arange, (30, 20, 12)), indexing="ij"), axis=-1) * SIZE
    for number in range(6):
        ball = np.linalg.norm(grid - worm.centroids[number], axis=-1) <= 1.0 + 1e-9
        for colour, channel in zip("RGBW", (3, 2, 0, 4), strict=True):
            expected = np.median(pixels()[..., channel][ball])
            assert worm.features[colour][number] == expected


def test_masks_of_a_volume_segmentation_have_sizes(published):
    (worm,) = read(f"{published}:Masks")
    assert worm.names == tuple(f"N{n}" for n in range(6))
    np.testing.assert_allclose(worm.centroids, (centres() + 0.25) * SIZE)
    assert np.isfinite(worm.radii).all()
    x, y, z = centres()[2]
    values = [pixels()[x, y, z, 3], pixels()[x + 1, y, z, 3]]
    assert min(values) >= 0
    assert set(worm.features) == set("RGBW")


def test_the_image_of_a_file_measures_any_points(published, tmp_path):
    worm = Specimen.from_arrays("w", centres() * SIZE, radii=np.full(6, 0.05), unit="um")
    write_table(worm, tmp_path / "w.csv")
    (found,) = read(tmp_path / "w.csv", image=published)
    x, y, z = centres().T
    assert found.features["mNeptune_2.5_mean"].tolist() == pixels()[x, y, z, 3].tolist()


def test_a_file_of_pynwb_alone(tmp_path):
    plain_nwb(tmp_path / "a.nwb")
    (worm,) = read(tmp_path / "a.nwb")
    assert worm.names == NAMES
    np.testing.assert_allclose(worm.centroids, centres() * SIZE)
    assert not worm.features
    (other,) = read(tmp_path / "a.nwb", voxel_size=(1, 1, 2))
    np.testing.assert_allclose(other.centroids, centres() * [1, 1, 2])


def test_metres_and_micrometres_that_are_called_metres(tmp_path, caplog):
    plain_nwb(tmp_path / "a.nwb", [1e-6, 1e-6, 2e-6], "meters")
    assert read(tmp_path / "a.nwb")[0].centroids[0] == pytest.approx([2, 3, 2])
    plain_nwb(tmp_path / "b.nwb", SIZE, "meters")
    with caplog.at_level(logging.WARNING, "eutely"):
        (worm,) = read(tmp_path / "b.nwb")
    assert "taken for micrometres" in caplog.text
    np.testing.assert_allclose(worm.centroids, centres() * SIZE)


def test_colours_of_voxels_are_averaged(tmp_path):
    kind = np.dtype([(a, "u4") for a in ("x", "y", "z", "R", "G", "B", "W")] + [("weight", "f4")])
    plain_nwb(tmp_path / "a.nwb")
    with h5py.File(tmp_path / "a.nwb", "r+") as file:
        table = file["processing/ophys/ImageSegmentation/table0"]
        voxels = np.zeros(12, kind)
        for axis, column in zip("xyz", np.repeat(centres(), 2, axis=0).T, strict=True):
            voxels[axis] = column
        voxels["x"][1::2] += 1
        voxels["R"] = np.arange(12)
        for key in ("voxel_mask", "voxel_mask_index"):
            del table[key]
        table["color_voxel_mask"] = voxels
        table["color_voxel_mask_index"] = np.arange(2, 13, 2, dtype=np.uint8)
    (worm,) = read(tmp_path / "a.nwb")
    assert worm.features["R"].tolist() == [0.5, 2.5, 4.5, 6.5, 8.5, 10.5]
    assert np.isfinite(worm.radii).all()


# --- written


def inspected(path):
    from nwbinspector import inspect_nwbfile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = inspect_nwbfile(nwbfile_path=str(path))
        return sorted((m.importance.name, m.check_function_name, m.object_name) for m in found)


@pytest.mark.parametrize("part", [None, "Masks"])
def test_annotations_are_new_columns_of_a_valid_copy(published, tmp_path, part):
    import pynwb

    before = published.read_bytes()
    place = f"{published}:{part}" if part else published
    (worm,) = read(place)
    out = tmp_path / "named.nwb"
    write_annotated(published, out, annotated(worm), part)
    assert published.read_bytes() == before
    (again,) = read(f"{out}:{part}" if part else out)
    assert again.centroids.tobytes() == worm.centroids.tobytes()
    assert (again.names, again.ids.tolist()) == (worm.names, worm.ids.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pynwb.NWBHDF5IO(str(out), "r", load_namespaces=True) as io:
            tables = io.read().processing["NeuroPAL"]["NeuroPALSegmentation"]
            table = tables[part or "NeuroPALNeurons"].to_dataframe()
    assert table["eutely_name"].tolist() == ["AVBL", "AVAR", "", "RIS", "", "I2L"]
    assert table["eutely_cell"].tolist() == [3, 1, -1, 0, 2, 5]
    assert table["eutely_confidence"].tolist()[:2] == [0.9, 0.8]
    if part is None:  # the inspector takes its time
        assert inspected(out) == inspected(published)


def test_a_copy_of_a_file_of_pynwb_has_no_faults_and_can_be_annotated_again(tmp_path):
    import pynwb

    plain_nwb(tmp_path / "a.nwb")
    (worm,) = read(tmp_path / "a.nwb")
    write_annotated(tmp_path / "a.nwb", tmp_path / "b.nwb", annotated(worm))
    write_annotated(tmp_path / "b.nwb", tmp_path / "c.nwb", annotated(worm))
    for name in ("b.nwb", "c.nwb"):
        with pynwb.NWBHDF5IO(str(tmp_path / name), "r", load_namespaces=True) as io:
            assert list(pynwb.validate(io=io)) == []
            table = io.read().processing["ophys"]["ImageSegmentation"]["table0"]
            assert table.colnames == ("voxel_mask", "ID_labels", *COLUMNS)
    assert not [row for row in inspected(tmp_path / "c.nwb") if "SUGGESTION" not in row[0]]


def test_pynwb_is_asked_for_in_one_line(published, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynwb", None)
    (worm,) = read(published)  # reading needs no extra
    with pytest.raises(EutelyError, match=r"pip install 'eutely\[nwb\]' .*pip install '.\[nwb\]'"):
        write_annotated(published, tmp_path / "out.nwb", annotated(worm))
    assert not list(tmp_path.iterdir())


# --- refused


def change(path, published, edit):
    path.write_bytes(published.read_bytes())
    with h5py.File(path, "r+") as file:
        edit(file, file[TABLE])
    return path


def no_ids(file, table):
    del table["id"]


def too_few_ids(file, table):
    del table["id"]
    table["id"] = np.arange(4)


def twice(file, table):
    table["id"][1] = 0


def backwards(file, table):
    table["voxel_mask_index"][2] = 200


def other_columns(file, table):
    del table["voxel_mask"]
    table["voxel_mask"] = np.zeros(6)


def no_names(file, table):
    del table["ID_labels_index"]


def outside(file, table):
    file["acquisition/NeuroPALImageRaw/RGBW_channels"][0] = 77


def elsewhere(file, table):
    del table["voxel_mask"]
    table["voxel_mask"] = h5py.ExternalLink("other.nwb", "/x")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (no_ids, "without ids"),
        (too_few_ids, "4 nuclei, but masks for 6"),
        (twice, "id 0 occurs 2 times"),
        (backwards, "do not fit"),
        (other_columns, "no list of voxels"),
        (no_names, "names in ID_labels for 6 nuclei"),
        (outside, "channel 77 of 5"),
    ],
)
def test_damaged_tables_are_one_line(published, tmp_path, edit, words):
    path = change(tmp_path / "a.nwb", published, edit)
    with pytest.raises(EutelyError, match=words) as caught:
        read(path)
    assert len(str(caught.value).splitlines()) == 1


def test_an_image_that_declares_too_much_is_refused_before_anything_is_allocated(
    published, tmp_path
):
    def huge(file, table):
        image = file["acquisition/NeuroPALImageRaw"]
        del image["data"]
        image.create_dataset("data", shape=(2**16,) * 3 + (5,), dtype="u2", chunks=(8, 8, 8, 5))

    path = change(tmp_path / "a.nwb", published, huge)
    with pytest.raises(ReadError, match="65536 x 65536 rows takes"):
        read(path)


def test_links_to_other_files_are_refused(published, tmp_path):
    path = change(tmp_path / "a.nwb", published, elsewhere)
    with pytest.raises(ReadError, match="link to another file"):
        read(f"{path}:NeuroPALNeurons")


def test_files_that_are_none_and_choices(published, tmp_path, monkeypatch):
    (tmp_path / "a.nwb").write_text("text")
    with pytest.raises(ReadError, match="cannot read"):
        read(tmp_path / "a.nwb")
    h5py.File(tmp_path / "b.nwb", "w").close()
    with pytest.raises(ReadError, match="no segmentation with voxel masks"):
        read(tmp_path / "b.nwb")
    plain_nwb(tmp_path / "c.nwb", tables=2)
    with pytest.raises(ReadError, match=r"several segmentations .*name one: .*c.nwb:table0"):
        read(tmp_path / "c.nwb")
    assert len(read(f"{tmp_path}/c.nwb:table1")[0]) == 6
    with pytest.raises(ReadError, match="no segmentation 'table9'"):
        read(f"{tmp_path}/c.nwb:table9")
    plain_nwb(tmp_path / "d.nwb", spacing=None)
    with pytest.raises(ReadError, match="unknown voxel size"):
        read(tmp_path / "d.nwb")
    whole = published.read_bytes()
    (tmp_path / "e.nwb").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReadError, match="cannot read"):
        read(tmp_path / "e.nwb")
    monkeypatch.setenv(VARIABLE, "200")
    with pytest.raises(ReadError, match="more than the limit"):
        read(published)


def test_other_nuclei_are_not_written(published, tmp_path):
    (worm,) = read(published)
    other = replace(annotated(worm), ids=worm.ids + 1)
    with pytest.raises(ReadError, match="not those that were annotated"):
        write_annotated(published, tmp_path / "out.nwb", other)
    assert not list(tmp_path.iterdir())
