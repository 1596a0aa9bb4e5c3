"""Files besides volumes, images and tables of nuclei: good ones, hostile ones, and two readers."""

import csv
import io
import json
import tomllib
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator
Content = dict[str, Any]

NAMES = ("AVAL", "AVAR", "x", "y", "z", "w")
"""Cells of the atlases."""


# --- good files


def matlab(path: Path, packed: bool) -> None:
    """Write a statistical atlas as NeuroPAL_ID does."""
    from scipy.io import savemat

    random = np.random.default_rng(8)
    model = {"mu": random.normal(size=(6, 7)), "sigma": np.moveaxis([np.eye(7)] * 6, 0, 2)}
    part = {"N": np.array(NAMES, dtype=object), "model": model}
    savemat(path, {"atlas": {"head": part, "tail": part}}, do_compression=packed)


def excel(path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["id", "x", "y", "z", "name"])
    for i in range(20):
        book.active.append([10 + i, 0.5 * i, i * i, -i, f"cell{i}"])
    book.save(path)


LISTS = {
    "names.csv": "id,name\n" + "".join(f"{i},cell{i}\n" for i in range(20)),
    "pins.csv": "specimen,id,name,cell,open,author,time\n"
    + "".join(f"worm,{i},N{i},,,ann,2026-01-{i:02}T00:00:00Z\n" for i in range(1, 20)),
    "groups.csv": "specimen,group,age\n" + "".join(f"worm{i},g{i % 2},{i}\n" for i in range(9)),
    "sets.csv": "name,class\n" + "".join(f"N{i},c{i % 3}\n" for i in range(20)),
    "annotated.csv": "id,cell,name,confidence\n"
    + "".join(f"{i},{2 * i},N{i},0.{i + 10}\n" for i in range(20)),
    "curate.json": json.dumps({
        "volumes": {"worm": ["/data/worm.tif", ""]}, "images": {"worm": "/data/raw.tif"},
        "voxel_size": [0.1, 0.1, 0.5],
    }),
    "inputs.json": json.dumps({
        "volumes": {"worm": ["/data/worm.tif", "x"]}, "images": {"worm": "/data/raw.tif"},
        "voxel_size": None, "sizes": {"worm": [0.1, 0.1, 0.5]}, "channels": ["R", "-"],
        "others": {"b": ["table", "/data/b.csv", ""]},
    }),
}  # fmt: skip
"""Tables besides those of nuclei, by their name."""

ABOUT = """session_start_time = 2024-05-01T10:00:00Z
experimenter = ["Doe, Jane"]
lab = "Worms"
keywords = ["NeuroPAL", "head"]
[subject]
age = "P3D"
cultivation_temp = 20.5
strain = "OH16230"
"""

SETTINGS = """preset = "paper"
seed = 7
[costs]
neighbours = 5
[estimate]
prior = 12.5
freedom = 9.0
features = "none"
[multi]
synchronisation = "sparse"
"""


def exported(path: Path, atlas: Any) -> None:
    from eutely.io.exchange import export_atlas

    export_atlas(atlas, path)


# --- as eutely reads them


def read_other(kind: str, path: Path) -> Content:
    """Read a file as the commands do."""
    if kind == "matlab":
        from eutely.io.means import read_means

        means = read_means(path)
        specimen = means.specimen
        return {"means": specimen.centroids, "sigma": means.covariances, "names": specimen.names}
    if kind == "exported":
        from eutely.io.exchange import read_exported

        atlas = read_exported(path)
        keys = ("means", "covariances", "predictors", "neighbours", "edges", "seen", "size")
        return {key: getattr(atlas, key) for key in keys} | {"names": atlas.names}
    if path.name == "about.toml":
        from eutely.io.nwb_write import read_about

        about = read_about(path)
        return {key: str(value) for key, value in {**about.session, **about.subject}.items()}
    if kind == "settings":
        from eutely.io.config import load_config

        config = load_config(path)
        keys = ("seed", "costs.neighbours", "estimate.prior", "estimate.freedom",
                "estimate.features", "multi.synchronisation")  # fmt: skip
        return {key: config.value(key) for key in keys}
    return _read_list(path)


