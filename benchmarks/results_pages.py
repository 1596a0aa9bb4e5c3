"""The tables of ``docs/results.md``, from kept results.

Run ``python benchmarks/results_pages.py`` after any benchmark that it reads: it writes one table
for each pair of marks in the page. What was not measured has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from figures import ROOT, Figures, known, put

RESULTS = ROOT / "benchmarks" / "results"


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def share(value: float | None) -> str:
    """Return an accuracy or a probability."""
    return "" if value is None else f"{value:.3f}"


def four(found: Figures) -> str:
    """Return mean, spread and lowest of accuracies."""
    return f"{found['mean']:.4f} ± {found['std']:.3f}, lowest {found['lowest'][0]:.3f}"


def worms() -> str:
    """Return the default preset on worms, with and without intensities."""
    found = known(RESULTS / "default.json")
    none = ", features radius"
    rows = []
    for title, paper, section, key in (
        ("cells of the training worms", "0.966", "build seed 0{}", "pre_atlas_train100"),
        ("unsupervised atlas, test worms as one series", "", "test seed 0{}", "test2_adapted"),
        ("the same, each worm by itself", "0.961", "test seed 0{}", "test2"),
        ("supervised atlas, test worms as one series", "", "supervised", "test2_adapted"),
        ("the same, each worm by itself", "0.964", "supervised", "test2"),
    ):  # fmt: skip
        row: list[object] = [title]
        for suffix in ("", none):
            here = found.get(section.format(suffix), {}).get(key)
            row.append(four(here) if here and (not suffix or "{" in section) else "")
        rows.append([*row, paper])
    times: list[object] = ["build, processor seconds"]
    for suffix in ("", none):
        here = found.get(f"build seed 0{suffix}", {})
        times.append(f"{here['processor_seconds']:.0f}" if here else "")
    rows.append([*times, "99 h"])
    return markdown(["", "ours", "ours, places and sizes only", "the paper"], rows)


def placed(names: Callable[[str], bool]) -> str:
    """Return rows of ``placement.json`` whose names are chosen."""
    found = known(RESULTS / "placement.json")
    rows = [
        [
            name,
            one["specimens"],
            share(one["accuracy"]),
            share(one["lowest"]),
            share(one["confidence"]),
            share(one["calibration_error"]),
            one.get("handedness", ""),
            f"{one['processor_seconds']:.2f}",
        ]
        for name, one in found.items()
        if names(name)
    ]
    head = ["specimens", "number", "accuracy", "lowest", "confidence", "calibration error"]
    return markdown([*head, "handedness", "seconds"], rows)


def heads() -> str:
    """Return the protocols of NeuroPAL heads by laboratory."""
    found = known(RESULTS / "neuropal.json")
    sets = ["EY", "HL", "KK", "SF", "SK1", "SK2"]
    rows: list[list[object]] = []
    for name, one in found.items():
        for way in ("each head alone", "as series"):
            if name.endswith("raw colours") and way in one:
                by_set = one[way]
                values = [share(by_set.get(key)) for key in sets]
                rows.append([f"{name.split(',')[0]}, {way}", *values, share(by_set.get("mean"))])
    for name, one in found.get("published", {}).items():
        rows.append([name, *(share(one.get(key)) for key in sets), share(one.get("mean"))])
    return markdown(["", *sets, "mean"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "worms": worms,
    "parts": lambda: placed(lambda name: name.startswith("worms")),
    "embryos": lambda: placed(lambda name: name.startswith("embryos")),
    "heads": lambda: placed(lambda name: name.startswith("heads")),
    "protocols": heads,
    "strangers": lambda: placed(lambda name: name.startswith(("clouds", "other"))),
}

if __name__ == "__main__":
    for title, text in TABLES.items():
        put(f"results: {title}", text())
