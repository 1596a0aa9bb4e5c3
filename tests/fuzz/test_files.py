"""Problems, atlases, run folders, settings and machine code: hostile files and full disks."""

import io
import json
import logging
import lzma
import os
import subprocess
import sys
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from eutely import Specimen, kernel, read
from eutely.atlas import Atlas
from eutely.config import Config
from eutely.curate.folder import open_material
from eutely.curate.session import Session
from eutely.errors import AtlasError, ConfigError, EutelyError, ReadError, SpecimenError, WriteError
from eutely.fit.model import model_of_atlas
from eutely.io.atlas import open_atlas, read_atlas, write_atlas
from eutely.io.config import load_config
from eutely.io.dd import read_dd
from eutely.io.limits import VARIABLE, budget, bytes_of
from eutely.io.whole import write_text
from eutely.io.written import RECORD, hash_of, manifest_of
from eutely.record import Record, pack
from eutely.steps import Context, Run, step
from eutely.store.folder import MARK, RunFolder, open_run
from eutely.tasks.kept import _cells_before
from toy_curation import toy_folder


def line() -> Atlas:
    """Four cells on a line, each predicted by the next."""
    means = np.arange(4)[:, None] * [4.0, 0.5, 0.1]
    return Atlas(
        means=means - means.mean(axis=0),
        covariances=np.array([np.eye(3)] * 4),
        radii=np.full((4, 3), 1.5),
        radius_covariances=np.array([np.eye(3)] * 4),
        seen=np.array([2, 3, 4, 5]),
        rare=np.zeros(4, dtype=bool),
        edges=np.array([[0, 1], [1, 2], [2, 3]]),
        offsets=means[:-1] - means[1:],
        offset_covariances=np.array([np.eye(3)] * 3),
        neighbours=np.array([[1], [2], [3], [0]]),
        predictors=np.full((4, 1, 3, 3), 0.1),
        conditionals=np.array([np.eye(3) / 2] * 4),
        size=np.array([16.0, 3.0]),
        specimens=9,
    )


# --- the budget


def test_the_budget_is_a_share_of_the_machine_or_what_is_asked_for(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert 10**6 < budget() < 10**15
    monkeypatch.setenv(VARIABLE, "300 MiB")
    assert budget() == 300 * 2**20
    for text in ("", "lots", "-3GB", "0", "1e999", "nan"):
        with pytest.raises(ConfigError, match="expected a size such as"):
            bytes_of(text)


# --- .dd


@pytest.mark.parametrize(
    "text",
    [
        "p 100000000000 2 1 0\na 0 0 0 -1\n",
        "p 2 100000000000 1 0\na 0 0 0 -1\n",
        "p 2 2 99999999999 0\na 0 0 0 -1\n",
        "gm 0 1\np 1 1 0 0\ngm 0 1\np 1 1 0 0\n",
        "gm 0 1\np 1 1 0 0\ngm 1 0\np 1 1 0 0\n",
        "p 1 1 0 0\np 1 1 0 0\n",
        "gm 3 3\np 1 1 0 0\n",
        "gm 0 999999999999\np 1 1 0 0\n",
        "gm 0 1\np 900000 900000 0 0\n",
    ],
)
def test_problems_that_declare_too_much_or_one_pair_twice(tmp_path, text):
    (tmp_path / "a.dd").write_text(text)
    with pytest.raises(ReadError) as caught:
        read_dd(tmp_path / "a.dd")
    assert len(str(caught.value).splitlines()) == 1


def test_a_bomb_of_xz(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "50MB")
    good = b"p 1 1 1 0\na 0 0 0 -1\n"
    path = tmp_path / "a.dd.xz"
    path.write_bytes(lzma.compress(good) + lzma.compress(b"c end\n"))
    assert len(read_dd(path)) == 1
    path.write_bytes(lzma.compress(good + b"c" * 100_000_000, preset=0))
    with pytest.raises(ReadError, match="raise it with --max-memory"):
        read_dd(path)
    path.write_bytes(lzma.compress(good)[:-3])
    with pytest.raises(ReadError, match="cut off"):
        read_dd(path)


# --- atlases


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("means", np.full((4, 3), 1e300)), ("means", np.float64(3)),
        ("means", np.zeros((4, 3), "S3")), ("covariances", np.full((4, 3, 3), 1e300)),
        ("covariances", np.array([np.eye(3) * 1e-300] * 4)),
        ("covariances", np.array([np.triu(np.ones((3, 3))) + np.eye(3)] * 4)),
        ("edges", np.array([[1, 0]] * 3)), ("edges", np.array([[1, 1]] * 3)),
        ("neighbours", np.array([[0], [2], [3], [0]])), ("neighbours", np.full((4, 1), 1.5)),
        ("neighbours", np.full((4, 1), np.nan)), ("neighbours", np.full((4, 1), 2**40)),
        ("seen", np.full(4, -1)), ("size", np.zeros(2)), ("weights", np.full(3, -1.0)),
        ("radii", np.full((4, 3), np.inf)), ("radius_covariances", np.full((4, 3, 3), 1e300)),
        ("freedom", np.nan), ("freedom", 0.0), ("freedom", -3.0), ("specimens", 0),
        ("c0", np.inf), ("c0", np.nan), ("k_min", 10**9), ("tau_centroid", np.nan),
        ("crowding", np.full(10, np.inf)), ("names", ("a\0", "", "", "")),
        ("names", ("\udcff", "", "", "")),
    ],
)  # fmt: skip
def test_an_atlas_is_checked_whoever_made_it(key, value):
    with pytest.raises(AtlasError) as caught:
        replace(line(), **{key: value})
    assert len(str(caught.value).splitlines()) == 1