def _read_list(path: Path) -> Content:
    from eutely.io import groups, names, pins
    from eutely.io.sources import read_files

    if path.name == "names.csv":
        return {"names": names.read_names(path)}
    if path.name == "pins.csv":
        return {"pins": pins.read_pins(path)}
    if path.name == "groups.csv":
        found, covariates = groups.read_groups(path)
        return {"groups": found, "covariates": covariates}
    if path.name == "sets.csv":
        return {"sets": groups.read_cell_groups(path)}
    if path.suffix == ".json":
        files = read_files(path.parent)
        return {
            "files": (dict(files.volumes), dict(files.images), files.voxel_size),
            "more": (dict(files.others), dict(files.sizes), files.channels),
        }
    from eutely.napari.named import read_named

    named = read_named(path)
    return {"ids": named.ids, "names": named.names, "confidence": named.confidence}


# --- as another reader does


def read_other_again(kind: str, path: Path) -> Content:
    """Read a file with another reader of its format; any error means that it refuses."""
    if kind == "matlab":
        from scipy.io import loadmat

        head = loadmat(path, simplify_cells=True)["atlas"]["head"]
        mean, sigma = head["model"]["mu"], head["model"]["sigma"]
        names = tuple(map(str, head["N"]))
        return {"means": mean[:, :3], "sigma": np.moveaxis(sigma[:3, :3], 2, 0), "names": names}
    if kind == "exported":
        return _exported_by_hand(path)
    if path.name == "about.toml":
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        subject = given.pop("subject", {})
        return {key: str(value) for key, value in {**given, **subject}.items()}
    if kind == "settings":
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        preset = {"preset", "seed"}
        return {
            (key if key in preset else f"{key}.{name}"): value
            for key, section in given.items()
            for name, value in (section.items() if isinstance(section, dict) else [("", section)])
        }
    return _list_by_hand(path)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        found = csv.DictReader(file)
        return [
            {str(key).strip().lower(): value.strip() for key, value in row.items()}
            for row in found
            if any(row.values())
        ]


def _list_by_hand(path: Path) -> Content:
    if path.suffix == ".json":
        told = json.loads(path.read_text(encoding="utf-8"))
        size = told["voxel_size"] and tuple(told["voxel_size"])
        tables = [told.get(key, {}) for key in ("others", "sizes")]
        others, sizes = ({k: tuple(v) for k, v in table.items() if v} for table in tables)
        sizes = {name: tuple(map(float, size)) for name, size in sizes.items()}
        return {
            "files": ({k: tuple(v) for k, v in told["volumes"].items()}, told["images"], size),
            "more": (others, sizes, tuple(told.get("channels", ()))),
        }
    rows = _rows(path)
    if path.name == "names.csv":
        return {"names": {int(Decimal(row["id"])): row["name"] for row in rows if row["name"]}}
    if path.name == "pins.csv":
        pins: dict[tuple[str, int], str | int] = {}
        for row in rows:
            key = row["specimen"], int(Decimal(row["id"]))
            number = row.get("cell", "")
            cell = int(float(number)) if number and not row.get("name") else row.get("name", "")
            if row.get("open", "") in ("", "0"):
                pins[key] = cell
            else:
                pins.pop(key, None)
        return {"pins": pins}
    if path.name == "annotated.csv":
        return {
            "ids": np.array([int(row["id"]) for row in rows]),
            "confidence": np.array([float(row["confidence"] or "nan") for row in rows]),
        }
    key = "specimen" if path.name == "groups.csv" else "name"
    others = [column for column in rows[0] if column not in (key, "group", "cell", "")]
    table = {column: {row[key]: row[column] for row in rows} for column in others}
    if key == "name":
        return {"sets": table}
    return {"groups": {row[key]: row["group"] for row in rows}, "covariates": table}


def _exported_by_hand(path: Path) -> Content:
    about = json.loads((path / "description.json").read_text(encoding="utf-8"))
    cells, edges = _rows(path / "cells.csv"), _rows(path / "edges.csv")
    pairs = _rows(path / "neighbours.csv")

    def matrix(rows: list[dict[str, str]], *keys: str) -> np.ndarray:
        return np.array([[float(row[key]) for key in keys] for row in rows])

    nine = [a + b for a in "xyz" for b in "xyz"]
    m, k = int(about["cells"]), int(about["neighbours"])
    covariances = matrix(cells, *(f"covariance_{ab}" for ab in nine)).reshape(-1, 3, 3)
    predictors = matrix(pairs, *(f"predictor_{ab}" for ab in nine)).reshape(m, k, 3, 3)
    return {
        "means": matrix(cells, "x", "y", "z"),
        "covariances": covariances,
        "edges": matrix(edges, "cell_i", "cell_j"),
        "neighbours": matrix(pairs, "neighbour").reshape(m, k),
        "predictors": predictors,
        "seen": matrix(cells, "seen")[:, 0],
        "size": np.array(about["size"]),
    }


