import csv
import json
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.errors import EutelyError
from eutely.io.dd import write_dd
from eutely.io.tables import write_table
from eutely.problem import PairProblem
from eutely.simulation import body_plan

run = CliRunner()

#  two nodes on each side; both straight matches together cost 1.5 more, so that crossing wins
CROSS = PairProblem.from_arrays(
    (2, 2), [[0, 0], [0, 1], [1, 0], [1, 1]], [-1.0] * 4, [[0, 3]], [1.5]
)


def invoke(*words):
    return run.invoke(app, [str(word) for word in words], catch_exceptions=False)


def test_solve_writes_objective_bound_and_matching(tmp_path):
    write_dd(tmp_path / "cross.dd", CROSS)
    done = invoke("solve", tmp_path / "cross.dd", "-o", tmp_path / "out.json")
    assert done.exit_code == 0
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["objective"] == pytest.approx(-2)
    assert result["bound"] <= result["objective"] + 1e-9
    assert result["matchings"] == [[0, 1, [1, 0]]]
    assert result["seconds"] >= 0
    assert result["bound_seconds"] >= 0


def test_solve_without_a_bound(tmp_path):
    write_dd(tmp_path / "cross.dd", CROSS)
    invoke("solve", tmp_path / "cross.dd", "-o", tmp_path / "out.json", "--no-bound")
    result = json.loads((tmp_path / "out.json").read_text())
    assert (result["bound"], result["bound_seconds"]) == (None, None)
    assert result["seconds"] >= 0


LOADED = """
import gc, json, sys, time
from numba.core.dispatcher import Dispatcher

counts, clock = [], time.perf_counter

def perf_counter():
    here = sys._getframe(1).f_globals["__name__"] == "eutely.cli.solve"
    if here:
        kernels = [thing for thing in gc.get_objects() if isinstance(thing, Dispatcher)]
        counts.append(sum(len(kernel.overloads) for kernel in kernels))
    return clock()

time.perf_counter = perf_counter
from eutely.cli import app
app(sys.argv[1:], standalone_mode=False)
print(json.dumps(counts))
"""


