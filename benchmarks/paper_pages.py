"""The figures and tables of ``docs/replication.md``, from ``results/paper.json``.

Run ``python benchmarks/paper_pages.py``: draws SVG files into ``docs/images`` and writes the tables
between the marks of the page. Rows that were not computed say so. Needs matplotlib (extra
``bench``).
"""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from figures import ROOT, Figures, known, put
from published import CAUSES, NOT_HERE, PUBLISHED

IMAGES = ROOT / "docs" / "images"

RESULTS = ROOT / "benchmarks" / "results" / "paper.json"

TITLES = {
    "models": "Table 1: parts of the model",
    "losses": "Table 2: what learning minimises",
    "terms": "Supplement C: terms of the costs, and alignment",
    "test": "Table 3: test worms",
    "sizes": "Figures 4 and 5: over the number of training worms",
}
"""Section -> its heading."""

ACCURACIES = ("pre_atlas", "atlas", "test", "accuracy")
"""Columns of accuracies, in order."""

WORMS = 100
"""Worms of the paper's means, and of ours where a row does not say how many."""

NOT_RUN = "not run"

Pair = tuple[float, float]


def mean_and_deviation(value: Any) -> Pair | None:
    """Return mean and standard deviation of one figure, ours or the paper's."""
    if isinstance(value, dict):
        return value["mean"], value["std"]
    return (value[0], value[1]) if isinstance(value, (list, tuple)) else None


def difference(ours: Any, theirs: Any, count: int = WORMS) -> Pair | None:
    """Return ours minus theirs and its standard error, as if the worms were different ones.

    Worms are the same, so that the error is rather smaller.
    """
    mine, published = mean_and_deviation(ours), mean_and_deviation(theirs)
    if mine is None or published is None:
        return None
    error = np.sqrt(mine[1] ** 2 / count + published[1] ** 2 / WORMS)
    return mine[0] - published[0], float(error)


def shown(value: Any, lowest: bool = False) -> str:
    """Return one figure as text: mean, deviation, perhaps lowest; or a plain number."""
    found = mean_and_deviation(value)
    if found is None:
        return "" if value is None else f"{value:,}"
    text = f"{found[0]:.4f} ± {found[1]:.3f}"
    return f"{text}, lowest {value['lowest']:.3f}" if lowest else text


def published(value: Any) -> str:
    """Return a figure of the paper with the digits that it has."""
    return "" if value is None else f"{value[0]:.3f} ± {value[1]:.3f}"


def clear(found: Pair | None) -> bool:
    """Return whether a difference is larger than two standard errors."""
    return found is not None and abs(found[0]) > 2 * found[1]


def signed(found: Pair | None) -> str:
    """Return a difference as text, bold if it is clear."""
    if found is None:
        return ""
    text = f"{found[0]:+.4f} ± {found[1]:.4f}"
    return f"**{text}**" if clear(found) else text


def section(name: str) -> Figures:
    """Return what was computed of a section."""
    return known(RESULTS).get(name, {})


def fewer(rows: dict[str, Figures]) -> str:
    """Return what was saved in these rows."""
    for row in rows.values():
        if "worms_matched" in row:
            return f"; {row['trials']} trials a stage, {row['worms_matched']} worms matched"
    return ""


def markdown(name: str) -> str:
    """Return one section as a table: ours, the paper's, the difference, and causes."""
    rows = {row["row"]: row for row in section(name).get("rows", [])}
    wanted = PUBLISHED.get(name, {})
    named = dict.fromkeys([*rows, *wanted])
    found = {k for row in [*rows.values(), *wanted.values()] for k in row}
    keys = [key for key in ACCURACIES if key in found]
    heads = [h for key in keys for h in (key.replace("_", " "), "the paper", "difference")]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    causes = []
    for row in named:
        cells, told = [], False
        for key in keys:
            mine, theirs = rows.get(row, {}).get(key), wanted.get(row, {}).get(key)
            apart = difference(mine, theirs, rows.get(row, {}).get("worms_matched", WORMS))
            mine_shown = shown(mine, lowest=name == "test") if row in rows else NOT_RUN
            cells += [mine_shown, published(theirs), signed(apart)]
            told |= clear(apart)
        if told:
            causes.append(f"- *{row}*: {CAUSES.get((name, row), 'not known.')}")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    date = section(name).get("date", NOT_RUN)
    head = f"### {TITLES[name]}\n\n`python benchmarks/paper.py {name}` ({date}{fewer(rows)}).\n"
    return "\n".join([head, *lines, "", *causes, *([""] if causes else [])])


