"""The table of what each mechanism is worth, from ``results/ablation.json``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figures import known
from mechanisms import MECHANISMS

RESULTS = Path(__file__).resolve().parent / "results" / "ablation.json"


def mechanism_rows() -> list[dict[str, Any]]:
    return list(known(RESULTS).get("mechanisms", {}).get("rows", []))


def verdict(rows: Sequence[dict[str, Any]]) -> str:
    """Return what the rows of one mechanism, switched off, say about it.

    Clear is a change of 0.001 and of twice its standard error. Where specimens differ by 0.05, more
    in one way than in the other, that is a hint; all else is noise.
    """
    said: dict[str, list[str]] = {}
    for row in rows:
        name, apart, more = row["cohort"], row["difference"], row["worse"] - row["better"]
        if name != "clouds" and abs(apart) >= max(2 * row["error"], 0.001):
            said.setdefault("keep" if apart < 0 else "better without", []).append(name)
        elif more:
            word = "hint to keep" if more > 0 else "hint against"
            said.setdefault(word, []).append(f"{name}, {abs(more)} of {row['specimens']}")
        elif row["time"] >= 1.25:
            said.setdefault("saves time", []).append(name)
    if not set(said) - {"saves time"}:
        said = {"within noise": [], **said}
    order = ("keep", "better without", "within noise", "hint to keep", "hint against", "saves time")
    return "; ".join(
        f"{word}: {', '.join(said[word])}" if said[word] else word for word in order if word in said
    )


def mechanism_table() -> str:
    """Return a line for each mechanism: what changes without it, by cohort, and what follows."""
    rows = {(row["row"], row["cohort"]): row for row in mechanism_rows()}
    lines = ["| mechanism | what it does | without it | verdict |", "|---|---|---|---|"]
    for one in MECHANISMS:
        own = [rows[one.name, name] for name in one.cohorts if (one.name, name) in rows]
        same = [row["cohort"] for row in own
                if not row["changed"] and not row["calibration_difference"]]  # fmt: skip
        cells = [
            f"{row['cohort']} {row['difference']:+.4f} ± {row['error']:.4f} "
            f"({row['worse']}/{row['better']}; {row['calibration_difference']:+.3f})"
            for row in own
            if row["cohort"] not in same
        ]
        cells += [f"same: {', '.join(same)}"] if same else []
        if own:
            ratio = ", ".join(f"{row['time']:g}" for row in own)
            cells.append(f"time {ratio}")
            lines.append(f"| {one.name} | {one.what} | {'<br>'.join(cells)} | {verdict(own)} |")
        else:
            lines.append(f"| {one.name} | {one.what} | | not measured |")
    return "\n".join([*lines, ""])
