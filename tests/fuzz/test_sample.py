"""A sample of the fuzzer's inputs; `benchmarks/fuzz.py` runs ten times as many."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.filterwarnings("ignore")  # of the libraries that make the broken files
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux's")
def test_no_broken_or_hostile_file_is_a_fault(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from fuzz import FAULTS, run
    from fuzzing.seeds import SEEDS

    # Hardly any broken settings are settings, so that more of them are tried.
    results = [*run(500, 7, list(SEEDS)), *run(100, 8, ["settings"])]
    assert len(results) >= 500
    faults = [result for result in results if result.verdict in FAULTS]
    assert not faults, faults[:5]
    for kind in SEEDS:
        verdicts = [result.verdict for result in results if result.kind == kind]
        assert verdicts.count("refused") > 5, kind
        assert len(verdicts) > verdicts.count("refused"), kind