PLACES = {
    "spots.csv": ("POSITION_X", "POSITION_Y", "POSITION_Z"),
    "Spots_Position.csv": ("Position X", "Position Y", "Position Z"),
    "head.csv": ("Real X (um)", "Real Y (um)", "Real Z (um)"),
    "CD1.csv": ("x", "y", "z"),
}
"""Columns of coordinates in tables of other programs."""


def programs_by_hand(path: Path) -> Content:
    """Read the coordinates of a file of another program."""
    if path.suffix == ".geff":
        import zarr

        props: Any = zarr.open_group(path, mode="r")["nodes/props"]
        return {"centroids": np.stack([props[axis]["values"][:] for axis in "xyz"], axis=1)}
    if path.suffix == ".xml":
        tree = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        rows = [[float(s.attrib[f"POSITION_{a}"]) for a in "XYZ"] for s in tree.iter("Spot")
                if float(s.attrib.get("VISIBILITY", "1"))]  # fmt: skip
        return {"centroids": np.array(rows)}
    scale = np.ones(3)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            [entry] = [name for name in archive.namelist() if "-nuclei" in name]
            text = archive.read(entry).decode()
        fields = [[word.strip() for word in row] for row in csv.reader(io.StringIO(text)) if row]
        places = [[float(row[n]) for n in (5, 6, 7)] for row in fields if row[1] == "1"]
        about = ElementTree.fromstring(path.with_suffix(".xml").read_text())
        sides = about.find("resolution").attrib  # type: ignore[union-attr]
        scale = np.array([float(sides["xyRes"])] * 2 + [float(sides["zRes"])])
        return {"centroids": np.array(places) * scale}
    lines = [[word.strip() for word in row] for row in csv.reader(path.open(encoding="utf-8"))]
    if path.suffix == ".marker":
        lines = [row for row in lines if row and not row[0].startswith("#")]
        return {"centroids": np.array([[float(word) for word in row[:3]] for row in lines]) - 1}
    if path.name == "mastodon.csv":
        at = [number for number, word in enumerate(lines[0]) if word == "Spot position"]
        body = lines[3:]
    else:
        keys = PLACES[path.name]
        head = next(number for number, row in enumerate(lines) if keys[0] in row)
        at = [lines[head].index(key) for key in keys]
        body = lines[head + (4 if path.name == "spots.csv" else 1) :]
        scale = np.array([0.1, 0.1, 0.5]) if path.name == "CD1.csv" else scale
    rows = [[float(row[n]) for n in at] for row in body if any(row)]
    return {"centroids": np.array(rows) * scale}


def excel_by_openpyxl(path: Path) -> Content:
    import openpyxl

    head, *rows = openpyxl.load_workbook(path, data_only=True).active.iter_rows(values_only=True)
    at = [[str(word).strip() for word in head].index(key) for key in ("id", "x", "y", "z")]
    rows = [row for row in rows if any(value is not None for value in row)]
    return {
        "ids": np.array([int(row[at[0]]) for row in rows]),
        "centroids": np.array([[float(row[n]) for n in at[1:]] for row in rows]),
    }


# --- hostile files


def odd_matlab(path: Path, random: Random) -> None:
    """Write bombs, absurd shapes, other classes."""
    from scipy.io import savemat
    from scipy.sparse import csc_array

    how = int(random.integers(6))
    content: dict[str, Any] = {"head": {"N": np.array(["a"], dtype=object), "model": {}}}
    if how == 0:
        content["head"]["model"] = {"mu": np.zeros((2, 3)), "sigma": np.zeros(60_000_000, np.uint8)}
    elif how == 1:
        content["head"]["model"] = {"mu": csc_array((2**30, 3)), "sigma": np.zeros(1)}
    elif how == 2:
        content["head"]["model"] = {"mu": np.full((1, 3), np.nan), "sigma": np.zeros((3, 3, 1))}
    elif how == 3:
        content["head"] = {"N": np.empty(20_000, dtype=object), "model": {}}
        content["head"]["N"][:] = ""
    elif how == 4:
        for _ in range(60):
            content = {"head": content}
    savemat(path, {"atlas": content}, do_compression=True)
    if how == 5:  # cells without end
        data = bytearray(path.read_bytes())
        at = int(random.integers(128, len(data) - 8))
        data[at : at + 4] = (2**31 - 1).to_bytes(4, "little")
        path.write_bytes(data)