def learned_table() -> str:
    """Return the learned costs beside the paper's, relative to the last axis of centroids."""
    rows = section("learning").get("rows", [])
    if not rows:
        return ""
    mine, theirs = rows[0], PUBLISHED["learning"]["learned"]
    lines = [
        "### Supplement B: learned costs",
        "",
        f"`python benchmarks/paper.py learning` ({section('learning')['date']}). Variances along "
        "x, y, z, in that of centroids along z (in voxels, ours have a common factor that the "
        "paper leaves open).",
        "",
        "| | ours | the paper |",
        "|---|---|---|",
    ]

    def ratios(row: Any, key: str) -> str:
        return ", ".join(f"{value / row['centroids'][2]:.2f}" for value in row[key])

    lines += [
        f"| variances of {key} | {ratios(mine, key)} | {ratios(theirs, key)} |"
        for key in ("centroids", "radii", "offsets")
    ]
    lines += [f"| K_min | {mine['k_min']} | {theirs['k_min']} |"]
    norms = np.linalg.norm([theirs[key] for key in ("centroids", "radii", "offsets")], axis=1)
    weights = norms * np.sqrt(3) / np.linalg.norm(norms)
    ours, paper = (", ".join(f"{w:.2f}" for w in row) for row in (mine["weights"], weights))
    lines += [f"| weights of the atlas: centroids, radii, offsets | {ours} | {paper} |", ""]
    stages = {stage: dict(mine["curves"][stage]) for stage in ("linear", "sparsity", "offsets")}
    marks = sorted(stages["linear"], key=int)
    lines += [
        "Lowest loss after so many trials:",
        "",
        f"| | {' | '.join(marks)} |",
        "|---" * (len(marks) + 1) + "|",
        *(
            f"| {stage} | {' | '.join(f'{losses[mark]:,.0f}' for mark in marks)} |"
            for stage, losses in stages.items()
        ),
        "",
    ]
    return "\n".join(lines)


def times_table() -> str:
    """Return the processor seconds of steps and trials beside the paper's."""
    lines = [
        "### Run times",
        "",
        "`python benchmarks/paper.py times trials`; processor seconds, one thread, beside other "
        "work; the paper: seconds on one core. *aligned*: the training worms, the first time (the "
        "paper: the test worms and the second time, too); *evaluation*: test worms are aligned "
        "already.",
        "",
        "| | ours | the paper | times faster |",
        "|---|---|---|---|",
    ]
    for name in ("times", "trials"):
        rows = {row["row"]: row for row in section(name).get("rows", [])}
        for row, theirs in PUBLISHED[name].items():
            mine = rows.get(row, {}).get("processor_seconds")
            words = f"one trial: {row}" if name == "trials" else row
            faster = f"{theirs['seconds'] / mine:,.0f}" if mine else ""
            text = NOT_RUN if mine is None else f"{mine:g}"
            lines.append(f"| {words} | {text} | {theirs['seconds']:,.0f} | {faster} |")
    return "\n".join([*lines, ""])


def partners_table() -> str:
    """Return accuracies with few partners of each worm, and with all."""
    rows = [*section("partners").get("rows", [])]
    rows += [row | {"row": "all", "pairs": 4950} for row in section("sizes").get("rows", [])[-1:]]
    lines = [
        "### Beyond the paper: few partners of each worm",
        "",
        "`python benchmarks/paper.py partners`: the same matchings, of some pairs only "
        "(`multi.partners`).",
        "",
        "| partners | pairs | pre-atlas | test worms |",
        "|---|---|---|---|",
        *(
            f"| {row['row']} | {row['pairs']:,} | {shown(row['pre_atlas'])} | "
            f"{shown(row['test'])} |"
            for row in rows
        ),
        "",
    ]
    return "\n".join(lines)


