"""Atlases as things that are shared: exported, imported, renamed, merged, reduced, registered."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import savemat
from typer.testing import CliRunner

import eutely
from eutely import Atlas, Specimen
from eutely.atlas import NO_NEIGHBOUR
from eutely.cli import app
from eutely.errors import EutelyError, ReadError
from eutely.estimate.given import atlas_of_means
from eutely.io import exchange
from eutely.io.atlas import checksum, known_atlases
from eutely.tasks.atlases import import_atlas, merge_names, renamed, subset

COHORT = eutely.simulate(4, cells=40, seed=3)


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    """Means of a simulated animal, with covariances, names and a feature."""
    animal = COHORT[0]
    covariances = np.array([np.diag([1.0, 2.0, 3.0]) * (1 + 0.01 * k) for k in range(len(animal))])
    atlas = atlas_of_means(animal, covariances, specimens=7).described(organism="simulated, 'x'")
    return replace(atlas, shown=np.linspace(1, 7, len(atlas)))


def test_every_array_of_an_atlas_is_exported(atlas: Atlas) -> None:
    arrays = {f.name for f in fields(atlas) if isinstance(getattr(atlas, f.name), np.ndarray)}
    kept = {*exchange.CELLS, *exchange.EDGES, *exchange.NEIGHBOURS, *exchange.SMALL, "hands"}
    assert arrays == kept


@pytest.mark.parametrize("name", ["given", "celegans-l1"])
def test_exported_atlas_is_restored_bit_by_bit(tmp_path: Path, atlas: Atlas, name: str) -> None:
    before = atlas if name == "given" else Atlas.load(name)
    exchange.export_atlas(before, tmp_path / "open")
    after = import_atlas(tmp_path / "open")
    assert checksum(after) == checksum(before)
    before.save(tmp_path / "before.h5")
    after.save(tmp_path / "after.h5")
    assert (tmp_path / "before.h5").read_bytes() == (tmp_path / "after.h5").read_bytes()


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("description.json", lambda text: text.replace('"cells": 40', '"cells": 41')),
        ("description.json", lambda text: text[:100]),
        ("cells.csv", lambda text: text.replace("covariance_xy", "other")),
        ("cells.csv", lambda text: "\n".join(text.splitlines()[:-1])),
        ("neighbours.csv", lambda text: text.replace("\n3,", "\n39,").replace(",0,", ",99,")),
        ("edges.csv", lambda text: text.replace("\n0,", "\n900,")),
    ],
)
def test_damaged_exports_are_one_line(tmp_path: Path, atlas: Atlas, file: str, change) -> None:
    exchange.export_atlas(atlas, tmp_path / "open")
    path = tmp_path / "open" / file
    path.write_text(change(path.read_text()))
    with pytest.raises(EutelyError) as caught:
        import_atlas(tmp_path / "open")
    assert "\n" not in str(caught.value)


def numbers(value: object, path: tuple = ()) -> Iterator[tuple]:
    """Yield where the numbers and truth values of a description are."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inside:
        if isinstance(one, dict | list):
            yield from numbers(one, (*path, key))
        elif isinstance(one, int | float):
            yield (*path, key)


@pytest.mark.parametrize("word", ["Infinity", "-Infinity", "NaN", "1e999", "9" * 5000])
def test_no_number_of_a_description_can_be_infinite(
    tmp_path: Path, atlas: Atlas, word: str
) -> None:
    exchange.export_atlas(atlas, tmp_path / "open")
    path = tmp_path / "open" / "description.json"
    about = json.loads(path.read_text()) | {"origins": {"a microscope": [3, 4]}}
    places = [*numbers(about)]
    wanted = {*exchange.PLAIN, *exchange.SMALL, "schema", "cells", "neighbours", "origins"}
    assert {key for key, *_ in places} == wanted - {"unit", "model"}
    for place in places:
        if place == ("freedom",) and word in ("Infinity", "1e999"):
            continue  # a Gaussian
        changed = inside = json.loads(json.dumps(about))
        for key in place[:-1]:
            inside = inside[key]
        inside[place[-1]] = "@"
        path.write_text(json.dumps(changed).replace('"@"', word))
        with pytest.raises(ReadError) as caught:
            import_atlas(tmp_path / "open")
        assert len(str(caught.value).splitlines()) == 1, place


