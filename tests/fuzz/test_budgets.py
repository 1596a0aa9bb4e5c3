"""What a file unpacks to is counted as it comes and respects the budget, whatever it declares."""

import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from eutely.errors import ReadError
from eutely.io.limits import VARIABLE, Unpacked, open_zip
from eutely.io.means import read_means
from eutely.io.read import read

scipy_io = pytest.importorskip("scipy.io")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "20MB")


def refused(path: Path, match: str) -> None:
    with pytest.raises(ReadError, match=match) as error:
        read(path, voxel_size=(1, 1, 1))
    assert len(str(error.value).splitlines()) == 1


def matlab(path: Path, sigma: np.ndarray, packed: bool = True) -> Path:
    names = np.array(["AVAL", "AVAR"], dtype=object)
    model = {"mu": np.arange(14.0).reshape(2, 7), "sigma": sigma}
    content = {"atlas": {"head": {"N": names, "model": model}}}
    scipy_io.savemat(path, content, do_compression=packed)
    return path


def test_a_matlab_file_is_refused_by_what_it_unpacks_to(small: None, tmp_path: Path) -> None:
    bomb = matlab(tmp_path / "bomb.mat", np.zeros(10**6))
    assert bomb.stat().st_size < 20_000
    with pytest.raises(ReadError, match=r"unpacks to takes .* more than the limit of 20 MB"):
        read_means(bomb)
    good = np.moveaxis(np.array([np.eye(7)] * 2), 0, 2)
    for packed in (True, False):
        means = read_means(matlab(tmp_path / "good.mat", good, packed))
        assert means.specimen.names == ("AVAL", "AVAR")
        np.testing.assert_array_equal(means.specimen.centroids[1], [7, 8, 9])


def test_an_array_of_matlab_cannot_declare_more_than_there_is(tmp_path: Path) -> None:
    path = matlab(tmp_path / "odd.mat", np.zeros((7, 7, 2)), packed=False)
    data = path.read_bytes()
    cells = (2).to_bytes(4, "little")  # two names in cells: 2 x 1, or 1 x 2
    at = data.index(cells, data.index(b"AVAL") - 120)
    for value in (2**31 - 1, 2**32 - 1):
        path.write_bytes(data[:at] + value.to_bytes(4, "little") + data[at + 4 :])
        with pytest.raises(ReadError, match="not a statistical atlas"):
            read_means(path)
    number = data.index((9).to_bytes(4, "little") + (112).to_bytes(4, "little"))
    for kind in (0, 8, 14, 15):  # kinds of numbers that SciPy has not: it would crash
        path.write_bytes(data[:number] + kind.to_bytes(4, "little") + data[number + 4 :])
        with pytest.raises(ReadError, match="no kind of numbers"):
            read_means(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ReadError, match="cut off"):
        read_means(path)
    path.write_bytes(b"x" * 200)
    with pytest.raises(ReadError, match="no file of MATLAB"):
        read_means(path)


def test_an_archive_is_unpacked_by_deflate_only(tmp_path: Path) -> None:
    row = b"1, 1, -1, -1, -1, 5, 5, 5.0, 7, AB, 9, 0, 0, 0, \n"
    for method, good in ((zipfile.ZIP_DEFLATED, True), (zipfile.ZIP_BZIP2, False)):
        path = tmp_path / "embryo.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("nuclei/t001-nuclei", row)
        if good:
            with open_zip(path) as archive:
                assert archive.read("nuclei/t001-nuclei") == row
        else:
            with pytest.raises(ReadError, match="not packed by deflate"), open_zip(path):
                pass


def test_a_text_that_is_stored_once_for_many_rows_is_kept_once(small: None, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = 10_000
    text = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array(["x" * 10**6]))
    columns = {axis: np.arange(float(rows)) for axis in "xyz"}
    path = tmp_path / "bomb.parquet"  # 10 GB of text in about 100 kB
    parquet.write_table(pa.table({**columns, "name": text}), path)
    refused(path, "has 1000000 characters")


def test_a_sheet_is_read_by_its_cells_not_by_the_size_it_declares(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "x", "y", "z"], [1, 0.5, 2, 3], [2, 4, 5, 7], [3, 1, 0, 2], [4, 3, 3, 9]):
        book.active.append(row)
    path = tmp_path / "worm.xlsx"
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    for part in (b'<dimension ref="A1:D5"', b'<dimension ref="A1:XFD1048576"'):
        parts[sheet] = parts[sheet].replace(b'<dimension ref="A1:D5"', part)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        [specimen] = read(path)
        assert specimen.centroids[1].tolist() == [4, 5, 7]


def test_a_tile_larger_than_its_page_counts(small: None, tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    path = tmp_path / "tile.tif"
    volume = np.ones((4, 64, 64), np.uint8)
    tifffile.imwrite(path, volume, tile=(64, 64), compression="zlib", photometric="minisblack")
    with tifffile.TiffFile(path, mode="r+") as file:
        for page in file.pages:
            for tag in ("TileWidth", "TileLength"):
                page.tags[tag].overwrite(32_000)
    refused(path, "a block takes 2.05 GB of memory")


def test_compressed_bytes_are_counted_as_they_come() -> None:
    counts: list[int] = []

    def check(total: int) -> None:
        counts.append(total)
        if total > 5 * 2**20:
            raise ReadError("too much")

    stream = Unpacked(BytesIO(zlib.compress(bytes(2**26))), zlib.decompressobj, check)
    with pytest.raises(ReadError, match="too much"):
        stream.read(2**26)
    assert max(counts) <= 6 * 2**20
    whole = Unpacked(BytesIO(zlib.compress(b"abc") + zlib.compress(b"de")), zlib.decompressobj)
    assert b"".join(whole.pieces()) == b"abcde"
    with pytest.raises(EOFError):
        Unpacked(BytesIO(zlib.compress(bytes(99))[:-6]), zlib.decompressobj).read(99)
