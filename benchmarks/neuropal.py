"""Heads of seven NeuroPAL data sets: atlases of named heads, annotated heads of other folds.

The protocol of the published benchmark on the folds that are here (0 to 2 of all laboratories, 3
and 4 of EY): accuracy over named neurons, mean over the heads with ``scored`` = 1, raw coordinates.
Twice: each head alone, as published, and the scored heads of a laboratory (and of a fold, where the
atlas depends on it) as a series.

    python benchmarks/neuropal.py                              all protocols, raw colours
    python benchmarks/neuropal.py retrain --colours matched    one protocol, other colours
    python benchmarks/neuropal.py retrain --undeclared         heads to annotate without their unit
"""

import argparse
import csv
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import eutely
from eutely import Annotation, Specimen
from eutely.atlas import Atlas
from eutely.evaluation import score
from eutely.specimen import UNKNOWN
from worms import DATA

RESULTS = Path(__file__).resolve().parent / "results" / "neuropal.json"
SIDES = {"L": "R", "R": "L"}
UNPAIRED = ("AQR", "AVL", "RIR")
"""Cells whose last letter is no side."""

BASE = "NP"
"""The data set that belongs to no fold, and is in every training set."""

COLOURS = {"none": (), "raw": ("R", "G", "B"), "matched": ("R_matched", "G_matched", "B_matched")}

PUBLISHED = {
    "CRF_ID, retrained": {
        "EY": 0.576, "HL": 0.888, "KK": 0.559, "SF": 0.839, "SK1": 0.727, "SK2": 0.851,
    },
    "statistical atlas, retrained": {
        "EY": 0.56, "HL": 0.81, "KK": 0.50, "SF": 0.57, "SK1": 0.61, "SK2": 0.87,
    },
    "CRF_ID, base": {"mean": 0.555},
}  # fmt: skip
"""Published figures; their heads were aligned by true names first (columns ``aligned_*``)."""


class Head(NamedTuple):
    """One head of a data set."""

    lab: str
    fold: str
    scored: bool
    specimen: Specimen