@pytest.mark.parametrize(
    ("key", "value"), [("warp", 1), ("scale", "no"), ("specimens", 7.5), ("k_min", True),
                       ("freedom", "8"), ("unit", 3), ("cells", 40.5), ("c0", [1.0])],
)  # fmt: skip
def test_values_of_a_description_are_of_their_kind(
    tmp_path: Path, atlas: Atlas, key: str, value: object
) -> None:
    exchange.export_atlas(atlas, tmp_path / "open")
    path = tmp_path / "open" / "description.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ReadError, match=f"'{key}' is "):
        import_atlas(tmp_path / "open")


def test_atlas_of_means_names_the_animal_that_it_was_made_of(atlas: Atlas) -> None:
    turned = COHORT[0].moved([[0, -1, 0], [1, 0, 0], [0, 0, 1]], [5, 6, 7])
    assert eutely.evaluate(atlas, [turned]).mean == 1.0


def test_table_of_means(tmp_path: Path) -> None:
    animal = COHORT[0]
    rows = ["name,x,y,z,sx,sy,sz,colour"]
    for name, (x, y, z) in zip(animal.names or (), animal.centroids.tolist(), strict=True):
        rows.append(f"{name},{x},{y},{z},1.5,1.0,1.0,{len(rows) ** 2}")
    path = tmp_path / "means.csv"
    path.write_text("\n".join(rows) + "\n")
    atlas = import_atlas(path, specimens=12)
    assert atlas.names == animal.names
    assert "colour" in atlas.features
    assert "sx" not in atlas.features
    assert atlas.specimens == 12
    volume = np.linalg.det(atlas.covariances)
    np.testing.assert_allclose(volume, 2.25)
    path.write_text("\n".join(rows).replace("1.5,1.0", "0,1.0"))
    with pytest.raises(EutelyError, match="must be positive"):
        import_atlas(path)
    path.write_text("x,y,z\n1,2,3\n2,3,3\n3,4,9\n5,5,5\n")
    with pytest.raises(EutelyError, match="one row per cell"):
        import_atlas(path)


