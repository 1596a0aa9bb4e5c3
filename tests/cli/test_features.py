"""Features on the command line: by meaning, by --features-map, in check; units and axes as well."""

import json

import numpy as np
import pandas as pd
import pytest
import tifffile
from typer.testing import CliRunner

from eutely.cli import app
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume
from eutely.simulation.volume import draw
from eutely.tasks.first_look import odd_copies
from toy_heads import head

ATLAS = "celegans-adult-head"
SIZE = (0.3, 0.3, 0.6)


def run(*words, code=0):
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == code, result.output + str(result.exception)
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One head as table with R, G, B, with other names, in pixels, and as volume with image."""
    folder = tmp_path_factory.mktemp("heads")
    worm = head(seed=1, spread=0.6, lying=True)
    write_table(worm, folder / "rgb.csv")
    write_table(worm.renamed({"R": "red", "G": "green", "B": "blue"}), folder / "words.csv")
    write_table(worm.renamed({"R": "one", "G": "two", "B": "three"}), folder / "numbers.csv")
    write_table(worm.renamed({"R": "-", "G": "-", "B": "-"}), folder / "bare.csv")
    pixels = pd.DataFrame(worm.centroids / SIZE, columns=list("xyz"))
    pixels.assign(id=worm.ids, name=worm.names, **worm.features).to_csv(folder / "pixels.csv")
    labels, _ = draw(worm, SIZE)
    write_volume(labels, folder / "worm.tif", SIZE)
    tables = np.array([[0, *worm.features[key]] for key in "RGB"])
    image = (tables[:, labels] + 600).astype(np.uint16)
    tifffile.imwrite(folder / "raw.ome.tif", image, metadata={"axes": "CZYX"})
    pd.DataFrame({"id": worm.ids, "name": worm.names}).to_csv(folder / "names.csv", index=False)
    return folder


def accuracy(folder, *words):
    out = folder / "accuracy.json"
    said = run("evaluate", ATLAS, *words, "--json", out)
    return json.loads(out.read_text())["accuracy"]["mean"], said


def test_a_head_is_named_alike_however_its_colours_come(folder):
    plain, said = accuracy(folder, folder / "rgb.csv")
    assert "features:" not in said
    words, said = accuracy(folder, folder / "words.csv")
    assert "B is blue, G is green, R is red" in said
    image, said = accuracy(
        folder, folder / "worm.tif", "--names", folder / "names.csv",
        "--image", folder / "raw.ome.tif", "--channels", "R,G,B",
    )  # fmt: skip
    assert "R is R_mean" in said
    mapped, _ = accuracy(
        folder, folder / "numbers.csv", "--features-map", "one=R,two=G,three=B"
    )  # fmt: skip
    pixels, said = accuracy(folder, folder / "pixels.csv", "--voxel-size", "0.3,0.3,0.6")
    assert (
        "pixels.csv: no unit is stated: x, y, z are taken for voxels of 0.3 x 0.3 x 0.6 um" in said
    )
    bare, said = accuracy(folder, folder / "bare.csv")
    assert "the atlas has B, G, R, this specimen does not" in said
    assert plain == words == mapped == pytest.approx(pixels, abs=0.01)
    assert image == pytest.approx(plain, abs=0.011)  # two of 175: centres are those of voxels
    assert bare < plain - 0.05


def test_a_map_that_fits_nothing_is_one_line(folder):
    said = run("annotate", ATLAS, folder / "words.csv", "-o", folder / "x",
               "--features-map", "rot=R", code=1)  # fmt: skip
    assert not (folder / "x").exists()
    for words in ("red", "red=", "red=R,red=G", "=R"):
        run("check", folder / "words.csv", "--features-map", words, code=1)
    assert said == ""


def test_check_lists_features_with_range_and_use(folder):
    out = folder / "facts.json"
    said = run("check", folder / "words.csv", "--atlas", ATLAS, "--json", out)
    assert "feature specimens from to used by blue 1" in said
    rows = {row["name"]: row for row in json.loads(out.read_text())["features"]}
    assert {name: row["use"] for name, row in rows.items()} == {
        "red": "atlas: R", "green": "atlas: G", "blue": "atlas: B",
    }  # fmt: skip
    table = pd.read_csv(folder / "words.csv")
    assert rows["red"]["low"] == pytest.approx(table["red"].min(), rel=1e-12)
    assert rows["red"]["high"] == pytest.approx(table["red"].max(), rel=1e-12)
    assert "red 1" in (said := run("check", folder / "words.csv"))
    assert said.count("build") == 3
    said = run("check", folder / "bare.csv", "--atlas", ATLAS)
    assert "warning: features: the atlas has B, G, R" in said


def test_annotate_and_build_say_what_check_finds(folder):
    said = run("annotate", ATLAS, folder / "worm.tif", "-o", folder / "y",
               "--voxel-size", "1.5,0.3,0.3")  # fmt: skip
    assert "are x and z swapped (--voxel-size 0.3,0.3,1.5)?" in said
    assert "the atlas has B, G, R" in said
    said = run("annotate", ATLAS, folder / "worm.tif", "-o", folder / "y", "--voxel-size", "0.001")
    assert "is it really micrometres?" in said
    cohort = folder / "cohort"
    for number in range(4):
        write_table(head(f"w{number}", seed=3 if number == 3 else 2), cohort / f"w{number}.csv")
    line = "w0: copies: w1 and w2 hold the same nuclei; keep one of them"
    said = run("build", cohort, "-o", folder / "run", "--supervised")
    assert said.count(line) == 1
    assert run("check", cohort).count(line) == 1


def test_copies_are_named_in_one_line():
    def copies(*numbers):
        return [one.detail for one in odd_copies([head(f"w{k}", seed=k % 10) for k in numbers])]

    assert copies(0, 1, 2) == []
    assert copies(0, 1, 10) == ["w10 holds the same nuclei; keep one of them"]
    [eight] = copies(*range(0, 80, 10))
    assert eight == "w10, w20, w30 and 4 others hold the same nuclei; keep one of them"
    two = list(odd_copies([head(f"w{k}", seed=k % 2) for k in range(4)]))
    assert [one.specimen for one in two] == ["w0", "w1"]


def test_a_voxel_size_for_micrometres_is_said_not_to_apply(folder):
    said = run("check", folder / "rgb.csv", "--voxel-size", "0.3,0.3,0.6")
    assert ": in um already, so --voxel-size does not apply" in said