def heads(colours: str) -> list[Head]:
    """Return all heads with the features of one kind of colours."""
    rows = defaultdict(list)
    with (DATA / "neuropal" / "heads.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[row["dataset"], row["individual"]].append(row)
    result = []
    for (lab, individual), nuclei in rows.items():
        features = {
            column[0]: np.array([float(row[column] or "nan") for row in nuclei])
            for column in COLOURS[colours]
        }
        specimen = Specimen.from_arrays(
            f"{lab}_{individual}",
            [[float(row[axis]) for axis in "xyz"] for row in nuclei],
            names=[row["name"] for row in nuclei],
            features=features,
            unit="um",
        )
        result.append(Head(lab, nuclei[0]["fold"], nuclei[0]["scored"] == "1", specimen))
    return result


def undeclared(head: Head) -> Head:
    """Return a head as a plain table has it, which does not say that it is in micrometres."""
    return head._replace(specimen=replace(head.specimen, unit=UNKNOWN))


def splits(all_heads: Sequence[Head], protocol: str) -> Iterator[tuple[list[Head], list[Head]]]:
    """Yield heads to build from, and heads to annotate: those of one laboratory, and of one fold.

    Where the atlas does not depend on the fold, the heads of all folds are one series.
    """
    tests = [head for head in all_heads if head.scored and head.fold]
    for lab in sorted({head.lab for head in tests}):
        of_lab = [head for head in tests if head.lab == lab]
        if protocol == "base":
            yield [head for head in all_heads if head.lab == BASE], of_lab
        elif protocol == "lab-out":
            yield [head for head in all_heads if head.lab != lab], of_lab
        else:
            for fold in sorted({head.fold for head in of_lab}):
                train = [head for head in all_heads if head.fold != fold]
                yield train, [head for head in of_lab if head.fold == fold]


def atlas_of(train: Sequence[Head], protocol: str) -> Atlas:
    """Build an atlas from named heads; or without names, named by the base heads afterwards."""
    specimens = [head.specimen for head in train]
    if protocol != "unsupervised":
        return eutely.build(specimens, supervised=True).atlas
    built = eutely.build([specimen.without_names() for specimen in specimens])
    return eutely.name(built.atlas, [head.specimen for head in train if head.lab == BASE])


def run(protocol: str, colours: str, *, declared: bool = True) -> dict[str, object]:
    """Return the accuracy of each laboratory and of all scored heads, alone and as series.

    Heads to annotate are in micrometres, and say so if ``declared``.
    """
    atlases: dict[tuple[str, ...], Atlas] = {}
    rows: dict[str, list[dict[str, object]]] = {"each head alone": [], "as series": []}
    seconds = 0.0
    for train, test in splits(heads(colours), protocol):
        key = tuple(head.specimen.name for head in train)
        if key not in atlases:
            atlases[key] = atlas_of(train, protocol)
        given = test if declared else [undeclared(head) for head in test]
        unnamed = [head.specimen.without_names() for head in given]
        begin = time.process_time()
        alone = eutely.annotate(atlases[key], unnamed, adapt=False, workers=1)
        seconds += time.process_time() - begin
        series = eutely.annotate(atlases[key], unnamed, workers=1)
        for kind, annotations in (("each head alone", alone), ("as series", series)):
            rows[kind] += [row(*pair) for pair in zip(test, annotations, strict=True)]
    count = len(rows["as series"])
    result = {kind: {**means(of_kind), "rows": of_kind} for kind, of_kind in rows.items()}
    for kind, of_kind in rows.items():
        unit = "" if declared else ", unit not declared"
        print(f"{protocol}, {colours} colours{unit}, {kind}:", means(of_kind), flush=True)
    return {**result, "heads": count, "seconds_per_head": round(seconds / count, 2)}


def row(head: Head, annotation: Annotation) -> dict[str, object]:
    """Return what is kept of one head."""
    named = np.array([bool(name) for name in head.specimen.names or ()])
    right = score(head.specimen, annotation.names).accuracy
    other = replace(head.specimen, names=tuple(map(exchanged, head.specimen.names or ())))
    return {
        "head": head.specimen.name,
        "lab": head.lab,
        "accuracy": round(right, 3),
        "left and right exchanged": round(score(other, annotation.names).accuracy, 3),
        "confidence": round(float(np.nan_to_num(annotation.confidence)[named].mean()), 3),
        "mirrored": annotation.mirrored,
        "support": round(annotation.support or 0.0, 2),
    }


def exchanged(name: str) -> str:
    """Return the name of the cell on the other side of the body, if the name has a side."""
    return name if name in UNPAIRED else name[:-1] + SIDES.get(name[-1:], name[-1:])


def means(rows: Sequence[dict[str, object]]) -> dict[str, float]:
    """Return the mean accuracy of each laboratory and of all heads."""
    values: dict[str, list[float]] = defaultdict(list)
    for one in rows:
        values[str(one["lab"])].append(float(str(one["accuracy"])))
        values["mean"].append(float(str(one["accuracy"])))
    return {lab: round(float(np.mean(values[lab])), 3) for lab in sorted(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    protocols = ("retrain", "base", "lab-out", "unsupervised")
    parser.add_argument("protocols", nargs="*", default=["retrain", "base", "lab-out"])
    parser.add_argument("--colours", choices=list(COLOURS), default="raw")
    parser.add_argument("--undeclared", action="store_true", help="heads do not say their unit")
    given = parser.parse_args()
    if unknown := set(given.protocols) - set(protocols):
        parser.error(f"no protocol {min(unknown)}; there are: {', '.join(protocols)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"published": PUBLISHED}
    for protocol in given.protocols:
        key = f"{protocol}, {given.colours} colours"
        key += ", unit not declared" if given.undeclared else ""
        results[key] = run(protocol, given.colours, declared=not given.undeclared)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
