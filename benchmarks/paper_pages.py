"""The figures and tables of the paper's evaluation, from ``results/paper*.json``.

Run ``python benchmarks/paper_pages.py``: draws SVG files into ``docs/images`` and writes the tables
into ``docs/replication.md``, between two marks. Needs matplotlib (extra ``bench``).
"""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from figures import ROOT, Figures, known, put

IMAGES = ROOT / "docs" / "images"

TITLES = {
    "test": "Test worms",
    "additions": "From `paper-plus` to `paper`",
    "models": "Parts of the model",
    "losses": "What learning minimises",
    "terms": "Terms of the costs, and alignment",
    "sizes": "Over the number of training worms",
    "modes": "From matchings of pairs to cliques",
    "trials": "One trial, 15 worms",
    "times": "Steps, 100 training worms",
}
"""Section -> its heading."""

ROWS = {
    "the preset": "`paper-plus`",
    "and without warp: the paper's steps": "and without warp: `paper`, the paper's steps",
}
"""Row -> how the page calls it, where that differs."""


def newest(section: str) -> tuple[Figures, bool]:
    """Return a section of the full evaluation if there is one, else of the quick one."""
    for quick in (False, True):
        name = "paper-quick.json" if quick else "paper.json"
        found = known(ROOT / "benchmarks" / "results" / name).get(section)
        if found:
            return found, quick
    return {}, False


def shown(value: Any) -> str:
    """Return one figure as text: mean, deviation, lowest; or a plain number."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return f"{value['mean']:.4f} ± {value['std']:.3f}"
    if isinstance(value, list):
        return f"{value[0]:.3f} ± {value[1]:.3f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def markdown(section: str) -> str:
    """Return one section as a table: ours, and the paper's beside it."""
    found, quick = newest(section)
    if not found:
        return ""
    rows = found["rows"]
    keys = [k for row in rows for k in row if k not in ("row", "paper", "worms", "weights")]
    keys = list(dict.fromkeys(keys))
    published = {k for row in rows for k in row.get("paper") or {}}
    heads = [h for k in keys for h in [k.replace("_", " ")] + ["the paper"] * (k in published)]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for row in rows:
        cells = []
        for key in keys:
            cells.append(shown(row.get(key)))
            if key in published:
                cells.append(shown((row.get("paper") or {}).get(key)))
        lines.append(f"| {ROWS.get(row['row'], row['row'])} | {' | '.join(cells)} |")
    size = f"{found['worms']} worms, {found['trials']} trials a stage"
    note = "; quick: the paper's figures are of 100 worms" if quick else ""
    head = f"### {TITLES[section]}\n\n`{found['command']}` ({found['date']}; {size}{note}).\n"
    return "\n".join([head, *lines, ""])


def build_table() -> str:
    """Return the processor seconds of the steps of a whole build."""
    found = known(ROOT / "benchmarks" / "results" / "paper.json").get("build, preset paper")
    if not found:
        return ""
    steps = [f"| {name} | {seconds:g} |" for name, seconds in found["steps"].items()]
    lines = [
        "### A whole build",
        "",
        f"`{found['command']}` ({found['date']}; 100 worms, {found['trials']} trials a stage): "
        f"{found['processor_seconds']:.0f} processor seconds, {found['gigabytes']:g} GB "
        "(the paper: 99 hours).",
        "",
        "| | ours | the paper |",
        "|---|---|---|",
        f"| pre atlas | {shown(found['pre_atlas'])} | 0.966 ± 0.016 |",
        f"| test worms | {shown(found['test'])} | 0.961 ± 0.020 |",
        "",
        "| step | processor seconds |",
        "|---|---|",
        *steps,
        "",
    ]
    return "\n".join(lines)


def partners_table() -> str:
    """Return accuracies with few partners of each worm, and with all."""
    found = known(ROOT / "benchmarks" / "results" / "paper.json").get("partners")
    if not found:
        return ""
    lines = [
        "### Few partners of each worm",
        "",
        f"`{found['command']}` ({found['date']}): the preset `paper` with `multi.partners`, by the "
        "costs that the build above learned; processor seconds without learning and without "
        "the check of held-out worms.",
        "",
        "| partners | pairs | pre atlas | test | processor seconds |",
        "|---|---|---|---|---|",
        *(
            f"| {row['partners']} | {row['pairs']:,} | {shown(row['pre_atlas'])} | "
            f"{shown(row['test'])} | {row['processor_seconds']:g} |"
            for row in found["rows"]
        ),
        "",
    ]
    return "\n".join(lines)


def curves(series: dict[str, dict[int, float]], name: str, label: str) -> None:
    """Draw accuracies over the number of training worms."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for words, values in series.items():
        axes.plot(list(values), list(values.values()), "o-", ms=3, label=words)
    axes.set(xlabel="training worms", ylabel=label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    save(figure, name)


def save(figure: Figure, name: str) -> None:
    """Write an SVG file without a date, so that equal figures are equal files."""
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


def figures() -> list[str]:
    """Draw all figures that there are results for; return their names."""
    drawn = []
    rows = newest("sizes")[0].get("rows", [])
    if rows:
        keys = {
            "pre-atlas, training worms": "pre_atlas",
            "atlas, training worms": "atlas",
            "atlas, test worms": "test",
            "supervised atlas, test worms": "supervised_test",
        }
        found = {
            words: {int(row["row"]): row[key]["mean"] for row in rows}
            for words, key in keys.items()
            if all(key in row for row in rows)
        }
        curves(found, "results-sizes", "accuracy")
        drawn.append("results-sizes")
    rows = newest("modes")[0].get("rows", [])
    if rows:
        modes: dict[str, dict[int, float]] = {}
        for row in rows:
            mode, count = row["row"].split(", ")
            modes.setdefault(mode, {})[int(count)] = row["pre_atlas"]["mean"]
        curves(modes, "results-modes", "pre-atlas accuracy")
        drawn.append("results-modes")
    rows = [row for row in newest("test")[0].get("rows", []) if "worms" in row][:2]
    if rows:
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.violinplot([row["worms"] for row in rows], showmedians=True, orientation="horizontal")
        random = np.random.default_rng(0)
        for at, row in enumerate(rows, 1):
            spread = at + random.uniform(-0.08, 0.08, len(row["worms"]))
            axes.plot(row["worms"], spread, ".", ms=4, color="0.2")
        axes.set(xlabel="accuracy of a test worm")
        axes.set_yticks([1, 2], [row["row"] for row in rows])
        axes.grid(axis="x", alpha=0.3)
        save(figure, "results-worms")
        drawn.append("results-worms")
    return drawn


def main() -> None:
    drawn = figures()
    tables = [build_table(), partners_table(), *map(markdown, TITLES)]
    tables = [text for text in tables if text]
    pictures = [f"![{name}](images/{name}.svg)\n" for name in drawn]
    put("benchmarks/paper_pages.py", "\n".join([*tables, *pictures]))


if __name__ == "__main__":
    main()
