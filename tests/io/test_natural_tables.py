"""Tables as Fiji, MorphoLibJ, scikit-image, napari and spreadsheets write them."""

import builtins
import datetime
import logging
import os
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from eutely import read
from eutely.errors import EutelyError, ReadError
from eutely.io.tables import read_table

POINTS = [[1.5, 2.0, 3.25], [40.0, 5.5, 6.0], [7.0, 80.25, 9.0], [10.0, 11.0, 120.5]]
"""x, y, z of four nuclei."""


def written(tmp_path, text, name="worm.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def table(header, rows, separator=","):
    lines = [header, *(separator.join(map(str, row)) for row in rows)]
    return "\n".join(lines) + "\n"


def check(path, *, ids=None, unit="unit", features=()):
    (worm,) = read_table(path, "worm")
    assert worm.centroids.tolist() == POINTS
    assert worm.ids.tolist() == list(range(4) if ids is None else ids)
    assert worm.unit == unit
    assert sorted(worm.features) == sorted(features)
    return worm


def numbered(first=1):
    return [[first + row, *point] for row, point in enumerate(POINTS)]


@pytest.mark.parametrize("header", ["X,Y,Z", "X,y,Z", "Centroid.X,Centroid.Y,Centroid.Z"])
def test_coordinates_in_any_case(tmp_path, header):
    check(written(tmp_path, table(header, POINTS)))


def test_morpholibj_regions(tmp_path):
    header = "Label,VoxelCount,Volume,Centroid.X,Centroid.Y,Centroid.Z"
    rows = [[7 * (row + 1), 9, 4.5, *point] for row, point in enumerate(POINTS)]
    path = written(tmp_path, table(header, rows))
    check(path, ids=[7, 14, 21, 28], features=["VoxelCount", "Volume"])


def test_fiji_objects_counter_takes_the_centroid_and_numbers_its_rows(tmp_path, caplog):
    # as "3D Objects Counter" saves its results: the first column has no name
    header = (
        " ,Volume (micron^3),Surface (micron^2),Nb of obj. voxels,Nb of surf. voxels,IntDen,Mean,"
        "X,Y,Z,XM,YM,ZM,BX,BY,BZ,B-width,B-height,B-depth"
    )
    rows = [
        [row + 1, 12.5, 30, 50, 40, 500, 10, *point, 9, 9, 9, 1, 1, 1, 5, 5, 5]
        for row, point in enumerate(POINTS)
    ]
    path = written(tmp_path, table(header, rows))
    with caplog.at_level(logging.INFO, "eutely"):
        worm = check(
            path,
            ids=[1, 2, 3, 4],
            features=[
                "Volume (micron^3)", "Surface (micron^2)", "Nb of obj. voxels",
                "Nb of surf. voxels", "IntDen", "Mean",
            ],
        )  # fmt: skip
    assert worm.features["Mean"].tolist() == [10] * 4
    assert "x is X, y is Y, z is Z, id is the first column" in caplog.text


def test_fiji_centres_of_mass(tmp_path):
    rows = [[row + 1, "stack.tif", 3.5, *point] for row, point in enumerate(POINTS)]
    path = written(tmp_path, table(" ,Label,Mean,XM,YM,ZM", rows))
    check(path, ids=[1, 2, 3, 4], features=["Mean"])  # the label is that of the image, not an id


@pytest.mark.parametrize("unit", ["(microns)", "(micron)", "(µm)", "(\u03bcm)", "[um]"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_units_in_the_header(tmp_path, unit, encoding):
    header = ",".join(f"{axis} {unit}" for axis in "XYZ")
    check(written(tmp_path, table(header, POINTS), encoding=encoding), unit="um")


@pytest.mark.parametrize(
    ("header", "unit"),
    [
        ("X (µm),Y (µm),Z (µm)", "um"),
        ("x_um,y_um,z_um", "um"),
        ("X (pixels),Y (pixels),Z (pixels)", "voxel"),
        ("X (pix),Y (pix),Z (pix)", "voxel"),
        ("X (mm),Y (mm),Z (mm)", "mm"),
    ],
)
def test_units_in_windows_text(tmp_path, header, unit):
    check(written(tmp_path, table(header, POINTS), encoding="cp1252"), unit=unit)


def test_micrometres_before_pixels(tmp_path):
    header = "Label,CX (pix),X (pix),Y (pix),Z (pix),X (µm),Y (µm),Z (µm)"
    rows = [[row + 5, 0, 9, 9, 9, *point] for row, point in enumerate(POINTS)]
    path = written(tmp_path, table(header, rows))
    check(path, ids=[5, 6, 7, 8], unit="um", features=["CX (pix)"])


def test_scikit_image_regions_are_z_y_x(tmp_path):
    header = "label,area,centroid-0,centroid-1,centroid-2,bbox-0,bbox-5,intensity_mean"
    rows = [[3 * (row + 1), 50.0, z, y, x, 0, 9, 7.5] for row, (x, y, z) in enumerate(POINTS)]
    path = written(tmp_path, table(header, rows))
    check(path, ids=[3, 6, 9, 12], unit="voxel", features=["area", "intensity_mean"])


def test_pandas_index_of_scikit_image_regions_is_no_feature(tmp_path):
    rows = [[row, 3 * (row + 1), z, y, x] for row, (x, y, z) in enumerate(POINTS)]
    for first in ("", "Unnamed: 0"):
        text = table(f"{first},label,centroid-0,centroid-1,centroid-2", rows)
        check(written(tmp_path, text), ids=[3, 6, 9, 12], unit="voxel")


def test_napari_points_are_z_y_x(tmp_path):
    rows = [[float(row), z, y, x] for row, (x, y, z) in enumerate(POINTS)]
    path = written(tmp_path, table("index,axis-0,axis-1,axis-2", rows))
    check(path, unit="voxel")
    (worm,) = read(path, voxel_size=(0.5, 1, 2))
    assert worm.unit == "um"
    assert worm.centroids[0].tolist() == [0.75, 2.0, 6.5]


def test_napari_points_of_one_time_point(tmp_path):
    rows = [[float(row), 4.0, z, y, x] for row, (x, y, z) in enumerate(POINTS)]
    header = "index,axis-0,axis-1,axis-2,axis-3"
    check(written(tmp_path, table(header, rows)), unit="voxel")
    rows[1][1] = 5.0
    with pytest.raises(ReadError, match="4 axes, and axis-0 has 2 values; keep the rows of one"):
        read_table(written(tmp_path, table(header, rows)), "worm")


def test_label_is_the_id_only_if_it_identifies(tmp_path, caplog):
    rows = [[*point, row % 2] for row, point in enumerate(POINTS)]
    with caplog.at_level(logging.INFO, "eutely"):
        check(written(tmp_path, table("x,y,z,label", rows)), features=["label"])
    assert "label has equal values, so it is not the id" in caplog.text
    text = table("ID,x,y,z,label", [[*row, 9 - row[0]] for row in numbered()])
    check(written(tmp_path, text), ids=[1, 2, 3, 4], features=["label"])
    labels = [[40, *POINTS[0]], [30, *POINTS[1]], [20, *POINTS[2]], [10, *POINTS[3]]]
    check(written(tmp_path, table("Label,x,y,z", labels)), ids=[40, 30, 20, 10])


def test_labels_count_within_each_specimen(tmp_path):
    rows = [["ab"[row // 2], row % 2, *point] for row, point in enumerate(POINTS)]
    first, second = read_table(written(tmp_path, table("Specimen,label,X,Y,Z", rows)), "cohort")
    assert first.ids.tolist() == second.ids.tolist() == [0, 1]


def test_annotations_of_an_earlier_run_are_no_features(tmp_path):
    rows = [[row[0], 7, 0.9, *row[1:], 5] for row in numbered()]
    path = written(tmp_path, table("id,cell,confidence,x,y,z,red", rows))
    check(path, ids=[1, 2, 3, 4], features=["red"])


def german(value):
    return str(value).replace(".", ",")


@pytest.mark.parametrize(("separator", "encoding"), [(";", "cp1252"), ("\t", "utf-16")])
def test_decimal_commas(tmp_path, separator, encoding):
    rows = [[*map(german, point), "0,5"] for point in POINTS]
    text = table(separator.join(["x", "y", "z", "Größe"]), rows, separator)
    worm = check(written(tmp_path, text, encoding=encoding), features=["Größe"])
    assert worm.features["Größe"].tolist() == [0.5] * 4


def test_a_line_of_excel_that_names_the_separator(tmp_path):
    rows = [list(map(german, point)) for point in POINTS]
    text = "sep=;\r\n" + table("x;y;z", rows, ";").replace("\n", "\r\n")
    check(written(tmp_path, text))
    with pytest.raises(ReadError, match=r"line 4: y is 'five'"):
        read_table(written(tmp_path, text.replace("5,5", "five")), "worm")


@pytest.mark.parametrize(
    ("row", "values"),
    [
        ("1.234,5;12;3", [1234.5, 12, 3]),
        ("1.234.567;0,5;3", [1234567, 0.5, 3]),
        ("1,234;5,678;9,125", [1.234, 5.678, 9.125]),
        ("1,234.5\t12\t3", [1234.5, 12, 3]),
        ('"1,234.5",1.5,3', [1234.5, 1.5, 3]),
        ('"1,234",3.5,6', [1234, 3.5, 6]),
        ("1 234.5,3.5,6", [1234.5, 3.5, 6]),
        ("1\u202f234,5;3;6", [1234.5, 3, 6]),
        ("1'234.5;3;6", [1234.5, 3, 6]),
        ("\u22121,5;3,25;0,125", [-1.5, 3.25, 0.125]),
        ("1,5e2;2;3", [150, 2, 3]),
    ],
)
def test_numbers_that_only_one_notation_explains(tmp_path, row, values):
    separator = next(sign for sign in "\t;," if sign in row)
    path = written(tmp_path, separator.join("xyz") + f"\n{row}\n")
    (worm,) = read_table(path, "worm")
    assert worm.centroids.tolist() == [values]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x\ty\tz\n1,234\t5\t6\n", "line 2: x is '1,234', which may mean 1.234 or 1234"),
        ('x,y,z\n"1,234",5,6\n', "which may mean 1.234 or 1234"),
        ("x;y;z\n1,234;567;8\n", "which may mean 1.234 or 1234; write it with a decimal point"),
        (
            "x;y;z\n1,5;2.5;3\n",
            "y is '2.5' in line 2 beside x is '1,5' in line 2: decimal points or",
        ),
        ("x;y;z\n1,5;2.345;3\n", "y is '2.345' in a table with decimal commas"),
        ("x;y;z\n1,5;two;3\n", "line 2: y is 'two', expected a number"),
        ("x,y,z\n1,5,2,5,3,5\n", "line 2 has 6 fields, expected 3 as in the header; for decimal"),
        ("X (µm),Y (µm),Z (slice)\n1,2,3\n", "mixed units"),
        ("centroid-0,centroid-1\n1,2\n", "positions in 2D"),
        ("id,name\n1,AVAL\n", "names belong beside a volume of the same name, or into --names"),
        ("ID,Id,x,y,z\n1,2,3,4,5\n", "columns ID and Id; rename one"),
        ("id,x,y,z\n2006_1,1,2,3\n", "line 2: id is '2006_1', expected a whole number"),
        ("x,y,z\n2006_1,1,2\n", "line 2: x is '2006_1', expected a number"),
        ("id,x,y,z\n1e40,1,2,3\n", "expected a whole number"),
        ("id,x,y,z\n1e999999999,1,2,3\n", "expected a whole number"),
    ],
)
def test_what_is_unclear_is_one_line_that_says_what_to_change(tmp_path, text, words):
    with pytest.raises(ReadError, match=words) as caught:
        read_table(written(tmp_path, text), "worm")
    assert "\n" not in str(caught.value)


def test_ids_are_exact(tmp_path):
    ids = ["9007199254740993.0", str(2**63 - 1), "7.0", "1e5"]
    rows = [[id_, *point] for id_, point in zip(ids, POINTS, strict=True)]
    check(written(tmp_path, table("id,x,y,z", rows)), ids=[2**53 + 1, 2**63 - 1, 7, 100000])


def test_ids_that_parquet_has_rounded_are_refused(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(POINTS, columns=["x", "y", "z"])
    frame.assign(id=[1.0, 2, 3, 2.0**53]).to_parquet(tmp_path / "worm.parquet")
    with pytest.raises(ReadError, match="id 9007199254740992 is stored as a rounded number"):
        read(tmp_path / "worm.parquet")
    frame.assign(id=[1.0, 2, 3, 4]).to_parquet(tmp_path / "worm.parquet")
    check(tmp_path / "worm.parquet", ids=[1, 2, 3, 4])


def test_other_encodings_are_refused_in_one_line(tmp_path):
    text = table("x,y,z,name", [[*point, "细胞"] for point in POINTS])
    for encoding in ("gbk", "utf-16-le"):
        with pytest.raises(ReadError, match="save it as CSV in UTF-8"):
            read_table(written(tmp_path, text, encoding=encoding), "worm")
    check(written(tmp_path, text, encoding="utf-16"))


def test_numbers_of_rows_are_no_features(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(POINTS, columns=["x", "y", "z"]).assign(red=0.5)
    frame.index = pd.Index([4, 9, 2, 7])
    frame.reset_index().to_csv(tmp_path / "worm.csv")
    check(tmp_path / "worm.csv", features=["red"])
    pd.read_csv(tmp_path / "worm.csv").to_csv(tmp_path / "worm.csv")
    assert "Unnamed: 0" in (tmp_path / "worm.csv").read_text()
    check(tmp_path / "worm.csv", features=["red"])
    frame.to_parquet(tmp_path / "worm.parquet")
    check(tmp_path / "worm.parquet", features=["red"])


def test_separators_at_the_end_of_rows_are_ignored(tmp_path):
    rows = [[*point, ""] for point in POINTS]
    check(written(tmp_path, table("x,y,z", rows)))


def test_blank_columns_and_rows_of_a_spreadsheet_are_left_out(tmp_path):
    rows = [[*point, "", ""] for point in POINTS]
    check(written(tmp_path, table("x,y,z,,", [*rows, [""] * 5])))


def workbook(path, rows, title="Results"):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "empty"
    sheet = book.create_sheet(title)
    for row in rows:
        sheet.append(row)
    book.save(path)
    return path


def test_excel(tmp_path):
    rows = [["Label", "X (µm)", "Y (µm)", "Z (µm)", "name", "red"]]
    rows += [[*row, "AVAL" if row[0] == 2 else None, 0.5] for row in numbered()]
    path = workbook(tmp_path / "worm.xlsx", rows)
    worm = check(path, ids=[1, 2, 3, 4], unit="um", features=["red"])
    assert worm.names == ("", "AVAL", "", "")
    assert [specimen.name for specimen in read(tmp_path)] == ["worm"]
    rows[2][2] = "five"
    with pytest.raises(ReadError, match=r"line 3: y is 'five'"):
        read_table(workbook(tmp_path / "worm.xlsx", rows), "worm")


def test_names_that_excel_took_for_dates(tmp_path):
    rows = [["x", "y", "z", "name"], *([*point, "A"] for point in POINTS)]
    rows[2][3] = datetime.datetime(2026, 9, 2)
    with pytest.raises(ReadError, match=r"Excel made a date of a name .2026-09-02 00:00:00."):
        read_table(workbook(tmp_path / "worm.xlsx", rows), "worm")


def test_without_the_extra_excel_is_one_line_of_advice(tmp_path, monkeypatch):
    (tmp_path / "worm.xlsx").write_bytes(b"PK")
    original = builtins.__import__

    def absent(name, *rest, **further):
        if name.startswith("openpyxl"):
            raise ImportError(name)
        return original(name, *rest, **further)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ReadError, match=re.escape("pip install '.[excel]'")) as caught:
        read(tmp_path / "worm.xlsx")
    assert "save the table as .csv" in str(caught.value)


def test_broken_workbooks_are_one_line(tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "worm.xlsx").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(ReadError, match=r"cannot read .*worm\.xlsx as an Excel workbook"):
        read(tmp_path / "worm.xlsx")
    good = workbook(tmp_path / "good.xlsx", [["x", "y", "z"], *POINTS]).read_bytes()
    for cut in range(50, len(good), 499):
        (tmp_path / "worm.xlsx").write_bytes(good[:cut])
        with pytest.raises(ReadError):
            read(tmp_path / "worm.xlsx")
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    with pytest.raises(ReadError, match=r"old Excel; save it as \.xlsx or \.csv"):
        read(tmp_path / "old.xls")
    check(written(tmp_path, table("\tX\tY\tZ", numbered(), "\t"), "imagej.xls"), ids=[1, 2, 3, 4])


SEEDS = [
    b"label;centroid-0;centroid-1;centroid-2;Gr\xf6\xdfe\n1;1,5;2,5;3,25;0,5\n2;1.234,5;2;3;4\n",
    "index,axis-0,axis-1,axis-2\n0.0,1,2,3\n1.0,2,3,4\n".encode("utf-16"),
    b' ,Label,X,Y,Z,XM,YM,ZM\n1,a,1,2,3,4,5,6\n2,b,"1,234.5",2,3,4,5,6\n',
    b"specimen,id,x,y,z,r,name,unit\nw,1,2.5,3,4,1,A,um\nw,2,2,3,4,1,,um\n",
]


@settings(max_examples=300)
@given(
    seed=st.sampled_from(SEEDS),
    place=st.integers(0, 200),
    cut=st.integers(0, 20),
    piece=st.one_of(
        st.binary(max_size=6),
        st.sampled_from([b'"', b"\n", b"1,234", b"1e999", b"9" * 400, b"axis-3", b"\xe2\x88\x92"]),
    ),
)
def test_broken_tables_are_one_line_or_a_specimen(tmp_path_factory, seed, place, cut, piece):
    path = tmp_path_factory.getbasetemp() / "broken.csv"
    path.write_bytes(seed[:place] + piece + seed[place + cut :])
    said = ""
    try:
        read_table(path, "worm")
    except EutelyError as error:
        said = str(error)
    assert "\n" not in said


def test_absurd_tables_are_refused_quickly(tmp_path, caplog):
    rows = [[f"s{row}", 1, 2, 3] for row in range(10_001)]
    with pytest.raises(ReadError, match="10001 specimens by column specimen"):
        read_table(written(tmp_path, table("specimen,x,y,z", rows)), "worm")
    wide = [f"column{number}" for number in range(20_000)]
    text = table(",".join(["x", "y", "z", *wide]), [[1, 2, 3, *wide]])
    with caplog.at_level(logging.INFO, "eutely"):
        assert not read_table(written(tmp_path, text), "worm")[0].features
    assert len(caplog.text) < 1000
    with pytest.raises(ReadError) as caught:
        read_table(written(tmp_path, text.replace("x,y,z", "u,v,w")), "worm")
    assert len(str(caught.value)) < 600
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
        with pytest.raises(ReadError, match="not an ordinary file"):
            read_table(tmp_path / "pipe.csv", "worm")