@pytest.mark.parametrize("several", [False, True])
def test_no_machine_code_is_loaded_while_the_clock_runs(several, tmp_path):
    random = np.random.default_rng(4)
    candidates = [[i, j] for i in range(6) for j in range(6)]
    edges = sorted({tuple(sorted(pair)) for pair in random.integers(0, 36, (60, 2)).tolist()})
    edges = [[a, b] for a, b in edges if a // 6 != b // 6 and a % 6 != b % 6]
    costs = random.normal(-1, 1, 36), random.normal(0, 1, len(edges))
    problem = PairProblem.from_arrays((6, 6), candidates, costs[0], edges, costs[1])
    keys = list(combinations(range(4), 2)) if several else [(0, 1)]
    write_dd(tmp_path / "problem.dd", [(g, h, problem) for g, h in keys])
    words = ["solve", str(tmp_path / "problem.dd"), "-q"]
    # A process of its own: here, other tests may have loaded everything.
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True
    )
    counts = json.loads(done.stdout.splitlines()[-1])
    # Four or more readings for the tiny problem, as many for the problem itself.
    second = counts[len(counts) // 2 :]
    assert len(second) >= 4
    assert second[0] > 0
    assert len(set(second)) == 1


@pytest.mark.parametrize("mode", ["direct", "sync-sparse", "sync-dense"])
@pytest.mark.parametrize("limit", [(), ("--time-limit", 0)])
def test_solve_makes_three_graphs_consistent(mode, limit, tmp_path):
    pairs = [(0, 1, CROSS), (0, 2, CROSS), (1, 2, CROSS)]
    write_dd(tmp_path / "three.dd", pairs)
    words = ("solve", tmp_path / "three.dd", "-o", tmp_path / "out.json", "--mode", mode)
    done = invoke(*words, *limit)
    assert done.exit_code == 0
    result = json.loads((tmp_path / "out.json").read_text())
    step = {(g, h): labels for g, h, labels in result["matchings"]}
    for i, j in enumerate(step[0, 1]):
        if j is not None and step[1, 2][j] is not None:
            assert step[0, 2][i] == step[1, 2][j]
    assert result["consistent"]
    assert result["bound"] <= result["objective"] + 1e-9
    assert all(len({g for g, _ in clique}) == len(clique) for clique in result["cliques"])


@pytest.mark.parametrize("text", ["p 0 0 0 0\n", "gm 0 1\np 0 2 0 0\ngm 0 2\np 0 1 0 0\n"])
def test_solve_of_nothing_is_the_empty_matching(text, tmp_path):
    (tmp_path / "empty.dd").write_text(text)
    assert invoke("solve", tmp_path / "empty.dd", "-o", tmp_path / "out.json").exit_code == 0
    result = json.loads((tmp_path / "out.json").read_text())
    assert (result["objective"], result["bound"]) == (0, 0)
    assert all(labels == [] for _, _, labels in result["matchings"])


def test_solve_says_what_is_wrong(tmp_path):
    (tmp_path / "bad.dd").write_text("p 1 1 1 0\na 0 0 5 1.0\n")
    with pytest.raises(EutelyError, match="line 2"):
        invoke("solve", tmp_path / "bad.dd", "-o", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


QAP = "3 14 10\n0 5 1\n5 0 0\n1 0 0\n\n0 1 2\n1 0 1\n2 1 0\n"
"""Three objects on a line; the best matching costs 12, less than what is called the best known."""


def test_solve_places_objects_and_compares_with_the_best_known_value(tmp_path):
    (tmp_path / "line.qap").write_text(QAP)
    done = invoke("solve", tmp_path / "line.qap", "-o", tmp_path / "out.json")
    assert done.exit_code == 0
    assert "objective: 12\nbound: 12\nbest_known: 14\nabove_best_known: -0.142857\n" in done.output
    result = json.loads((tmp_path / "out.json").read_text())
    assert (result["objective"], result["bound"], result["best_known"]) == (12, 12, 14)
    ((g, h, matching),) = result["matchings"]
    assert (g, h, sorted(matching), matching[0]) == (0, 1, [0, 1, 2], 1)
    assert result["seconds"] >= 0
    assert result["bound_seconds"] >= 0


def test_solve_never_knows_the_best_known_value(tmp_path):
    """Whatever the file calls the best known value, and with a bound or none, all else is equal."""
    rng = np.random.default_rng(0)
    rows = "\n".join(" ".join(map(str, row)) for row in rng.integers(0, 99, (24, 12)))
    found = []
    for first in ("12", "12 1", "12 -5 1", "12 999999999 3"):
        (tmp_path / "some.qap").write_text(f"{first}\n{rows}\n")
        words = ("--effort", "fast", "--seed", 3, "--no-bound", "-q")
        invoke("solve", tmp_path / "some.qap", "-o", tmp_path / "out.json", *words)
        result = json.loads((tmp_path / "out.json").read_text())
        assert (result["bound"], result["bound_seconds"]) == (None, None)
        found.append((result["objective"], result["matchings"]))
    assert found.count(found[0]) == 4


def test_solve_says_what_is_wrong_with_a_quadratic_assignment(tmp_path):
    (tmp_path / "bad.qap").write_text(QAP[:-3])
    with pytest.raises(EutelyError, match="17 numbers after the first line, expected 18"):
        invoke("solve", tmp_path / "bad.qap", "-o", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_match_writes_one_row_per_nucleus(tmp_path):
    pair = eutely.simulate(specimens=2, cells=40, variation=0.3, seed=2)
    paths = [tmp_path / f"{specimen.name}.csv" for specimen in pair]
    for specimen, path in zip(pair, paths, strict=True):
        write_table(specimen, path)
    assert invoke("match", *paths, "-o", tmp_path / "pairs.csv", "-q").exit_code == 0
    with (tmp_path / "pairs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id_a"]) for row in rows] == pair[0].ids.tolist()
    partners = {int(row["id_b"]) for row in rows if row["id_b"]}
    assert partners <= set(pair[1].ids.tolist())
    assert len(partners) == np.sum([bool(row["id_b"]) for row in rows])


def test_match_takes_two_specimens(tmp_path):
    cohort = eutely.simulate(specimens=2, cells=20)
    write_table(cohort, tmp_path / "cohort.csv")
    write_table(eutely.simulate(specimens=1, cells=20, seed=5)[0], tmp_path / "one.csv")
    with pytest.raises(EutelyError):
        invoke("match", tmp_path / "cohort.csv", tmp_path / "one.csv")


def test_match_reports_agreement_and_warns_of_chance(tmp_path, caplog):
    first, second = eutely.simulate(2, 60, seed=1, variation=0.5)
    turned = second.moved(np.diag([-1.0, -1.0, 1.0]), [0.0, 0.0, 0.0])
    other = eutely.simulate(1, body_plan(60, seed=6), seed=5)[0]
    for name, specimen in {"a": first, "b": turned, "c": other}.items():
        write_table(replace(specimen, name=name), tmp_path / f"{name}.csv")
    done = invoke("match", tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "ab.csv")
    assert "agreement: median distance 0." in done.output
    assert "of neighbours kept (by chance" in done.output
    assert not caplog.text
    with (tmp_path / "ab.csv").open() as file:
        rows = list(csv.DictReader(file))
    truth = dict(zip(map(str, turned.ids), turned.names, strict=True))
    assert np.mean([truth.get(row["id_b"]) == name
                    for row, name in zip(rows, first.names, strict=True)]) > 0.9  # fmt: skip
    invoke("match", tmp_path / "a.csv", tmp_path / "c.csv", "-q")
    assert "a and c agree hardly better than by chance" in caplog.text
