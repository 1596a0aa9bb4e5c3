"""Comparing groups: false findings, batches, power, real groups, speed.

Run ``python benchmarks/compare.py [power] [null] [batch] [real] [embryos]``; it needs the real data
(``EUTELY_DATA``). Worms are named by the built-in atlas ``celegans-l1``, each by itself, once
(`cohorts.py` keeps annotations). Writes ``benchmarks/results/compare.json`` and the section of
``docs/notebook``. True names are read to change cells, and for the row "true names".
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cohorts import BATCH_SIZE, BATCHES, CHANGED, annotations, batch, built_in
from compare_power import FEWER, SETS, change_rows, question, shift_rows
from eutely import Annotation, Atlas, Specimen, annotate, build, compare, read, simulate
from eutely.comparison.answer import SURVIVING, answer
from eutely.comparison.design import Contrast
from eutely.comparison.effects import spread_residuals
from eutely.comparison.exchange import with_exchanged_names
from eutely.comparison.measured import Measured, measured
from eutely.comparison.permutations import permutations
from eutely.comparison.relative import positions
from eutely.comparison.scores import Scores, Statistics, benjamini_hochberg, scores_of
from eutely.comparison.second import renamed
from eutely.comparison.words import found_words
from figures import Figures, keep, known, memory, peak, put, table
from worms import DATA, named, worms

RESULTS = Path(__file__).resolve().parent / "results" / "compare.json"
HALVES, REFERENCE = 200, 2000
"""Random halves of a cohort, and permutations that each is compared with."""

DRAWS = 8
"""Random divisions of the animals in section batch."""

WORMS = "test2"
"""Worms of sections batch and power: nothing was chosen by their figures."""

MOST = int(os.environ.get("EUTELY_MOST", "50"))
"""Animals of the changed group in section power."""

LEVEL = 0.05

PLACES = ("place", "place-relative")
"""Tests whose findings are tested again with exchanged names."""

Array = NDArray[np.float64]


def ks_distance(p: Array) -> float:
    """Return the Kolmogorov-Smirnov distance of p-values from the uniform distribution."""
    ordered, steps = np.sort(p), np.arange(len(p) + 1) / len(p)
    return float(max(np.abs(ordered - steps[1:]).max(), np.abs(ordered - steps[:-1]).max()))


def half_tests(atlas: Atlas, cells: Measured) -> dict[str, Figures]:
    """Test random halves of a cohort, all tests, as `eutely.comparison.answer.answer` does.

    Scores do not depend on the groups, so that the statistics of a half are those of one more
    permutation; but for scatter, whose centres are the groups'.
    """
    count = len(cells) // 2 * 2
    contrast = question(count // 2, count // 2)
    here = positions(atlas, cells)
    weights, nuisance = cells.weights[:count], contrast.nuisance
    chosen = permutations(contrast, HALVES, 1).values
    reference = permutations(contrast, REFERENCE, 2).values
    tests: dict[str, Scores] = {
        "place": scores_of(here.displaced[:count], weights, nuisance, atlas.covariances),
        "place-relative": scores_of(here.relative[:count], weights, nuisance, atlas.conditionals),
        "presence": scores_of(cells.counts[:count, :, None], np.ones_like(weights), nuisance,
                              clip=False),
        **{key: scores_of(values[:count, :, None], weights, nuisance)
           for key, values in cells.values.items()},
    }  # fmt: skip
    results = {}
    for test, found in tests.items():
        if found.testable.any():
            statistics = Statistics.of(found, contrast)
            parts = _p_values(statistics(chosen), statistics(reference))
            if test in PLACES:
                parts = _surviving(atlas, cells, test, (chosen, reference), parts)
            results[test] = _summary(*parts)
    relative = tests["place-relative"]
    parts = [
        _scatter(here.relative[:count], relative, contrast, row, reference[:REFERENCE // 4])
        for row in chosen
    ]  # fmt: skip
    results["scatter"] = _summary(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    return results


def _surviving(
    atlas: Atlas,
    cells: Measured,
    test: str,
    drawn: tuple[Array, Array],
    parts: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array]:
    """Return the p-values of halves, larger where findings do not survive exchanged names."""
    chosen, reference = drawn
    count = chosen.shape[1]
    contrast = question(count // 2, count // 2)
    here = positions(atlas, cells)
    weights = cells.weights[:count]
    for half, row in enumerate(chosen):
        moved = benjamini_hochberg(parts[1][half]) <= LEVEL
        if not moved.any() or len(moved) < len(atlas):
            continue
        values = with_exchanged_names(atlas, here, cells.weights, moved, cells.spacing)
        values = values if test == "place" else values - here.field
        prior = atlas.covariances if test == "place" else atlas.conditionals
        found = scores_of(values[:count], weights, contrast.nuisance, prior)
        statistics = Statistics.of(found, contrast)
        again = _p_values(statistics(row[None]), statistics(reference))
        fallen = moved & (again[1][0] > SURVIVING)
        for before, after in zip(parts, again, strict=True):
            before[half, fallen] = np.maximum(before[half, fallen], after[0, fallen])
    return parts


def _scatter(
    values: Array, found: Scores, contrast: Contrast, row: Array, reference: Array
) -> tuple[Array, Array, Array]:
    """Return the p-values of scatter in one half, see `_p_values`."""
    side = (row > 0).astype(np.int64)
    asked = replace(contrast, groups=side, values=side.astype(np.float64))
    lengths = spread_residuals(values, found, asked)[..., None]
    statistics = Statistics.of(scores_of(lengths, found.weights, contrast.nuisance), asked)
    free = (len(row) - 2) / len(row)
    return _p_values(free * statistics(row[None]), statistics(reference))


def _p_values(observed: Array, reference: Array) -> tuple[Array, Array, Array]:
    """Return own, pooled and family-wise p-values, (halves, cells) each."""
    own = np.stack(
        [_beyond(observed[:, cell], reference[:, cell]) for cell in range(observed.shape[1])],
        axis=1,
    )
    return own, _beyond(observed, reference), _beyond(observed, reference.max(axis=1))


def _beyond(observed: Array, reference: Array) -> Array:
    """Return the shares of reference values that reach the observed ones."""
    ordered = np.sort(reference.ravel())
    beyond = len(ordered) - np.searchsorted(ordered, observed * (1 - 1e-9))
    return np.asarray((1 + beyond) / (1 + len(ordered)))


def _summary(own: Array, pooled: Array, family: Array) -> Figures:
    found = [bool((benjamini_hochberg(row) <= LEVEL).any()) for row in pooled]
    return {
        "family-wise": round(float((family.min(axis=1) <= LEVEL).mean()), 3),
        "any at 5% FDR": round(float(np.mean(found)), 3),
        "p <= 0.05": round(float((own <= LEVEL).mean()), 4),
        "KS": round(ks_distance(own.ravel()), 4),
    }


def cohort(atlas: Atlas, specimens: Sequence[Specimen], found: Sequence[Annotation]) -> Measured:
    """Return what is measured of animals, named as `eutely.compare` does."""
    return measured(atlas, specimens, renamed(atlas, specimens, found))


def null() -> None:
    """Random halves of real and of simulated cohorts."""
    atlas = built_in()
    for which in ("train100", "test2"):
        cells = cohort(atlas, worms(which), annotations(worms(which)))
        kept = {key: cells.values[key] for key in ("size", "mean")}
        cells = replace(cells, values=kept)
        show("null", which, half_tests(atlas, cells))
    built = build(simulate(12, cells=100, seed=0), workers=1)
    small = named(built.atlas, built.specimens, built.cells)
    animals = simulate(40, cells=100, seed=1, missing=0.03, spurious=0.03)
    cells = cohort(small, animals, annotate(small, animals, adapt=False, workers=1))
    show("null", "simulated", half_tests(small, cells))


def show(section: str, name: str, tests: dict[str, Figures]) -> None:
    rows = [{"test": test, **figures} for test, figures in tests.items()]
    table(f"{section}: {name}", rows)
    before = known(RESULTS).get(section, {}).get("cohorts", {})
    keep(RESULTS, section, {"cohorts": before | {name: rows}})


def batches() -> None:
    """Half of the worms bent, stretched, warped or scaled: findings in the relative tests."""
    atlas, plain = built_in(), worms(WORMS)[:BATCH_SIZE]
    untouched = annotations(plain)
    rows = []
    for kind in ("none", *BATCHES):
        other = list(plain) if kind == "none" else batch(plain, kind)
        changed = untouched if kind == "none" else annotations(other)
        counts: dict[str, list[float]] = {}
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(BATCH_SIZE)
            half = BATCH_SIZE // 2
            specimens = [plain[k] for k in order[:half]] + [other[k] for k in order[half:]]
            found = [untouched[k] for k in order[:half]] + [changed[k] for k in order[half:]]
            cells = sizes_only(cohort(atlas, specimens, found))
            contrast = question(half, half)
            result = answer(atlas, cells, contrast, permutations(contrast, FEWER, draw))
            for outcome in result.cells:
                counts.setdefault(outcome.test, []).append(float((outcome.q <= LEVEL).sum()))
                key = f"{outcome.test}, p <= 0.05"
                counts.setdefault(key, []).append(float(np.nanmean(outcome.p <= LEVEL)))
        rows.append({"batch": kind, **{key: float(np.mean(v)) for key, v in counts.items()}})
        table("batch: mean number of findings", rows[-1:])
    keep(RESULTS, "batch", {"animals": BATCH_SIZE, "worms": WORMS, "draws": DRAWS, "rows": rows})


def sizes_only(cells: Measured) -> Measured:
    """Leave out intensities, which say nothing about deformations, to save time."""
    return replace(cells, values={"size": cells.values["size"]})


def power() -> None:
    """Cells shifted, dropped and enlarged in real worms, names found by eutely or true."""
    rows: list[Figures] = []
    for distance in SETS:
        part = shift_rows(WORMS, distance, MOST)
        table(f"power: {distance} spacings", part)
        rows += part
        keep(RESULTS, "power", {"changed": CHANGED, "worms": WORMS, "rows": rows})
    rows = change_rows(WORMS, MOST)
    table("power: dropped, enlarged", rows)
    keep(RESULTS, "changes", {"changed": CHANGED // 2, "worms": WORMS, "rows": rows})


def real() -> None:
    """Training against test worms; embryos by the series in their names."""
    atlas = built_in()
    train, test = list(worms("train100")), list(worms("test2"))
    given = {"train100": annotations(train), "test2": annotations(test)}
    memory()
    start, clock = time.process_time(), time.perf_counter()
    found = compare(atlas, {"train100": train, "test2": test}, annotations=given)
    spent, elapsed = time.process_time() - start, time.perf_counter() - clock
    keep(RESULTS, "speed", {"animals": 200, "permutations": found.design.permutations,
                            "processor seconds": round(spent, 1), "seconds": round(elapsed, 1),
                            "memory_gb": round(peak() / 1e6, 2)})  # fmt: skip
    print(known(RESULTS)["speed"], flush=True)
    _tell("train100 and test2", found)


def embryos() -> None:
    """Embryos by what their names say: two series (L1, L2), and two reporter strains.

    Atlases are from names of other embryos.
    """
    everyone = read(DATA / "epic" / "epic_350cell.csv")
    series = {label: [one for one in everyone if one.name.endswith(f"_{label}")][:20]
              for label in ("L1", "L2")}  # fmt: skip
    _embryos("embryos of series L1 and L2", everyone, series)
    strains = {"pha-4": ("pha4", "pha-4"), "tbx-11": ("tbx-11",)}
    reporters = {label: [one for one in everyone if one.name.split("_")[1] in words]
                 for label, words in strains.items()}  # fmt: skip
    _embryos("embryos of strains pha-4 and tbx-11", everyone, reporters)


def _embryos(name: str, everyone: Sequence[Specimen], groups: dict[str, list[Specimen]]) -> None:
    """Compare groups of embryos, by an atlas of 20 others."""
    inside = {one.name for group in groups.values() for one in group}
    others = [one for one in everyone
              if one.name not in inside and one.name[-3:] not in ("_L1", "_L2")]  # fmt: skip
    atlas = build(others[:20], supervised=True, workers=1).atlas
    given = {label: annotations(group, atlas) for label, group in groups.items()}
    _tell(name, compare(atlas, groups, annotations=given))


def _tell(name: str, found: object) -> None:
    from eutely import Comparison

    assert isinstance(found, Comparison)
    (result,) = found.answers
    lines = found_words(found, result)
    whole = found.whole_frame()
    changed = whole[whole["q"] <= LEVEL][["measure", "effect", "low", "high", "p"]]
    print(name, *lines, changed.to_string(), sep="\n", flush=True)
    counts = {one.test: int((one.q <= LEVEL).sum()) for one in result.cells}
    sure = {one.test: int(((one.q <= LEVEL) & ~one.doubtful).sum()) for one in result.cells}
    before = known(RESULTS).get("real", {}).get("groups", {})
    keep(RESULTS, "real", {"groups": before | {name: {
        "animals": len(found.animals), "findings": counts, "on sure names": sure,
        "sentences": lines, "whole": changed.round(4).to_dict("records"),
    }}})  # fmt: skip


def page() -> None:
    """Write the section of the notebook from the results."""
    from compare_pages import text

    put("compare.py", text(known(RESULTS)))


SECTIONS = {"power": power, "null": null, "batch": batches, "real": real, "embryos": embryos}


def main() -> None:
    for name in sys.argv[1:] or SECTIONS:
        if name != "page":
            SECTIONS[name]()
    page()


if __name__ == "__main__":
    main()
