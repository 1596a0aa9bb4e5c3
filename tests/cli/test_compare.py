"""``eutely compare``: files, groups of a table, and one line for each bad input."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from eutely.cli import app
from eutely.errors import EutelyError
from eutely.io.tables import write_table
from toy_groups import toy_groups

FILES = {
    "compare.csv", "compare.html", "details.csv", "sets.csv", "pairs.csv", "animals.csv",
    "methods.txt", "volcano.svg", "volcano.pdf", "shifts.svg", "shifts.pdf", "detectable.svg",
    "detectable.pdf",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An atlas, and tables of four animals in each of the folders ``control`` and ``mutant``."""
    place = tmp_path_factory.mktemp("compare")
    atlas, groups = toy_groups(4, 40)
    atlas.save(place / "atlas.h5")
    rows = ["specimen,group,day,age"]
    for label, worms in groups.items():
        (place / label).mkdir()
        for number, worm in enumerate(worms):
            name = f"{label}{number}"
            write_table(replace(worm, name=name), place / label / f"{name}.csv")
            rows.append(f"{label}{number},{label},{'ab'[number % 2]},{number}")
    (place / "groups.csv").write_text("\n".join(rows) + "\n")
    return place


def run(folder: Path, *words: str) -> str:
    """Run the command in ``folder`` and return what it prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = ["--atlas", "atlas.h5", "--permutations", "99", "-j", "1"]
        result = CliRunner().invoke(app, ["compare", *words, *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.output


def test_two_folders_give_tables_a_page_and_figures(folder: Path) -> None:
    printed = run(folder, "control", "mutant", "-o", "out")
    assert "mutant against control:" in printed
    assert "8 animals (control 4, mutant 4)" in printed
    assert {path.name for path in (folder / "out").iterdir()} - {".written.json"} == FILES
    table = pd.read_csv(folder / "out" / "compare.csv")
    assert ",".join(table) == "cell,name,test,effect,low,high,p,q,doubtful"
    assert len(table) == 40 * table["test"].nunique()
    before = {name: (folder / "out" / name).read_bytes() for name in sorted(FILES)}
    run(folder, "control", "mutant", "-o", "out")
    for name, content in before.items():
        assert (folder / "out" / name).read_bytes() == content, name
    assert not list((folder / "out").glob("*.bak"))


def test_groups_and_covariates_of_a_table(folder: Path) -> None:
    run(folder, "control", "mutant", "--groups", "groups.csv", "-o", "grouped")
    words = (folder / "grouped" / "methods.txt").read_text()
    assert "exchanged within 2 batches only" in words
    assert "Freedman and Lane" in words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["control", "-o", "x"], "one group; give two folders or more"),
        (["control", "control", "-o", "x"], "control and control are the same files"),
        (["control", "mutant/mutant0.csv", "-o", "x"], "group 'mutant0' has 1 animal, expected"),
        (["control", "mutant", "-o", "control"], "control is the folder of the inputs"),
        (["control", "--groups", "atlas.csv", "-o", "x"], "cannot read|atlas.csv"),
        (["control", "--groups", "groups.csv", "-o", "x"], "mutant0 is not among the inputs"),
        (["control", "mutant", "--trend", "-o", "x"], "a trend needs three groups or more"),
    ],
)
def test_bad_input_is_one_line(folder: Path, words: list[str], message: str) -> None:
    with pytest.raises(EutelyError, match=message) as error:
        run(folder, *words)
    assert "\n" not in str(error.value)
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("specimen,day\na,1\n", "no column group"),
        ("group,day\na,1\n", "no column specimen"),
        ("specimen,group\na,x\na,y\n", "a is there twice"),
        ("specimen,group\na,\n", "a has no group"),
        ("specimen,group\n", "has no rows"),
    ],
)
def test_bad_tables_of_groups_are_one_line(folder: Path, text: str, message: str) -> None:
    (folder / "bad.csv").write_text(text)
    with pytest.raises(EutelyError, match=message):
        run(folder, "control", "mutant", "--groups", "bad.csv", "-o", "x")


def test_a_covariate_that_equals_the_group_is_one_line(folder: Path) -> None:
    rows = [f"{g}{k},{g},{g[0]}" for g in ("control", "mutant") for k in range(4)]
    (folder / "same.csv").write_text("\n".join(["specimen,group,lab", *rows]) + "\n")
    with pytest.raises(EutelyError, match="the covariates lab say which group"):
        run(folder, "control", "mutant", "--groups", "same.csv", "-o", "x")
