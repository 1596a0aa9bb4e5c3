"""Names in tables of their own, through all commands that use them."""

import csv
import json
import sys

import pytest

import eutely
from eutely.cli import main
from eutely.io.tables import write_table


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a call of the command line that gives exit code, output and errors."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["eutely", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr()
        return stopped.value.code or 0, shown.out, shown.err

    return call


@pytest.fixture
def cohort(tmp_path):
    """Three specimens without names in ``worms``; their names in ``truth.csv``."""
    specimens = eutely.simulate(3, 40, seed=1, variation=0.5)
    with (tmp_path / "truth.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["Specimen", "Label", "Name"])
        for specimen in specimens:
            write_table(specimen.without_names(), tmp_path / "worms" / f"{specimen.name}.csv")
            for id_, name in zip(specimen.ids, specimen.names, strict=True):
                writer.writerow([specimen.name, id_, name])
    return specimens


def table_rows(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def accuracy(path):
    return json.loads(path.read_text())["accuracy"]["mean"]


def test_names_of_a_table_build_name_and_evaluate(run, tmp_path, cohort):
    worms, truth, facts = tmp_path / "worms", tmp_path / "truth.csv", tmp_path / "facts.json"
    options = ("-o", tmp_path / "run", "--supervised", "--names", truth, "-q", "-j", 1)
    code, _, said = run("build", worms, *options)
    assert (code, said) == (0, "")
    atlas = tmp_path / "run" / "atlas.h5"
    assert sum(map(bool, eutely.Atlas.load(atlas).names)) == 40
    code, _, _ = run("evaluate", atlas, worms, "--names", truth, "--json", facts, "-j", 1)
    assert code == 0
    assert accuracy(facts) == 1

    # Tables of annotate, one of them corrected by hand, name and judge as well.
    annotated = tmp_path / "annotated"
    words = ("-o", annotated, "-q", "-j", 1)
    assert run("annotate", atlas, worms, *words)[0] == 0
    assert "given" not in table_rows(annotated / "annotations.csv")[0]
    assert run("annotate", atlas, worms, "--names", truth, *words)[0] == 0
    rows = table_rows(annotated / "annotations.csv")
    given = {(row["specimen"], row["id"]): row["given"] for row in rows}
    assert given == {
        (specimen.name, str(id_)): name
        for specimen in cohort
        for id_, name in zip(specimen.ids, specimen.names, strict=True)
    }
    table = annotated / "worm001.csv"
    rows = table_rows(table)
    right = rows[0]["name"]
    table.write_text(table.read_text().replace(f",{right},", ",BOSS,", 1))
    unnamed = tmp_path / "unnamed.h5"
    eutely.Atlas.load(atlas).named([""] * 40).save(unnamed)
    one = worms / "worm001.csv"
    for names in (table, annotated):
        named = tmp_path / "named.h5"
        assert run("name", unnamed, one, "--names", names, "-o", named, "-j", 1)[0] == 0
        assert "BOSS" in eutely.Atlas.load(named).names
        assert right not in eutely.Atlas.load(named).names
    assert run("evaluate", atlas, worms, "--names", annotated, "--json", facts, "-j", 1)[0] == 0
    assert accuracy(facts) == pytest.approx(1 - 1 / 40 / 3)

    # A corrected table is also a table of pins.
    other = rows[1]["name"]
    swapped = {right: other, other: right}
    for row in rows:
        row["name"] = swapped.get(row["name"], row["name"])
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    again = tmp_path / "again"
    code, _, _ = run("annotate", atlas, one, "-o", again, "--pins", table, "-q", "-j", 1)
    assert code == 0
    result = {row["id"]: row["name"] for row in table_rows(again / "worm001.csv")}
    assert result == {row["id"]: row["name"] for row in rows}


@pytest.mark.parametrize("command", ["name", "evaluate", "annotate"])
def test_wrong_names_are_one_line_before_any_work(run, tmp_path, cohort, command):
    eutely.build(cohort, supervised=True, workers=1).atlas.save(tmp_path / "atlas.h5")
    before = (tmp_path / "atlas.h5").read_bytes()
    (tmp_path / "names.csv").write_text("specimen,id,nmae\nworm001,1,A\n")
    words = (command, tmp_path / "atlas.h5", tmp_path / "worms", "--names", tmp_path / "names.csv")
    words += ("-o", tmp_path / "out") if command == "annotate" else ()
    code, shown, said = run(*words)
    assert (code, shown) == (2, "")
    assert said.startswith("error: ")
    assert "no column name (found: specimen, id, nmae)" in said
    assert said.count("\n") == 1
    assert (tmp_path / "atlas.h5").read_bytes() == before


def test_skip_bad_in_other_commands(run, tmp_path, cohort):
    worms = tmp_path / "worms"
    (worms / "metadata.csv").write_text("strain\nN2\n")
    (worms / "broken.csv").write_text("x,y,z\n1\n")
    code, shown, said = run("extract", worms, "-o", tmp_path / "out")
    assert (code, shown) == (2, "")
    assert said.count("error: ") == 3
    assert said.endswith("2 problems; correct or remove these files, or add --skip-bad\n")
    assert not (tmp_path / "out").exists()
    code, shown, said = run("extract", worms, "-o", tmp_path / "out", "--skip-bad")
    assert code == 0
    assert said.count("warning: left out: ") == 2
    assert len(list((tmp_path / "out").glob("*.csv"))) == 3
    bad = (worms / "metadata.csv", worms / "broken.csv")
    code, _, said = run("match", *bad)
    assert code == 2
    assert said.endswith("error: 2 problems; correct or remove these files\n")
