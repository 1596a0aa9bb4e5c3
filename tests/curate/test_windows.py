"""Two windows, another program, kills and restarts: `benchmarks/safety/windows.py` plays 2,000."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette.testclient", reason="starlette is not installed")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.filterwarnings("ignore")  # of the test client, and of forks in a process of threads
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are forked and killed")
def test_no_interleaving_loses_a_correction_or_takes_one_back_unseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from safety.windows import play

    counts, faults = play(8, 7)
    assert faults == []
    for event in ("correct 200", "correct 409", "restarts"):
        assert counts[event] > 0, event


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are forked and killed")
def test_a_server_that_does_not_compare_revisions_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from safety import windows

    change = windows.Session._change

    def blind(self: object, number: int, seen: int, make: object) -> int:
        del seen
        return change(self, number, self.revision, make)

    monkeypatch.setattr(windows.Session, "_change", blind)
    _, faults = windows.play(4, 7)
    assert any("has not seen" in fault for fault in faults)
