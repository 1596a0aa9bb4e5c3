"""Annotations in the formats of others: OME-Zarr labels, AnnData, NWB; nothing where it fails."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.io.volumes import write_volume

SIDE = 0.5


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def voxels_of(worm: eutely.Specimen) -> np.ndarray:
    """The voxel of each nucleus, x, y, z."""
    return np.round((worm.centroids - worm.centroids.min(axis=0)) / SIDE).astype(int) + 2


def write_nwb(worm: eutely.Specimen, path: Path) -> None:
    import pynwb
    from pynwb.ophys import ImageSegmentation, OpticalChannel, PlaneSegmentation

    start = datetime(2024, 1, 1, tzinfo=UTC)
    file = pynwb.NWBFile("worm", "w", start)
    channel = OpticalChannel(name="c", description="c", emission_lambda=500.0)
    plane = file.create_imaging_plane(
        name="plane", optical_channel=channel, description="d",
        device=file.create_device(name="microscope"), location="head", excitation_lambda=488.0,
        indicator="GFP", grid_spacing=[SIDE] * 3, grid_spacing_unit="micrometers",
    )  # fmt: skip
    table = PlaneSegmentation(name="nuclei", description="d", imaging_plane=plane)
    for x, y, z in voxels_of(worm).tolist():
        table.add_roi(voxel_mask=[[x, y, z, 1.0]])
    module = file.create_processing_module(name="ophys", description="d")
    module.add(ImageSegmentation(plane_segmentations=[table]))
    with pynwb.NWBHDF5IO(str(path), "w") as io:
        io.write(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("formats")
    cohort = eutely.simulate(specimens=5, cells=25, variation=0.3, pose="none")
    eutely.build(cohort[:4], supervised=True, workers=1).atlas.save(place / "atlas.h5")
    worm = cohort[4]
    places = voxels_of(worm)
    labels = np.zeros(places.max(axis=0)[::-1] + 4, np.uint16)
    for id_, (x, y, z) in zip(worm.ids.tolist(), places.tolist(), strict=True):
        labels[z - 1 : z + 2, y - 1 : y + 2, x - 1 : x + 2] = id_ + 1
    write_volume(labels, place / "zworm.ome.zarr", SIDE)
    write_nwb(worm, place / "nworm.nwb")
    return place


def test_zarr_labels_and_anndata(folder: Path, tmp_path: Path) -> None:
    import anndata

    out, table = tmp_path / "out", tmp_path / "all.h5ad"
    words = ("-o", out, "--labels", "--h5ad", table, "--min-confidence", "0.5", "-j", 1)
    run("annotate", folder / "atlas.h5", folder / "zworm.ome.zarr", *words)
    rows = pd.read_csv(out / "zworm.csv")
    copy = out / "labels" / "zworm.ome.zarr"
    labels, cells = zarr.open(folder / "zworm.ome.zarr")["0"][:], zarr.open(copy)["0"][:]
    for id_, cell in zip(rows["id"], rows["cell"], strict=True):
        assert set(cells[labels == id_]) == {0 if pd.isna(cell) else int(cell) + 1}
    about = json.loads((copy / "zarr.json").read_text())["attributes"]["ome"]["image-label"]
    named = rows.dropna(subset=["cell"]).sort_values("cell")
    assert len(named) > 15
    assert [row["name"] for row in about["properties"]] == named["name"].tolist()
    assert [row["id"] for row in about["properties"]] == named["id"].tolist()

    nuclei = anndata.read_h5ad(table)
    assert nuclei.obs["id"].tolist() == rows["id"].tolist()
    assert nuclei.obs["cell"].tolist() == rows["cell"].fillna(-1).astype(int).tolist()
    assert nuclei.obs["name"].tolist() == rows["name"].fillna("").tolist()
    assert "annotate" in nuclei.uns["eutely"]["command"] or nuclei.uns["eutely"]["command"]
    everywhere = pd.read_csv(out / "annotations.csv")
    np.testing.assert_allclose(nuclei.obsm["spatial"], everywhere[["x", "y", "z"]])
    by_cell = anndata.read_h5ad(tmp_path / "all.cells.h5ad")
    assert by_cell.shape == (25, 1)
    assert np.isfinite(by_cell.layers["confidence"]).sum() == len(named)


def test_tiff_copies_of_zarr_on_request(folder: Path, tmp_path: Path) -> None:
    words = ("-o", tmp_path, "--labels", "--label-format", "tif", "-j", 1)
    run("annotate", folder / "atlas.h5", folder / "zworm.ome.zarr", *words)
    assert (tmp_path / "labels" / "zworm.tif").is_file()


def test_nwb_copies_have_the_annotations(folder: Path, tmp_path: Path) -> None:
    import pynwb

    run("annotate", folder / "atlas.h5", folder / "nworm.nwb", "-o", tmp_path, "--nwb", "-j", 1)
    rows = pd.read_csv(tmp_path / "nworm.csv")
    with pynwb.NWBHDF5IO(str(tmp_path / "nworm.nwb"), "r", load_namespaces=True) as io:
        table = io.read().processing["ophys"]["ImageSegmentation"]["nuclei"].to_dataframe()
    assert table.index.tolist() == rows["id"].tolist()
    assert table["eutely_cell"].tolist() == rows["cell"].fillna(-1).astype(int).tolist()
    assert table["eutely_name"].tolist() == rows["name"].fillna("").tolist()
    with h5py.File(tmp_path / "nworm.nwb", "r+") as file:
        file["scratch/mine"] = 1  # what a person added is kept
    run("annotate", folder / "atlas.h5", folder / "nworm.nwb", "-o", tmp_path, "--nwb", "-j", 1)
    with h5py.File(tmp_path / "nworm.nwb.bak", "r") as file:
        assert "scratch/mine" in file


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zworm.ome.zarr", "--nwb"], "no input is an NWB file"),
        (["nworm.nwb", "--h5ad", "all.csv"], "ends in .h5ad"),
        (["nworm.nwb", "--labels"], "no input is a label volume"),
    ],
)
def test_what_cannot_be_is_one_line(folder: Path, words: list[str], said: str) -> None:
    before = sorted(folder.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", "from eutely.cli import main; main()"]
        + ["annotate", "atlas.h5", "-o", "out", *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(folder.rglob("*")) == before