def test_infinite_freedom_is_gaussian(tmp_path):
    write_atlas(replace(line(), freedom=np.inf), tmp_path / "a.h5")
    atlas = read_atlas(tmp_path / "a.h5")
    assert np.isinf(atlas.freedom)
    freedom = model_of_atlas(atlas).freedom
    squared = np.array([0.1, 1.0, 30.0])
    costs = 0.5 * (freedom + 3) * np.log1p(squared / freedom)
    np.testing.assert_allclose(costs, squared / 2, rtol=1e-6)


@pytest.mark.parametrize("key", ["means", "neighbours", "edges", "names"])
def test_datasets_of_an_atlas_that_are_not_there(tmp_path, key):
    path = tmp_path / "atlas.h5"
    write_atlas(line(), path)
    with h5py.File(path, "r+") as file:
        shape = (2_000_000_000, *file[key].shape[1:])
        kind = file[key].dtype
        del file[key]
        file.create_dataset(key, shape, kind, chunks=(100, *shape[1:]))
    with pytest.raises(ReadError, match=r"memory|not there"):
        read_atlas(path)


@pytest.mark.parametrize("key", ["provenance", "freedom", "schema", "specimens", "format", "unit"])
@pytest.mark.parametrize("value", ["[" * 5000, [1, 2, 3], np.inf, -1, "word", np.bytes_(b"\xff")])
def test_attributes_of_an_atlas(tmp_path, key, value):
    path = tmp_path / "atlas.h5"
    write_atlas(line(), path)
    with h5py.File(path, "r+") as file:
        file.attrs[key] = value
    try:
        atlas = read_atlas(path)
    except EutelyError as error:
        message = str(error)
    else:
        message = f"{len(atlas)} cells"
    assert len(message.splitlines()) == 1