def odd_excel(path: Path, random: Random) -> None:
    """Write a sheet that declares, or shares, more than there is."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    text = parts[sheet].decode()
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    wide = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    changed = [
        text.replace("A1:E21", "A1:XFD1048576"),
        text.replace("</sheetData>", f"{wide}</sheetData>"),
        text.replace("<sheetData>", "<sheetData>" + wide.replace("1048576", "1")),
        laughs + text,
        text.replace("<v>", "<v>1e999"),
        text + " " * 2**28,
        text[: len(text) // 2],
    ]
    parts[sheet] = changed[int(random.integers(len(changed)))].encode()
    methods = [zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    method = methods[int(random.integers(4))]
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def odd_array(path: Path, random: Random) -> None:
    """Write a NumPy file whose header declares something else."""
    odd = ["{'descr': '<u2', 'fortran_order': False, 'shape': (2000000000, 9, 9), }",
           "{'descr': '|O', 'fortran_order': False, 'shape': (3, 3, 3), }",
           "{'descr': '<f8', 'fortran_order': True, 'shape': (-1, 2, 2), }",
           "{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (3, 3, 3), }",
           "{'descr': '<u2', 'fortran_order': False, 'shape': (" + "9," * 70 + "), }",
           "(" * 5000, "__import__('os').system('true')"]  # fmt: skip
    head = odd[int(random.integers(len(odd)))].ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(54))


def odd_exported(path: Path, random: Random) -> None:
    """Write absurd values and structures into the description, or a table."""
    file = path / "description.json"
    about = json.loads(file.read_text(encoding="utf-8"))
    key = str(random.choice(sorted(about)))
    endless = [float("inf"), float("-inf"), float("nan"), 10**400]
    more = [[float("inf")] * 2, {"a": [float("inf"), 1]}]
    odd = [*endless, *more, -1, 0, 1e308, "x", None, [], {}, True, [[1]], 2**63]
    how = int(random.integers(5))
    if how == 0:
        file.write_text("[" * 5000 + "]" * 5000)
    elif how == 1:
        del about[key]
        file.write_text(json.dumps(about))
    else:
        about[key] = odd[int(random.integers(len(odd)))]
        file.write_text(json.dumps(about))


def odd_list(path: Path, random: Random) -> None:
    """Write tables with odd fields, or none."""
    text = path.read_text(encoding="utf-8")
    odd = ["", "\ufeff\n", text.replace(",", "\0"), text.replace("1", "1e999"), text * 2,
           text.replace("1", "9" * 5000), text.replace("0", "[" * 3000), '"' + text,
           text.replace("id", "x"), text.replace("name", "id"), text.replace(",", ";"),
           text.replace("0.1", "nan"), text.replace("0.1", "Infinity"), "x," * 200_000]  # fmt: skip
    path.write_text(odd[int(random.integers(len(odd)))], encoding="utf-8")


def odd_settings(path: Path, random: Random) -> None:
    """Write settings that no run can have."""
    odd = ["seed = " + "9" * 5000, "seed = -1", "a = " + "[" * 5000, "[estimate]\nprior = inf",
           "[estimate]\nprior = nan", "[estimate]\nfreedom = 1e308", "estimate = 7",
           "[estimate]\nprior = '1'", "[[estimate]]\nprior = 1", "preset = 'none'", "\0",
           "a." * 3000 + "a = 1", "[costs]\nneighbours = 1e3", "seed = 1979-05-27"]  # fmt: skip
    path.write_text(odd[int(random.integers(len(odd)))], encoding="utf-8")


HOSTILE: dict[str, tuple[Callable[[Path, Random], None], ...]] = {
    "matlab": (odd_matlab,),
    "excel": (odd_excel,),
    "npy": (odd_array,),
    "exported": (odd_exported,),
    "lists": (odd_list,),
    "settings": (odd_settings,),
}
"""Ways to make a hostile file, by format."""