def modes_table() -> str:
    """Return atlas accuracies by mode of multi-matching, a row for each number of worms."""
    found = {row["row"]: row for row in section("modes").get("rows", [])}
    counts = sorted({int(row.split(", ")[1]) for row in found})
    modes = ("direct", "sparse", "dense")
    lines = [
        "### Figure 3: from matchings of pairs to cliques",
        "",
        f"`python benchmarks/paper.py modes` ({section('modes').get('date', NOT_RUN)}): accuracy "
        "of the atlas on its own worms, and processor seconds without matching pairs (*direct*: "
        "with it). In the figure of the paper direct is worst, and dense slightly better than "
        "sparse.",
        "",
        f"| worms | {' | '.join(f'{mode} | seconds' for mode in modes)} |",
        "|---" * (2 * len(modes) + 1) + "|",
    ]
    for count in counts:
        rows = [found.get(f"{mode}, {count}") for mode in modes]
        cells = [
            f"{shown(row['atlas'])} | {row['processor_seconds']:g}" if row else f"{NOT_RUN} |"
            for row in rows
        ]
        lines.append(f"| {count} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def switches_table() -> str:
    """Return the experiments on where accuracy is lost."""
    found = section("switches")
    if not found:
        return ""
    lines = ["| one switch | pre-atlas | other worms | difference |", "|---|---|---|---|"]
    for row in found["rows"]:
        apart = row.get("difference")
        text = "" if apart is None else signed((apart["mean"], apart["error"]))
        before = "" if row.get("pre_atlas") is None else f"{row['pre_atlas']:.4f}"
        lines.append(f"| {row['row']} | {before} | {shown(row['held_out'])} | {text} |")
    return "\n".join([*lines, ""])


def exchanged_table() -> str:
    """Return the cells that cliques exchange, and what tells them apart."""
    rows = section("switches").get("exchanged", [])
    if not rows:
        return ""
    head = "cells|exchanged in cliques|offset, mean|offset, deviation|wrong by shared|wrong by own"
    lines = [f"| {head.replace('|', ' | ')} |", "|---" * 6 + "|"]
    for row in rows:
        places = (", ".join(f"{value:g}" for value in row[key]) for key in ("mean", "std"))
        shares = (f"{row[key]:.0%}" for key in ("wrong_by_shared", "wrong_by_own"))
        cells = [row["cells"], f"{row['exchanged']:.0%}", *places, *shares]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def not_here() -> str:
    """Return what cannot be computed, and why."""
    lines = [f"| {what} | {why} |" for what, why in NOT_HERE.items()]
    return "\n".join(["### Not here", "", "| of the paper | |", "|---|---|", *lines, ""])


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


def draw() -> dict[str, str]:
    """Draw all figures that there are results for; return name -> caption."""
    drawn = {}
    rows = section("sizes").get("rows", [])
    if rows:
        keys = {
            "pre-atlas, training worms": "pre_atlas",
            "atlas, training worms": "atlas",
            "atlas, test worms": "test",
        }
        found = {
            words: {int(row["row"]): row[key]["mean"] for row in rows}
            for words, key in keys.items()
        }
        tested = {row["row"]: row for row in section("test").get("rows", [])}
        if "supervised" in tested:
            mean = tested["supervised"]["accuracy"]["mean"]
            found["supervised atlas of 100, test worms"] = dict.fromkeys(
                [int(row["row"]) for row in rows], mean
            )
        curves(found, "results-sizes", "accuracy")
        drawn["results-sizes"] = "Pre-atlas and atlas over the number of training worms"
    rows = section("modes").get("rows", [])
    if rows:
        modes: dict[str, dict[int, float]] = {}
        for row in rows:
            mode, count = row["row"].split(", ")
            modes.setdefault(mode, {})[int(count)] = row["atlas"]["mean"]
        curves(modes, "results-modes", "accuracy of the atlas on its own worms")
        drawn["results-modes"] = "Atlas accuracy by mode of multi-matching"
    shown_worms = ("unsupervised", "supervised")
    rows = [row for row in section("test").get("rows", []) if row["row"] in shown_worms]
    if rows:
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.violinplot([row["worms"] for row in rows], showmedians=True, orientation="horizontal")
        random = np.random.default_rng(0)
        for at, row in enumerate(rows, 1):
            spread = at + random.uniform(-0.08, 0.08, len(row["worms"]))
            axes.plot(row["worms"], spread, ".", ms=4, color="0.2")
        axes.set(xlabel="accuracy of a test worm")
        axes.set_yticks(range(1, len(rows) + 1), [row["row"] for row in rows])
        axes.grid(axis="x", alpha=0.3)
        save(figure, "results-worms")
        drawn["results-worms"] = "Accuracy of each test worm"
    return drawn


def main() -> None:
    pictures = [f"![{words}](images/{name}.svg)\n" for name, words in draw().items()]
    tables = [learned_table(), *map(markdown, TITLES), modes_table(), times_table()]
    tables += [partners_table(), not_here()]
    put("paper: switches", switches_table())
    put("paper: exchanged", exchanged_table())
    put("paper: tables", "\n".join([*(text for text in tables if text), *pictures]))


if __name__ == "__main__":
    main()
