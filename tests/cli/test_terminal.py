"""What commands print, word for word, on a terminal of 80 columns."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.io.tables import write_table

SETTINGS = "[refine]\nlinear_rounds = 2\njoint_rounds = 1\nfolds = 2\n"


def run(*words: object) -> str:
    """Run a command as in a pipe."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what standard output shows on a terminal of 80 columns."""
    shown = io.StringIO()
    console = Console(file=shown, width=80, force_terminal=True, color_system=None)
    common = sys.modules["eutely.cli.common"]
    monkeypatch.setattr(common.say, "__defaults__", ("", console))
    monkeypatch.setattr(sys.modules["eutely.cli.check"], "out", console)
    return shown


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four animals of 30 cells, named; its folder."""
    place = tmp_path_factory.mktemp("terminal")
    for specimen in eutely.simulate(4, cells=30, variation=0.3):
        write_table(specimen, place / "worms" / f"{specimen.name}.csv")
    (place / "settings.toml").write_text(SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run("build", "worms", "-o", "run", "--config", "settings.toml", "-j", 1)
        run("name", "run", "worms", "-j", 1)
    return place


WORDS = {
    "build worms -o new --config settings.toml -j 1": """\
30 cells in 4 specimens; an atlas of other specimens confirms 100.0% of their
nuclei
left and right look alike in these specimens: none shows whether it is a mirror
image
atlas: new/atlas.h5, report: new/report.html
next: eutely name new NAMED_SPECIMENS
""",
    "name run worms -o named.h5 -j 1": """\
30 of 30 cells named, in named.h5; next: eutely annotate named.h5 NEW_SPECIMENS
-o DIR
""",
    "annotate run worms/worm001.csv -o out -j 1": """\
30 of 30 nuclei of 1 specimen have a cell, 30 of them with confidence 0.9 or
more; look first at out/report.html
next: eutely curate out
""",
    "check worms": """\
specimen  nuclei  named      x      y      z  neighbour  radius  head    margin
worm001       30     30    342  216.7    149         13    6.69  +x 38°     7.8
worm002       30     30    286  273.3  152.9       13.1    6.72  -x 47°     8.3
worm003       30     30  39.22  174.1  387.3       13.4    6.58  +z 23°       8
worm004       30     30  350.4  237.8  110.4       13.7    6.72  +x 37°     7.8
all: no voxel size, unit um
4 specimens, 120 nuclei, 0 warnings
""",
    "atlas show run": """\
content         30 cells, 30 named, 0 rare
specimens       4
features        radius 1, radius 2, radius 3
length x width  100.1 x 6.576 um (SD)
model           joint
origins         not known
checksum        CHECKSUM
""",
}


@pytest.mark.parametrize("words", WORDS)
def test_a_command_says(
    place: Path, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(place)
    run(*words.split())
    shown = re.sub(r"\b[0-9a-f]{64}\b", "CHECKSUM", terminal.getvalue())
    assert shown == WORDS[words]
    assert max(map(len, terminal.getvalue().splitlines())) <= 80


def test_evaluate_says(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert run("evaluate", "run", "worms", "-j", 1) == (
        "worm001\t1.0000\t30 of 30\nworm002\t1.0000\t30 of 30\n"
        "worm003\t1.0000\t30 of 30\nworm004\t1.0000\t30 of 30\n"
        "mean 1.0000  sd 0.0000  median 1.0000  (4 specimens)\n"
    )


def test_match_says(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    words = ["match", "worms/worm001.csv", "worms/worm002.csv", "-o", "pairs.csv"]
    result = CliRunner().invoke(app, words)
    lines = [line for line in result.stderr.splitlines() if "compiling" not in line]
    assert result.stdout == ""
    assert lines == [
        "30 of 30 nuclei of worm001 matched with worm002 (30 nuclei)",
        "agreement: median distance 0.11 spacings (by chance 0.39), 92% of neighbours kept (by "
        "chance 89%)",
        "handedness: not clear, the mirror image fits about as well; if one of the two files is "
        "mirrored, match again with --handedness mirrored",
    ]


def test_no_path_is_broken(terminal: io.StringIO) -> None:
    from eutely.cli.common import say

    path = f"/home/someone/{'x' * 90}/a-long-name.h5"
    say(f"error: {path}: an example of a line that is too long")
    lines = terminal.getvalue().splitlines()
    assert f"{path}:" in lines
    assert " ".join(lines) == f"error: {path}: an example of a line that is too long"
