"""The page on the paper has all of its tables, and says why a figure differs."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "replication.md").read_text(encoding="utf-8")
TABLES = ("models", "losses", "terms", "test", "sizes")


def published():
    """Return `benchmarks/published.py`."""
    spec = importlib.util.spec_from_file_location("published", ROOT / "benchmarks" / "published.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(row: str) -> list[str]:
    return [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]


@pytest.mark.parametrize("section", TABLES)
def test_every_row_of_the_paper_is_there_beside_ours_or_is_said_not_to_be_run(section):
    kept = json.loads((ROOT / "benchmarks" / "results" / "paper.json").read_text())
    ours = {row["row"]: row for row in kept.get(section, {}).get("rows", [])}
    for row, figures in published().PUBLISHED[section].items():
        for key, (mean, std) in figures.items():
            theirs = f"{mean:.3f} ± {std:.3f}"
            mine = f"{ours[row][key]['mean']:.4f} ± " if row in ours else "not run"
            assert any(theirs in line and mine in line for line in lines_of(row)), (row, key)


def test_each_clear_difference_has_its_cause():
    body = PAGE.split("<!-- paper: tables -->")[1].split("<!-- end of paper: tables -->")[0]
    clear = {re.match(r"\| ([^|]+) \|", line)[1] for line in body.splitlines() if "**" in line}
    for row in clear:
        assert f"\n- *{row}*: " in body, row
    assert "*: not known." not in body


def test_what_cannot_be_computed_is_said():
    for what, why in published().NOT_HERE.items():
        assert f"| {what} | {why} |" in PAGE