def test_statistical_atlas_of_neuropal_id(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mean = np.concatenate([COHORT[0].centroids, rng.uniform(size=(40, 3))], axis=1)
    sigma = np.repeat(np.diag([1.0, 2, 3, 0.1, 0.1, 0.1])[:, :, None], 40, axis=2)
    names = np.array([f"N{k}" for k in range(40)], dtype=object)
    path = tmp_path / "atlas_xx_rgb.mat"
    savemat(path, {"atlas": {"head": {"N": names, "model": {"mu": mean, "sigma": sigma}}}})
    atlas = import_atlas(path)
    assert atlas.names == tuple(names)
    assert atlas.features == ("B", "G", "R")
    assert atlas.unit == "um"
    assert atlas.provenance["body part"] == "head"
    np.testing.assert_allclose(np.linalg.det(atlas.covariances), 6.0)
    with pytest.raises(EutelyError, match="no part 'tail'; give --part one of: head"):
        import_atlas(path, part="tail")
    for junk in (path.read_bytes()[:300], b"", b"junk", bytes(200), b"MATLAB 5.0" + bytes(300)):
        path.write_bytes(junk)
        with pytest.raises(EutelyError, match=r"not a statistical atlas.*columns name, x, y, z"):
            import_atlas(path)


def test_subset_keeps_what_belongs_to_the_cells(atlas: Atlas) -> None:
    rows = np.array([30, 4, 17, 5, 31])
    part = atlas.take(rows)
    assert_array_equal(part.means, atlas.means[rows])
    assert part.names == tuple(atlas.names[row] for row in rows)
    for (i, j), offset in zip(part.edges, part.offsets, strict=True):
        np.testing.assert_allclose(offset, part.means[i] - part.means[j])
    for cell in range(5):
        for place, other in enumerate(part.neighbours[cell]):
            whole = atlas.neighbours[rows[cell], place]
            assert other == (NO_NEIGHBOUR if whole not in rows else [*rows].index(whole))
    with pytest.raises(EutelyError, match="taken twice"):
        atlas.take([1, 1])
    first = atlas.names[0]
    assert subset(atlas, [first]).names == (first,)
    with pytest.raises(EutelyError, match="no cell of the atlas is called Z9"):
        subset(atlas, ["Z9"])


def test_names_are_changed_and_never_twice(atlas: Atlas) -> None:
    first, second = atlas.names[:2]
    assert renamed(atlas, {first: "new", "#1": ""}).names[:2] == ("new", "")
    with pytest.raises(EutelyError, match=f"two cells would be called {second}"):
        renamed(atlas, {first: second})
    with pytest.raises(EutelyError, match="no cell absent"):
        renamed(atlas, {"absent": "new"})


def test_names_of_another_atlas(atlas: Atlas) -> None:
    bare = atlas.named(["kept", *[""] * 39])
    merged = merge_names(bare, atlas)
    assert merged.added == 39
    assert merged.atlas.names[1:] == atlas.names[1:]
    assert dict(merged.differing) == {"kept": atlas.names[0]}


def test_registry_of_atlases(tmp_path: Path, atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    atlas.save(folder / "mine.h5")
    (tmp_path / "list.txt").write_text("# ours\nours/mine.h5\n")
    for entry in (folder, folder / "mine.h5", tmp_path / "list.txt"):
        monkeypatch.setenv("EUTELY_ATLASES", str(entry))
        assert set(known_atlases()) > {"mine"}
        assert checksum(Atlas.load("mine")) == checksum(atlas)
    (folder / "broken.h5").write_bytes(b"nothing")
    monkeypatch.setenv("EUTELY_ATLASES", str(folder))
    lines = CliRunner().invoke(app, ["atlases"]).output.splitlines()
    assert [line.partition("  ")[0] for line in lines][-2:] == ["broken", "mine"]
    assert "not readable" in lines[-2]
    assert "simulated" in lines[-1]


def test_commands(tmp_path: Path, atlas: Atlas) -> None:
    file = tmp_path / "a.h5"
    atlas.save(file)

    def run(*words: object, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["atlas", *map(str, words)])
        assert (result.exit_code == 0) == (code == 0), result.output
        return result.output or str(result.exception)

    assert "40 cells, 40 named" in run("show", file)
    run("describe", file, "stage=L1", "licence=CC0", "-o", tmp_path / "b.h5")
    assert Atlas.load(tmp_path / "b.h5").provenance["stage"] == "L1"
    assert "is an input" in run("describe", file, "stage=L1", "-o", file, code=2)
    run("export", file, "-o", tmp_path / "open")
    run("export", file, "-o", tmp_path / "open")  # all of it is there
    other = ("export", tmp_path / "b.h5", "-o", tmp_path / "open")
    assert "there already" in run(*other, code=2)
    run("import", tmp_path / "open", "-o", tmp_path / "c.h5")
    assert (tmp_path / "c.h5").read_bytes() == file.read_bytes()
    (tmp_path / "new.csv").write_text(f"name,new\n{atlas.names[0]},first\n")
    assert "kept as c.h5.bak" in run("rename", file, tmp_path / "new.csv", "-o", tmp_path / "c.h5")
    assert Atlas.load(tmp_path / "c.h5").names[0] == "first"
    assert "1 cell, 1 named" in run("subset", file, atlas.names[3], "-o", tmp_path / "d.h5")
    assert "0 names added" in run("merge-names", file, file, "-o", tmp_path / "e.h5")


def test_too_few_means() -> None:
    few = Specimen.from_arrays("few", np.eye(3), names=["a", "b", "c"])
    with pytest.raises(EutelyError, match="3 cells, expected at least 4"):
        atlas_of_means(few)
