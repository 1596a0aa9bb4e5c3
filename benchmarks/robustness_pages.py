"""The figures and tables of imperfect segmentations, from ``results/robustness.json``.

Run ``python benchmarks/robustness_pages.py``: draws SVG files into ``docs/images`` and writes the
tables into ``docs/notebook``, between two marks. Needs matplotlib (extra ``bench``).
"""

from matplotlib.figure import Figure

from figures import ROOT, Figures, known, put
from paper_pages import save

FOUND = known(ROOT / "benchmarks" / "results" / "robustness.json")
COLUMNS = {
    "accuracy": ("accuracy", "{:.3f}"),
    "lowest worm": ("lowest", "{:.3f}"),
    "spurious left out": ("spurious_left_out", "{:.2f}"),
    "true left out": ("true_left_out", "{:.2%}"),
    "calibration error": ("calibration_error", "{:.3f}"),
    "errors in the least certain tenth": ("errors_in_least_certain_tenth", "{:.2f}"),
}
"""Heading -> key of a row, and how to write its value."""

FEW = 50
"""Nuclei without a name in all worms, below which none counts as spurious."""

AXES = {
    "missing": "share of nuclei that are missing",
    "spurious": "spurious nuclei, per cell",
    "jitter": "error of each coordinate, voxels",
    "bend": "angle between head and tail, degrees",
}


def rows_of(section: str) -> list[Figures]:
    """Return the rows of a section; none if it was not run."""
    rows = [row for row in FOUND.get(section, {}).get("rows", []) if "quick" not in row["key"]]
    # Clean worms have a few nuclei without a name, which are not spurious.
    return [row if row["spurious"] >= FEW else row | {"spurious_left_out": None} for row in rows]


def markdown(title: str, rows: list[Figures], columns: list[str]) -> str:
    """Return rows as a table; empty without any."""
    if not rows:
        return ""
    lines = [f"| {title} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = []
        for column in columns:
            key, form = COLUMNS[column]
            value = row.get(key)
            cells.append("" if value is None else form.format(value))
        lines.append(f"| {row['key']} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def with_means(rows: list[Figures]) -> list[Figures]:
    """Return the rows ordered by kind, each kind followed by its mean (the lowest of lowest)."""
    found = []
    for kind in ("unsupervised", "supervised"):
        own = [row for row in rows if row["key"].startswith(kind)]
        found += own
        if len(own) > 1:
            mean = {key: sum(r[key] for r in own) / len(own) for key, _ in COLUMNS.values()}
            mean["lowest"] = min(row["lowest"] for row in own)
            found.append({"key": f"**{kind}, all**", **mean})
    return found


def amount(key: str) -> tuple[str, float]:
    """Return the kind of error of a row, and how much of it."""
    kind, value = key.split()
    return kind, float(value)


def curves() -> list[str]:
    """Draw accuracy, and nuclei wrongly left out, over the amount of each kind of error."""
    rows = rows_of("curves")
    if not rows:
        return []
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    for axes, (kind, label) in zip(
        figure.subplots(2, 2, sharey=True).flat, AXES.items(), strict=True
    ):
        own = sorted((amount(row["key"])[1], row) for row in rows if row["key"].startswith(kind))
        amounts = [value for value, _ in own]
        axes.plot(amounts, [row["accuracy"] for _, row in own], "o-", ms=3, label="mean")
        axes.plot(amounts, [row["lowest"] for _, row in own], "o:", ms=3, label="lowest worm")
        axes.set(xlabel=label, ylabel="accuracy", ylim=(0, 1.02))
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    save(figure, "results-errors")
    return ["results-errors"]


def calibration() -> list[str]:
    """Draw the share of right names over confidence."""
    rows = [row for row in [*rows_of("clean"), *rows_of("degraded")] if row.get("calibration")]
    if not rows:
        return []
    figure = Figure(figsize=(4.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.8")
    for words, section, kind in (
        ("clean worms", "clean", "unsupervised"),
        ("imperfect segmentations", "degraded", "unsupervised"),
        ("imperfect segmentations, supervised", "degraded", "supervised"),
    ):
        own = [row for row in rows_of(section) if row["key"].startswith(kind)][:1]
        for row in own:
            sure, true = row["calibration"]
            axes.plot(sure, true, "o-", ms=3, label=words)
    axes.set(xlabel="confidence", ylabel="share of right names", xlim=(0, 1), ylim=(0, 1))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    save(figure, "results-calibration")
    return ["results-calibration"]


def main() -> None:
    everything = list(COLUMNS)
    tables = [
        markdown(
            "worms",
            [
                *with_means(rows_of("degraded")),
                *[row | {"key": "unsupervised, clean worms"} for row in rows_of("clean")],
            ],
            everything,
        ),
        markdown(
            "25 worms with errors of one kind",
            sorted(rows_of("curves"), key=lambda row: amount(row["key"])),
            everything[:4],
        ),
    ]
    pictures = [f"![{name}](images/{name}.svg)\n" for name in [*curves(), *calibration()]]
    put("benchmarks/robustness_pages.py", "\n".join([one for one in tables if one] + pictures))


if __name__ == "__main__":
    main()
