"""Long work can be watched, stopped and continued; completion of the shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from eutely.cli import app
from eutely.cli.progress import PLANS, Watch, clock_time, rough_time, watched
from eutely.execute import PART

SETTINGS = "[refine]\nlinear_rounds = 2\njoint_rounds = 1\nfolds = 2\n"


class Clock:
    """A clock that stands still."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_line_says_step_time_and_what_is_left() -> None:
    clock = Clock()
    watch = Watch(PLANS["refine"], clock)
    watch.report("poses", 0, 1)
    assert watch.line() == "step 1 of 6: finding heads and tails, 0:00"
    watch.report("one-handed", 0, 1)
    clock.now = 10.0
    watch.report("one-handed", 1, 1)
    watch.report("targets", 0, 1)
    clock.now = 20.0
    watch.report("targets", 1, 1)
    watch.report("first-target", 0, 1)
    clock.now = 60.0
    watch.report("first-target", 1, 1)
    clock.now = 90.0
    watch.report("finding cells", 6, 12)
    assert watch.line() == ("step 4 of 6: finding shared cells, 6 of 12, 1:30, about 45 s left")
    assert watch.share == pytest.approx(68 / 103)
    assert watch.left == pytest.approx(90.0 * 35 / 68)


def test_a_step_without_counts_of_its_own_tells_how_many_specimens_are_done() -> None:
    clock = Clock()
    watch = Watch(PLANS["refine"], clock)
    watch.report("poses", 0, 1)
    watch.report(PART, 30, 100)
    assert watch.line() == "step 1 of 6: finding heads and tails, 30 of 100, 0:00"
    clock.now = 10.0
    watch.report("first-target", 0, 1)
    watch.report("first target", 0, 4)
    clock.now = 100.0
    watch.report(PART, 50, 100)
    assert watch.share == pytest.approx((8 + 5) / 103)
    watch.report(PART, 0, 20)  # another map of the same round
    assert watch.share == pytest.approx((8 + 5) / 103)
    watch.report("first target", 2, 4)
    watch.report(PART, 50, 100)
    assert watch.share == pytest.approx((8 + 25) / 103)
    assert watch.line() == "step 3 of 6: matching all with one, 2 of 4, 1:40, about 4 min left"


def test_a_long_step_gets_a_bar_of_its_own_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(Watch.__init__, "__defaults__", (clock,))
    with (tmp_path / "out").open("w") as file:
        console = Console(file=file, force_terminal=True, width=80)
        with watched(PLANS["refine"], console, quiet=False) as progress:
            progress("poses", 0, 1, "")
            progress(PART, 30, 100, "")
            console.print("early")
            clock.now = 6.0
            progress(PART, 40, 100, "")
            console.print("late")
    early, late = (tmp_path / "out").read_text().split("early")
    assert "    30 of 100" not in early
    assert "    40 of 100" in late


def test_stored_steps_do_not_count_for_the_time_left() -> None:
    clock = Clock()
    watch = Watch(PLANS["refine"], clock)
    for what in ("poses", "targets", "first-target"):  # at once: from an earlier run
        watch.report(what, 1, 1)
    watch.report("another-target", 0, 1)
    clock.now = 60.0
    watch.report("finding cells", 6, 12)
    assert watch.left == pytest.approx(105.0)  # 20 of 103 took 60 s, 35 are left


def test_work_never_goes_back() -> None:
    watch = Watch(PLANS["learn"], Clock())
    numbers = []
    for what in (
        "poses", "aligned", "costs", "learning linear", "learning sparsity", "learning offsets",
        "costs", "realigned", "matching all pairs", "realigned", "matched", "matching all pairs",
        "synchronised", "unknown", "held-out-fits", "writing",
    ):  # fmt: skip
        watch.report(what, 1, 1)
        numbers.append(watch.number)
    assert numbers == sorted(numbers)
    assert numbers[-1] == len(PLANS["learn"]) - 1


def test_times_in_words() -> None:
    assert [clock_time(seconds) for seconds in (5, 65, 3723)] == ["0:05", "1:05", "1:02:03"]
    assert [rough_time(seconds) for seconds in (1, 33, 59, 600, 7200)] == [
        "5 s", "35 s", "1 min", "10 min", "2 h",
    ]  # fmt: skip


def test_a_terminal_gets_one_line(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        console = Console(file=file, force_terminal=True, width=80)
        with watched(PLANS["annotate"], console, quiet=False) as progress:
            progress("matching", 1, 2, "")
    shown = (tmp_path / "out").read_text()
    assert "step 1 of 2: matching with the atlas, 1 of 2" in shown


def test_every_line_fits_into_80_columns_with_its_bar() -> None:
    for plan in PLANS.values():
        clock = Clock()
        watch = Watch(plan, clock)
        for step in plan:
            clock.now += 300.0
            watch.report(step.whats[-1], 99, 100, "worm001.tif, 10 of 20")
            assert len(watch.line()) <= 80 - 7


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("progress")
    words = ["simulate", "-o", str(place / "worms"), "--specimens", "4", "--cells", "40", "-q"]
    assert CliRunner().invoke(app, words).exit_code == 0
    (place / "settings.toml").write_text(SETTINGS)
    return place


def test_a_build_without_a_terminal_prints_its_steps(cohort: Path, tmp_path: Path) -> None:
    words = ["build", cohort / "worms", "-o", tmp_path / "run", "-j", 1]
    words += ["--config", cohort / "settings.toml"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    lines = [line for line in result.stderr.splitlines() if line.startswith("step ")]
    assert [line.split(",")[0] for line in lines] == [
        "step 1 of 6: finding heads and tails",
        "step 2 of 6: choosing where to start",
        "step 3 of 6: matching all with one",
        "step 4 of 6: finding shared cells",
        "step 5 of 6: checking each specimen",
        "step 6 of 6: writing atlas and page",
    ]
    assert not [line for line in result.stderr.splitlines() if "alignment" in line]
    again = CliRunner().invoke(app, [*map(str, words), "-q"])
    assert again.output == ""


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to another process on Windows")
def test_ctrl_c_is_answered_in_one_line(cohort: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [sys.executable, "-c", "from eutely.cli import main; main()", "build"]
    words += [str(cohort / "worms"), "-o", str(run), "-j", "1"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("step 1 of 6")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    last = err.splitlines()[-1]
    assert last == f"stopped; {run} keeps its finished steps: the same command continues"
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.skipif(os.name == "nt", reason="bash")
def test_completion_can_be_installed(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    code = "import sys; sys.argv[0] = 'eutely'; from eutely.cli import main; main()"
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        [*words, "--install-completion", "bash"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    scripts = [path for path in tmp_path.rglob("*") if path.is_file() and "eutely" in path.name]
    assert scripts
