"""Cohorts as AnnData: what is where, round trips, and the extra."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.errors import EutelyError
from eutely.io.h5ad import cells_anndata, nuclei_anndata, write_h5ad


@pytest.fixture(scope="module")
def built():
    cohort = eutely.simulate(specimens=4, cells=30, variation=0.5, missing=0.05, spurious=0.05)
    random = np.random.default_rng(0)
    cohort = [
        replace(worm, features={"gfp_mean": random.random(len(worm)), "x": np.ones(len(worm))})
        for worm in cohort
    ]
    cohort[1] = replace(cohort[1], features={"gfp_mean": cohort[1].features["gfp_mean"]})
    return eutely.build(cohort, supervised=True, workers=1)


def test_one_row_per_nucleus(built):
    data = built.to_anndata()
    count = sum(map(len, built.specimens))
    assert data.shape == (count, 2)
    assert list(data.var_names) == ["gfp_mean", "x"]
    assert data.obs_names.is_unique
    worm, begin = built.specimens[2], sum(len(one) for one in built.specimens[:2])
    rows = data[begin : begin + len(worm)]
    assert set(rows.obs["specimen"]) == {worm.name}
    assert rows.obs["id"].tolist() == worm.ids.tolist()
    assert rows.obs["cell"].tolist() == built.cells[2].tolist()
    np.testing.assert_array_equal(rows.obsm["spatial"], worm.centroids)
    np.testing.assert_array_equal(rows.obsm["atlas"], built.fits[2].places)
    np.testing.assert_array_equal(rows.obsm["radii"], worm.radii)
    np.testing.assert_array_equal(rows.X[:, 0], worm.features["gfp_mean"])
    none = data.obs["cell"] == -1
    assert none.any()
    assert data.obs["confidence"].isna()[none].all()
    assert data.obs["confidence"][~none].dropna().between(0, 1).all()
    names = [built.atlas.names[cell] if cell >= 0 else "" for cell in built.cells[2]]
    assert rows.obs["name"].tolist() == names
    assert rows.obs["named"].tolist() == list(worm.names)
    other = data[data.obs["specimen"] == built.specimens[1].name]
    assert np.isnan(other.X[:, 1]).all()  # a feature that this specimen lacks
    about = data.uns["eutely"]
    assert (about["unit"], about["atlas_cells"]) == ("um", len(built.atlas))
    assert about["version"] == eutely.__version__


def test_a_matrix_of_cells_and_specimens_for_each_feature(built):
    data = built.to_anndata(by="cell")
    assert data.shape == (len(built.atlas), 4)
    assert list(data.var_names) == [one.name for one in built.specimens]
    assert set(data.layers) == {"confidence", "x", "y", "z", "gfp_mean", "input_x"}
    for number, (worm, cells) in enumerate(zip(built.specimens, built.cells, strict=True)):
        for nucleus in np.flatnonzero(cells >= 0):
            row = cells[nucleus]
            value = worm.features["gfp_mean"][nucleus]
            assert data.layers["gfp_mean"][row, number] == value
            assert data.layers["y"][row, number] == built.fits[number].places[nucleus, 1]
        absent = np.setdiff1d(np.arange(len(built.atlas)), cells)
        assert np.isnan(data.layers["confidence"][absent, number]).all()
    assert data.obs["name"].tolist() == list(built.atlas.names)
    np.testing.assert_array_equal(data.obsm["spatial"], built.atlas.means)
    with pytest.raises(EutelyError, match="expected 'nucleus' or 'cell'"):
        built.to_anndata(by="worm")


@pytest.mark.parametrize("by", ["nucleus", "cell"])
def test_files_are_read_again_bit_by_bit(built, tmp_path, by):
    import anndata

    data = built.to_anndata(by=by)
    write_h5ad(data, tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    for key in data.obsm:
        assert again.obsm[key].tobytes() == np.ascontiguousarray(data.obsm[key]).tobytes()
    for key in data.layers:
        assert again.layers[key].tobytes() == data.layers[key].tobytes()
    if by == "nucleus":
        assert again.X.tobytes() == data.X.tobytes()
    assert again.obs.astype(str).equals(data.obs.astype(str))
    assert again.uns["eutely"]["atlas_unit"] == built.atlas.unit
    write_h5ad(built.to_anndata(by=by), tmp_path / "a.h5ad")  # the same bytes: nothing to keep
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5ad"]
    again.obs["cluster"] = "mine"
    again.write_h5ad(tmp_path / "a.h5ad")
    write_h5ad(data, tmp_path / "a.h5ad")
    assert "cluster" in anndata.read_h5ad(tmp_path / "a.h5ad.bak").obs
    assert "cluster" not in anndata.read_h5ad(tmp_path / "a.h5ad").obs


def test_nothing_is_a_table_too(built):
    empty = nuclei_anndata([], [], built.atlas)
    assert empty.shape == (0, 0)
    assert cells_anndata([], [], built.atlas, {"command": "none"}).shape == (len(built.atlas), 0)


def test_anndata_is_asked_for_in_one_line(built, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(EutelyError, match=r"'eutely\[anndata\]' .*pip install '.\[anndata\]'"):
        built.to_anndata()