def test_an_atlas_that_is_a_pipe_or_links_elsewhere(tmp_path):
    os.mkfifo(tmp_path / "atlas.h5")
    with pytest.raises(ReadError):
        read_atlas(tmp_path / "atlas.h5")
    write_atlas(line(), tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        del file["means"]
        file["means"] = h5py.ExternalLink("/etc/passwd", "/x")
    with pytest.raises(ReadError, match="link to another file"):
        read_atlas(tmp_path / "b.h5")


def test_a_full_disk_at_twenty_sizes_is_one_line_and_loses_nothing(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "atlas.h5"
    large = open_atlas("celegans-l1")
    write_atlas(line(), path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    whole = io.BytesIO()
    with h5py.File(whole, "w"):
        pass
    for size in np.linspace(1, 400_000, 20).astype(int).tolist():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            with pytest.raises(WriteError, match="cannot write"):
                write_atlas(large, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["atlas.h5"]


# --- texts


def test_names_that_no_file_can_hold_are_refused():
    for name in ("worm\udcff", "worm\0"):
        with pytest.raises(SpecimenError, match="is not text") as caught:
            Specimen.from_arrays(name, np.eye(3))
        assert str(caught.value).isascii()
    assert Specimen.from_arrays("虫1", np.eye(3)).name == "虫1"
    for far in (1e154, 1e13):
        with pytest.raises(SpecimenError, match="check the unit"):
            Specimen.from_arrays("worm", np.eye(3) * far)


def test_a_table_of_20_000_columns_and_one_of_10_001_specimens(tmp_path):
    count = 20_000
    fields = ",".join(f"f{number}" for number in range(count))
    rows = [f"{k},{k % 3},{k % 2},{k * k}" + ",0.5" * count for k in range(5)]
    (tmp_path / "wide.csv").write_text("\n".join([f"id,x,y,z,{fields}", *rows]))
    (specimen,) = read(tmp_path / "wide.csv")
    assert len(specimen.features) == count
    rows = [f"s{number},1,2,3" for number in range(10_001)]
    (tmp_path / "many.csv").write_text("\n".join(["specimen,x,y,z", *rows]))
    with pytest.raises(ReadError, match="10001 specimens by column specimen, expected at most"):
        read(tmp_path / "many.csv")


def test_texts_are_utf8_in_any_locale(tmp_path):
    code = (
        "import sys; from pathlib import Path; from eutely.io.whole import write_text\n"
        "write_text(Path(sys.argv[1]), '\\u866b1,\\udcff')"
    )
    environment = {**os.environ, "LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", code, str(tmp_path / "a.csv")]
    subprocess.run(command, check=True, env=environment)
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "虫1,\\udcff"
    write_text(tmp_path / "b.csv", "虫1")


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000 + "]" * 5000, "[a" + ".a" * 5000 + "]\nb = 1"]
)
def test_settings_nested_deeply_are_one_line(tmp_path, text):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(EutelyError) as caught:
        load_config(tmp_path / "a.toml")
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 2000


# --- run folders


@step("seed")
def counted(context: Context, number: int) -> Atlas:
    """A step that returns a noun."""
    return replace(line(), specimens=number)


@pytest.mark.parametrize("damage", ["value", "shape", "other", "empty", "deep"])
def test_a_right_checksum_over_wrong_content_is_computed_again(tmp_path, caplog, damage):
    with open_run(tmp_path / "run") as folder:
        run = Run(Config(), None, folder)  # type: ignore[arg-type]
        assert run(counted, 7).specimens == 7
        (file,) = (tmp_path / "run" / "stages").glob("*.npz")
        name, key = file.stem.rsplit("-", 1)
        good = file.read_bytes()
        wrong = {
            "value": pack({"means": np.full((4, 3), np.nan)}),
            "shape": pack(replace_array(folder.get(name, key), "value.means", np.zeros((3, 3)))),
            "other": Record({}, {"value": [1, 2, 3]}),
            "empty": Record(),
            "deep": Record({}, {"value": {"means": {"means": {"means": None}}}}),
        }[damage]
        folder.put(name, key, wrong, 0.1)
        assert file.read_bytes() != good
        with caplog.at_level(logging.WARNING):
            assert run(counted, 7).specimens == 7
        assert "computing it" in caplog.text
        assert file.read_bytes() == good


def replace_array(record, key, value):
    return {"value": {name: record.arrays[name] for name in record.arrays} | {key: value}}


def test_bombs_and_pipes_in_a_run_folder(tmp_path, caplog):
    with open_run(tmp_path) as run:
        run.put("poses", "1", Record({"a": np.zeros(3)}), 0.1)
        file = tmp_path / "stages" / "poses-1.npz"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("metadata.json", bytes(2**27))
        assert run.get("poses", "1") is None
        head = "{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000,), }".ljust(117)
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("metadata.json", '{"digest": "", "metadata": {}}')
            archive.writestr("a.npy", b"\x93NUMPY\x01\x00v\x00" + head.encode() + b"\n")
        assert run.get("poses", "1") is None
        assert caplog.text.count("damaged") == 2
        file.unlink()
        os.mkfifo(file)
        assert run.get("poses", "1") is None


@pytest.mark.parametrize("text", ["[" * 5000, "[1]", '"x"', "null", "{}", '{"seconds": "x"}'])
def test_journals_with_a_right_checksum_and_odd_content(tmp_path, text):
    with open_run(tmp_path) as run:
        entry = b"%08x %s\n" % (zlib.crc32(text.encode()), text.encode())
        (tmp_path / "timings.jsonl").write_bytes(entry)
        assert np.isnan(run.seconds("poses", "1"))
        assert isinstance(list(run.journal("poses", "1")), list)
        run.put("poses", "1", Record(), 2.0)
        assert run.seconds("poses", "1") == 2.0
    (tmp_path / "eutely-run.json").write_text("[" * 5000)
    with pytest.raises(EutelyError, match="is damaged"), open_run(tmp_path):
        pass
    assert json.loads((tmp_path / "lock").read_text())["process"] == os.getpid()


def test_a_run_folder_knows_its_files(tmp_path):
    assert RunFolder(tmp_path).get("poses", "1") is None


# --- machine code


def test_machine_code_is_kept_where_it_can_be(tmp_path, monkeypatch):
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "file").touch()  # below a file nothing can be written, not even by root
    monkeypatch.setattr(kernel, "PACKAGE", tmp_path / "file" / "eutely")
    monkeypatch.setattr(kernel, "_version", lambda: "v")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert kernel._cache() == str(tmp_path / "home" / ".cache" / "eutely" / "kernels-v")
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setattr(kernel.tempfile, "gettempdir", lambda: str(tmp_path))
    shared = tmp_path / f"eutely-{os.getuid()}"
    assert kernel._cache() == str(shared / "kernels-v")
    assert shared.stat().st_mode & 0o777 == 0o700
    shared.chmod(0o777)
    assert kernel._cache() is None, "others could put their code there"
    shared.rename(tmp_path / "elsewhere")
    shared.symlink_to(tmp_path / "elsewhere")
    assert kernel._cache() is None
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert kernel._cache() == str(tmp_path / "mine" / "kernels-v")


def test_kernels_run_without_a_place_to_keep_them(monkeypatch):
    monkeypatch.setattr(kernel, "CACHE", None)

    def twice(x: int) -> int:
        return 2 * x

    assert kernel.kernel(twice)(4) == 8


def test_a_folder_for_machine_code_that_vanished(monkeypatch):
    monkeypatch.setattr(kernel, "CACHE", "/proc/nothing")
    monkeypatch.setattr(kernel.numba, "njit", _refusing(kernel.numba.njit))

    def thrice(x: int) -> int:
        return 3 * x

    assert kernel.kernel(thrice)(4) == 12


def _refusing(njit):
    def replaced(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function")
        return njit(**options)

    return replaced


def test_paths_are_paths():
    assert Path(kernel.CACHE or ".").name.startswith("kernels-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.timeout(120)  # who reads from a pipe waits for ever
@pytest.mark.parametrize(
    "name", ["annotations.csv", "report.npz", "used-atlas.npz", "inputs.json", "pins.csv"]
)
def test_pipes_in_a_folder_of_annotations(tmp_path, name):
    folder = toy_folder(tmp_path / "annotated", 2, 20)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(ReadError, match=f"{name}: not an ordinary file"):
        Session(open_material(folder), read_only=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.timeout(120)
def test_pipes_instead_of_what_eutely_remembers(tmp_path):
    folder = toy_folder(tmp_path / "annotated", 2, 20)
    for name in (RECORD, "curate-first.npz"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    assert manifest_of(folder).files == {}
    assert len(open_material(folder).shown) == 2
    with open_run(tmp_path / "run"):
        pass
    for name, words in {"timings.jsonl": "not an ordinary", MARK: "is damaged"}.items():
        (tmp_path / "run" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "run" / name)
        with pytest.raises(EutelyError, match=words), open_run(tmp_path / "run") as run:
            run.seconds("step", "key")
        (tmp_path / "run" / name).unlink()
        write_text(tmp_path / "run" / MARK, '{"schema": 1}')
    os.mkfifo(tmp_path / "run" / "cliques.csv")
    assert _cells_before(tmp_path / "run") == {}
    with pytest.raises(ReadError, match="not an ordinary file"):
        hash_of(tmp_path / "run" / "cliques.csv")
