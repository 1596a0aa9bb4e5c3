"""Figures of the paper over the number of training worms, and few partners of each worm."""

import time
from collections.abc import Sequence

from eutely.costs.gaussian import Costs, between
from eutely.evaluation import pre_atlas
from eutely.multi import MultiProblem, solve_direct, synchronise
from eutely.pairs import partner_pairs
from eutely.specimen import Specimen
from figures import Figures
from laboratory import Lab, among, drawn, figures, matched_with, of_pairs

COUNTS = range(10, 101, 10)

DIRECT = 20
"""Worms up to which cliques are found directly from costs: those of all pairs are in memory."""


def sizes(lab: Lab) -> None:
    """Pre-atlas and atlas of the training worms, and the test worms, over training worms."""

    def row(count: int) -> Figures:
        chosen = drawn(lab, count)
        cohort = lab.cohort.some(chosen)
        cells = lab.cells(lab.second, among(lab.matchings, chosen), chosen)
        atlas = lab.atlas(cells, lab.weights, cohort)
        return {
            "pre_atlas": figures(pre_atlas(cohort.named, cells.labels())),
            "atlas": figures(matched_with(atlas, lab.placed(lab.second, chosen))),
            "test": figures(matched_with(atlas, lab.test_aligned)),
        }

    lab.rows("sizes", {f"{count}": lambda count=count: row(count) for count in COUNTS})


def modes(lab: Lab) -> None:
    """How matchings of pairs become cliques; the dense mode is that of `sizes`."""

    def row(count: int, mode: str) -> Figures:
        chosen = drawn(lab, count)
        start = time.process_time()
        if mode == "direct":
            cliques = solve_direct(problems(lab, chosen), "fast")
        else:
            some = among(lab.matchings, chosen)
            cliques = synchronise(some, sparse=mode == "sparse", seed=lab.config.seed)
        seconds = time.process_time() - start
        cells = lab.cells_of(lab.second, cliques, chosen)
        accuracies = lab.judged(cells, lab.weights, lab.second, chosen)
        return accuracies | {"processor_seconds": round(seconds, 2)}

    lab.rows(
        "modes",
        {
            f"{mode}, {count}": lambda count=count, mode=mode: row(count, mode)
            for mode in ("direct", "sparse", "dense")
            for count in COUNTS
            if mode != "direct" or count <= DIRECT
        },
    )


def problems(lab: Lab, chosen: Sequence[int]) -> MultiProblem:
    """Return the problems of all pairs of the chosen worms."""
    learned = lab.learned.parameters
    worms = [
        Specimen.from_arrays(str(g), lab.second.frames[g], radii=lab.second.radii[g])
        for g in chosen
    ]
    costs = Costs(
        c0=lab.config.multi.c0,
        tau_centroid=learned.tau_centroid,
        tau_radius=learned.tau_radius,
        k_min=learned.k_min,
        neighbours=lab.config.costs.neighbours,
    )
    variances = (learned.centroids, learned.radii, learned.offsets)
    return MultiProblem.from_pairs(
        (g, h, between(worms[g], worms[h], *variances, costs))
        for g in range(len(worms))
        for h in range(g + 1, len(worms))
    )


def partners(lab: Lab) -> None:
    """Each worm matched with a few others only (`multi.partners`); alignment is shared."""

    def row(number: int) -> Figures:
        pairs = partner_pairs(len(lab.cohort.named), number, lab.config.seed)
        assert pairs is not None
        cells = lab.cells(lab.second, of_pairs(lab.matchings, pairs))
        tested = figures(matched_with(lab.atlas(cells, lab.weights), lab.test_aligned))
        named = lab.cohort.named
        found = figures(pre_atlas(named, cells.labels()))
        return {"pairs": len(pairs), "pre_atlas": found, "test": tested}

    lab.rows("partners", {f"{number}": lambda number=number: row(number) for number in (20, 50)})
