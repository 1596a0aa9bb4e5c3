"""The section of the notebook about comparisons, from their results."""

from figures import Figures

NULL = ("family-wise", "any at 5% FDR", "p <= 0.05", "KS")
TESTS = ("place", "place-relative", "scatter", "presence", "size")


def lines(head: list[str], rows: list[list[object]]) -> list[str]:
    """Return a table in Markdown."""
    cells = [head, ["---"] * len(head), *([_text(value) for value in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells] + [""]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if value != value else f"{value:.3f}".rstrip("0").rstrip(".") or "0"
    return str(value)


def null_lines(results: Figures) -> list[str]:
    rows = [
        [name, row["test"], *(row[key] for key in NULL)]
        for name, tests in results["cohorts"].items()
        for row in tests
    ]
    return [
        "**Null.** 200 random halves of a cohort, each against 2,000 permutations: share of "
        "halves with any finding at 5%",
        "family-wise (bar: 0.02 to 0.08) and at 5% FDR, share of p-values up to 0.05, and "
        "their Kolmogorov-Smirnov distance from",
        "uniform (bar: 0.03). Presence is discrete: in most cells no or few animals lack the "
        "nucleus, p is mostly 1, and the test can",
        "only be too careful. `mean` is an intensity.",
        "",
        *lines(["cohort", "test", "family-wise", "any at 5% FDR", "p <= 0.05", "KS"], rows),
    ]  # fmt: skip


def batch_lines(results: Figures) -> list[str]:
    rows = [
        [row["batch"], *(row.get(test, 0.0) for test in TESTS),
         row["place-relative, p <= 0.05"], row["scatter, p <= 0.05"], row["size, p <= 0.05"]]
        for row in results["rows"]
    ]  # fmt: skip
    head = ["batch", *TESTS, "p <= 0.05: place-relative", "scatter", "size"]
    return [
        f"**Batch.** {results['animals']} worms of {results['worms']}, one half of them "
        f"deformed before they were named: bent by 40 degrees,",
        "stretched by 10%, warped (a twist of 30 degrees from end to end and waves of a "
        "hundredth of the length), or scaled by 15%.",
        f"Mean number of findings (5% FDR) in {results['draws']} random divisions, and shares "
        f"of small p-values:",
        "",
        *lines(head, rows),
    ]  # fmt: skip


def power_lines(results: Figures) -> list[str]:
    chosen: dict[tuple[float, int], dict[tuple[str, str], Figures]] = {}
    for row in results["rows"]:
        key = (row["distance"], row["animals"])
        chosen.setdefault(key, {})[row["names"], row["test"]] = row
    relative, plain = ("found", "place-relative"), ("found", "t-test")
    shown = (relative, ("found", "place"), plain, ("true", "place-relative"), ("true", "t-test"))
    rates, equal = [], []
    for (distance, animals), found in sorted(chosen.items()):
        one = found[relative]
        rates.append([
            distance, animals, one["choices"],
            *(f"{_text(found[key]['found'])} ({_text(found[key]['false'])})" for key in shown),
            one["true doubtful"], one["false by names"], one["of these doubtful"],
        ])  # fmt: skip
        equal.append([
            distance, animals,
            *(found[key][level] for level in ("at 0.05", "at 0.07") for key in (relative, plain)),
            *(found["true", key[1]]["at 0.05"] for key in (relative, plain)),
        ])  # fmt: skip
    head = ["shift (spacings)", "animals a group"]
    return [
        f"**Power.** {results['changed']} of 558 cells shifted in random directions in worms of "
        f"{results['worms']}, which were then named by eutely.",
        "Share of the shifted cells that are found at 5% FDR, in brackets the share of "
        "findings that are false, in the mean over choices",
        "of cells and animals. *t-tests*: Welch's, the best of three "
        "axes times 3, on the same places without weights.",
        "*True names*: the same places, names from the files. *False by wrong names*: share of "
        "the findings that are false, and whose nuclei",
        "have a wrong name in over a quarter of a group; other false findings have right names.",
        "",
        *lines([*head, "choices", "place-relative", "place", "t-tests",
                "true names: place-relative", "true names: t-tests", "right ones doubtful",
                "false by wrong names", "of these doubtful"], rates),
        "The same at equal true rates of false findings: share of the shifted cells that are "
        "found with the threshold of p, one for all",
        "choices, at which 5% or 7% of the findings are false.",
        "",
        *lines([*head, "5%: place-relative", "t-tests", "7%: place-relative", "t-tests",
                "true names, 5%: place-relative", "t-tests"], equal),
    ]  # fmt: skip


def change_lines(results: Figures) -> list[str]:
    pairs: dict[tuple[str, int], dict[str, Figures]] = {}
    for row in results["rows"]:
        pairs.setdefault((row["test"], row["animals"]), {})[row["names"]] = row
    rows = [
        [test, animals, *(row[names][key] for names in ("found", "true")
                          for key in ("found", "false"))]
        for (test, animals), row in sorted(pairs.items())
    ]  # fmt: skip
    return [
        f"{results['changed']} cells dropped in half of the animals (presence), and "
        f"{results['changed']} with radii 1.25 times as large (size), at 5% FDR:",
        "",
        *lines(["test", "animals a group", "found", "false", "true names: found", "false"], rows),
    ]


def _measure(row: Figures) -> str:
    return f"{row['measure']} {row['effect']:+.3g} ({row['low']:+.3g} to {row['high']:+.3g})"


def real_lines(results: Figures) -> list[str]:
    found = []
    for name, group in results["groups"].items():
        tests = [
            [test, count, group["on sure names"][test]] for test, count in group["findings"].items()
        ]
        found += [
            f"**{name[0].upper()}{name[1:]}**, {group['animals']} animals. Findings at 5% FDR:",
            "",
            *lines(["test", "cells", "on sure names"], tests),
            *(f"- {sentence}" for sentence in group["sentences"]),
            "",
            "Whole animals: "
            + ("; ".join(_measure(row) for row in group["whole"]) or "no difference")
            + ".",
            "",
        ]
    return found


def speed_lines(results: Figures) -> list[str]:
    return [
        f"**Speed.** 100 against 100 animals with {results['permutations']:,} permutations, "
        f"all tests, after annotation: "
        f"{results['processor seconds']:g} processor seconds ({results['seconds']:g} s by "
        f"the clock), "
        f"{results['memory_gb']:g} GB (bars: 60 s on two cores, 1 GB).",
        "",
    ]  # fmt: skip


PARTS = {
    "null": null_lines,
    "batch": batch_lines,
    "power": power_lines,
    "changes": change_lines,
    "real": real_lines,
    "speed": speed_lines,
}


def text(results: Figures) -> str:
    """Return the section, from what was measured so far."""
    found = [line for name, write in PARTS.items() if name in results
             for line in write(results[name])]  # fmt: skip
    return "\n".join(found).rstrip() + "\n"
