"""How well NeuroPAL heads could be named by the present model: what pose and neighbours cost.

The scored heads of the protocol *retrain*, three times: with the handedness that their names imply;
from there, with every cell expected where the true names of all others put it (one linear
assignment by the costs of the model, so that no search can fail); and the latter by places alone.

    python benchmarks/neuropal_limit.py
"""

import json
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import least_squares
from eutely.align.warp import rewarp
from eutely.atlas import Atlas
from eutely.evaluation import comparable, score
from eutely.fit.match import Fit, term_costs
from eutely.fit.model import Model
from eutely.frame import canonical_order
from eutely.origin import origin_of
from eutely.pose import anonymous
from eutely.solver.assignment import assign
from eutely.solver.meanfield import predict
from eutely.solver.softassign import Rules
from eutely.specimen import Specimen
from eutely.tasks.annotate import Task, _fit_task, _of_origin, _target
from neuropal import RESULTS, Head, atlas_of, heads, means, splits

SETTLING = 20
"""Rounds in which cells without a nucleus settle where the others put them."""

KINDS = ("handedness of the names", "and all other cells known", "the latter, places only")


class Known(NamedTuple):
    """A head, its cells in an atlas by its names, and its fit in their handedness."""

    specimen: Specimen
    cells: NDArray[np.intp]
    fit: Fit


def known(atlas: Atlas, specimen: Specimen) -> Known:
    """Fit a head in the handedness that its names imply; nuclei in canonical order."""
    specimen = specimen.take(canonical_order(specimen))
    number = {comparable(name): at for at, name in enumerate(atlas.names)}
    names = [comparable(name) for name in specimen.names or ()]
    cells = np.array([number.get(name, -1) if name else -1 for name in names])
    shared = cells >= 0
    matrix, _ = least_squares(specimen.centroids[shared], atlas.means[cells[shared]])
    hands = (bool(np.linalg.det(matrix) < 0),)
    task = Task(anonymous(specimen, specimen.name), None, hands)
    return Known(specimen, cells, _fit_task(atlas, _target(atlas), task).fit)


def with_others_known(model: Model, head: Known, *, features: bool) -> NDArray[np.int32]:
    """Return the cell of each nucleus if all others are where their names say."""
    fit, nuclei = head.fit, head.fit.nuclei.copy()
    named = np.flatnonzero(head.cells >= 0)
    nuclei[np.isin(nuclei, named)] = -1  # nuclei without a name keep the cell that was found
    nuclei[head.cells[named]] = named
    seen = model if fit.view is None else model.through(fit.view)
    warped = rewarp(fit.posed, fit.warped, nuclei, seen.goal)
    at = Fit(fit.posed, warped, fit.scores, nuclei, fit.cost, fit.rates, fit.error, fit.crowd)
    places = model.means.copy()
    places[nuclei >= 0] = warped[nuclei[nuclei >= 0]]
    for _ in range(SETTLING):
        expected = predict(model.means, model.field.neighbours, model.field.predictors, places)
        places[nuclei < 0] = expected[nuclei < 0]
    terms = term_costs(seen, at) if features else None
    rules = Rules(seen.freedom, seen.c0(fit.rates), None, terms)
    found, _ = assign(expected, seen.loosened(fit.error).field.centres, warped, rules)
    cells = np.full(len(head.specimen), -1, np.int32)
    cells[found[found >= 0]] = np.flatnonzero(found >= 0)
    return cells


def accuracy(atlas: Atlas, head: Known, cells: NDArray[np.int32]) -> float:
    """Return the share of the named nuclei that have their own name."""
    return score(head.specimen, [atlas.names[c] if c >= 0 else "" for c in cells]).accuracy


def main() -> None:
    rows: dict[str, list[dict[str, object]]] = {kind: [] for kind in KINDS}
    atlases: dict[tuple[str, ...], Atlas] = {}

    def add(test: Head, atlas: Atlas) -> None:
        own = _of_origin(atlas, origin_of(test.specimen))
        head, model = known(own, test.specimen), _target(own).model
        found = (
            head.fit.cells,
            with_others_known(model, head, features=True),
            with_others_known(model, head, features=False),
        )
        for kind, cells in zip(KINDS, found, strict=True):
            value = round(accuracy(own, head, cells), 3)
            rows[kind].append({"head": test.specimen.name, "lab": test.lab, "accuracy": value})

    for train, tests in splits(heads("raw"), "retrain"):
        key = tuple(head.specimen.name for head in train)
        if key not in atlases:
            atlases[key] = atlas_of(train, "retrain")
        for test in tests:
            add(test, atlases[key])
    for kind in KINDS:
        print(kind, means(rows[kind]), flush=True)
    results = json.loads(RESULTS.read_text())
    results["limits of retrain"] = {
        kind: {**means(rows[kind]), "rows": rows[kind]} for kind in KINDS
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
