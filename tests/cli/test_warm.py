"""What a command needs last is compiled in another process, once."""

import subprocess
import sys

import pytest

from eutely.cli import warm


class Started:
    """Stands for a process; notes what was started, and that it was ended."""

    def __init__(self, words, **_):
        self.words, self.ended, self.waited = words, False, False
        Started.all.append(self)

    def terminate(self):
        self.ended = True

    def wait(self):
        self.waited = True


@pytest.fixture
def started(monkeypatch, tmp_path):
    Started.all = []
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr("eutely.kernel.CACHE", str(tmp_path))
    monkeypatch.setattr("eutely.execute.threads.cores", lambda: 2)
    return Started.all


def test_a_part_is_compiled_at_the_first_run_only(started):
    with warm.warmed(["merges", "bounds"]):
        assert not started[0].ended
    with warm.warmed(["merges", "bounds"]):
        pass
    (process,) = started
    assert process.words == [sys.executable, "-P", "-m", "eutely.cli.warm", "merges", "bounds"]
    assert process.ended


def test_a_command_may_wait_for_the_others(started):
    with warm.warmed(["merges"], ["cliques"]) as ready:
        assert not any(process.waited for process in started)
        ready()
        assert [process.waited for process in started] == [True, True]
        assert not any(process.ended for process in started)


def test_a_command_that_fails_may_still_lack_machine_code(started):
    with pytest.raises(KeyboardInterrupt), warm.warmed(["merges", "bounds"]):
        raise KeyboardInterrupt
    assert started[0].ended
    with warm.warmed(["merges", "bounds"]):
        pass
    assert len(started) == 2


def test_one_core_compiles_by_itself(started, monkeypatch):
    monkeypatch.setattr("eutely.execute.threads.cores", lambda: 1)
    with warm.warmed(["merges", "bounds"]):
        pass
    assert not started


@pytest.mark.parametrize("graphs", [2, 3, 4])
def test_tiny_problems_are_of_all_pairs(graphs):
    pairs = warm.tiny_pairs(graphs, quadratic=True)
    assert [(g, h) for g, h, _ in pairs] == [
        (g, h) for g in range(graphs) for h in range(g + 1, graphs)
    ]
    turned = [problem.arrays.linear[0] > problem.arrays.linear[1] for *_, problem in pairs]
    assert sum(turned) == (graphs > 2)


@pytest.mark.parametrize("part", warm.PARTS)
def test_each_part_runs(part):
    warm.PARTS[part]()


def test_the_tiny_problem_is_the_one_that_lists_give():
    built, listed = warm.tiny_problem(), warm.tiny_pairs(2, quadratic=True)[0][2]
    for ours, theirs in zip(built.arrays, listed.arrays, strict=True):
        assert (ours.dtype, ours.flags.writeable) == (theirs.dtype, theirs.flags.writeable)
    for matching in ([0, 1], [1, 0], [0, -1], [-1, 0], [-1, -1]):
        assert built.objective(matching) == listed.objective(matching)
