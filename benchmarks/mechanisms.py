# ruff: noqa: ARG005  (functions that stand in for others take their arguments)
"""Mechanisms of pose, fit, find and series; `ablation_mechanisms.py` switches each of them off.

A mechanism is a guard, a stage of a search, a rule with a threshold, or a step of a series. It is
switched off from outside, by other values of constants and functions of the package.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

Change = Callable[[Any], Any]
"""What stands in for a constant or function, given the original."""

EACH = ("whole", "mirrored", "parts", "ends", "degraded", "heads", "embryos")
PARTIAL = ("parts", "ends", "heads")
WHOLE = ("whole", "mirrored", "degraded", "embryos")
HEADS = ("heads series",)
SERIES = ("worms series", "batch series", "windows series", "heads series")


class Mechanism(NamedTuple):
    """One mechanism.

    Attributes
    ----------
    name, what
        how it is called, and what it does.
    changes
        "room.module:name" -> change that switches it off. A function changes wherever it was
        imported, a constant only there.
    cohorts
        on which it can act.
    """

    name: str
    what: str
    changes: Mapping[str, Change]
    cohorts: tuple[str, ...] = EACH


def to(value: Any) -> Change:
    """Return the change to a value."""
    return lambda _: value


@contextmanager
def switched_off(mechanism: Mechanism) -> Iterator[None]:
    """Switch a mechanism off for a while."""
    before = []
    try:
        for place, change in mechanism.changes.items():
            module, _, path = place.partition(":")
            owner: Any = importlib.import_module(f"eutely.{module}")
            *outer, name = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            original = getattr(owner, name)
            owners = [owner]
            if callable(original) and not outer:
                owners = [
                    other
                    for key, other in sorted(sys.modules.items())
                    if key.startswith("eutely") and getattr(other, name, None) is original
                ]
            value = change(original)
            for each in owners:
                before.append((each, name, original))
                setattr(each, name, value)
        yield
    finally:
        for each, name, original in reversed(before):
            setattr(each, name, original)


def _nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _by_itself(settle: Any) -> Any:
    """Return how handedness is settled for each specimen of a series by itself."""

    def alone(results: Any, group: Any, known: Any) -> None:
        for number in group:
            settle(results, [number], known)

    return alone


SERIES_ROWS = [
    Mechanism("shift by series", "moves the atlas to a series",
              {"tasks.annotate:_fit_series": to(lambda *_, **__: set())}, SERIES),
    Mechanism("gain guard", "no shift that fits worse",
              {"series.shared:gain": to(lambda *_: 1.0)}, SERIES[:3]),
    Mechanism("handedness by series", "alike specimens settle it together",
              {"series.shared:settle_hands": _by_itself}, ("worms series", "heads series")),
    Mechanism("handedness known of an origin", "that of the atlas's specimens",
              {"atlas:Atlas.hands_of": to(lambda *_: (0, 0))}, HEADS),
    Mechanism("shared error of handedness", "alike specimens err together",
              {"fit.mirror:SHARED": to(1e-6)}, HEADS),
    Mechanism("atlas of an origin", "cells and colours of it",
              {"tasks.annotate:_of_origin": to(lambda atlas, _: atlas)}, HEADS),
    Mechanism("EXCHANGED", "doubt about left and right",
              {"series.shared:EXCHANGED": to(0.0)}, HEADS),
]  # fmt: skip

FIT_ROWS = [
    Mechanism("refitted", "poses anew from own matches",
              {"fit.refit:refitted": to(lambda model, fit, points, pins=None: fit)},
              (*EACH, "spurious")),
    Mechanism("reflections", "fits each in other handedness",
              {"fit.posterior:_reflections": to(_nothing)}),
    Mechanism("second fit", "two fits of a handedness are matched jointly",
              {"fit.posterior:LAG": lambda both: both[:1]},
              ("parts", "ends", "degraded", "clouds", "spurious")),
    Mechanism("prior of handedness", "mirror images are rarer",
              {"fit.posterior:MIRRORED": to(0.5),
               "series.shared:mirror_probabilities": lambda original: lambda evidence,
                   known=(0, 0), share=0.5: original(evidence, known, share)},
              ("mirrored", *PARTIAL)),
    Mechanism("trust", "doubt about place lowers confidence",
              {"fit.evidence:trust": to(lambda model, fit, *_: np.ones(len(fit.warped)))},
              ("ends", "heads", "embryos", "clouds", "spurious")),
    Mechanism("mixture", "matches by all cells that they may be",
              {"fit.evidence:_own_shares": to(lambda fit: np.ones((fit.nuclei >= 0).sum()))},
              (*EACH, "spurious")),
    Mechanism("cost of the view", "what is left out costs",
              {"fit.evidence:LEFT_OUT": to(0.0), "fit.evidence:PART": to(0.0)},
              (*EACH, "spurious")),
    Mechanism("error of coordinates", "loosens the atlas per specimen",
              {"fit.match:error_of": to(lambda *_, **__: 0.0)},
              ("whole", "degraded", "embryos", "heads", "ends", "spurious", "spurious, all")),
    Mechanism("features", "scores add to costs",
              {"fit.match:feature_term": to(lambda *_: None),
               "fit.match:TERMS": lambda terms: terms[1:]},
              (*WHOLE, "heads", "parts", "spurious")),
    Mechanism("oddity", "features of spurious nuclei",
              {"fit.match:oddity_term": to(lambda *_: None),
               "fit.match:TERMS": lambda terms: terms[:1]},
              ("degraded", "spurious", "spurious, all", "heads", "ends")),
    Mechanism("crowding and oddity", "nuclei too close are spurious",
              {"fit.model:model_of_atlas": lambda original: lambda atlas: original(
                  atlas)._replace(crowding=np.zeros(0))},
              ("degraded", "spurious", "spurious, all", "heads", "ends")),
    Mechanism("presence", "how often cells are there",
              {"estimate.origins:presence": to(lambda seen: np.ones(len(seen)))},
              (*WHOLE, "heads", "spurious")),
    Mechanism("STRAYING", "few pairs mean nothing missing", {"fit.rates:STRAYING": to(1e-9)},
              (*WHOLE, "heads", "parts", "spurious", "spurious, all")),
    Mechanism("COMPLETE", "right count: three times that",
              {"fit.rates:COMPLETE": to(-1.0)}, WHOLE),
    Mechanism("second mean field", "match, warp, match again",
              {"fit.match:match_jointly.__kwdefaults__": lambda given: given | {"refits": 1}},
              (*WHOLE, "heads", "parts", "spurious", "spurious, all")),
    Mechanism("second hard warp", "warp to hard matches twice",
              {"fit.warp:REFITS": to(1)},
              (*WHOLE, "heads", "parts")),
    Mechanism("slow cooling", "six soft warps, not three",
              {"fit.warp:soft_warp.__defaults__": to((None, (4.0, 2.0, 1.0), None))},
              (*WHOLE, "heads", "parts")),
    Mechanism("second round of a part", "view, warp, view again",
              {"fit.warp:PART_ROUNDS": to(1)}, PARTIAL),
]  # fmt: skip

VIEW_ROWS = [
    Mechanism("unit", "an undeclared unit may be that of the atlas",
              {"tasks.annotate:SAME_UNIT": to(0.0)}, ("heads",)),
    Mechanism("prior of scale", "unusual scales are less likely",
              {"fit.hypothesis:SAME_UNIT": to(1.0), "fit.hypothesis:ANY_UNIT": to(1.0)},
              ("parts", "heads")),
    Mechanism("prior of stretch", "unusual shapes are less likely",
              {"fit.hypothesis:STRETCH": to(1e3)}, ("parts", "ends", "heads")),
    Mechanism("tilts", "long axis tilted",
              {"fit.scan:_tilts": to(lambda angle: np.eye(3)[None])}, ("heads", "embryos")),
    Mechanism("widths of the mixture", "two widths, not the last",
              {"fit.propose:WIDTHS": lambda all_: all_[-1:],
               "fit.propose:KEPT": lambda all_: all_[1:],
               "fit.propose:BEHIND": lambda all_: all_[1:]},
              ("parts", "heads")),
    Mechanism("half the hypotheses kept", "effort of the search",
              {"fit.propose:KEPT": to((8, 8, 8, 2))}, ("parts", "heads")),
    Mechanism("half the rolls", "effort of the search", {"fit.scan:ROLLS": to(6)},
              ("parts", "heads")),
    Mechanism("windows of as many cells", "exact scales of parts",
              {"fit.scan:_windows": to(lambda *_: np.zeros(0))}, ("parts", "ends")),
    Mechanism("features in the search", "ranks of scores",
              {"fit.propose:_feature_costs": to(lambda *_: np.zeros((0, 0)))},
              ("parts", "heads")),
    Mechanism("window of a hypothesis", "cells beyond the ends unseen",
              {"fit.propose:_between": to(lambda cells, *_: np.ones(len(cells.means), bool))},
              ("parts", "heads")),
    Mechanism("shear of hypotheses", "more than a similarity",
              {"fit.propose:RIDGE": to(1e6)}, ("parts", "heads")),
    Mechanism("LONGEST", "limit of that shear", {"fit.propose:LONGEST": to(1e9)},
              ("parts", "heads")),
]  # fmt: skip

POSE_ROWS = [
    Mechanism("straighten", "unbends long bodies",
              {"pose.straighten:straighten": to(lambda one: one)},
              ("whole", "bent")),
    Mechanism("least_cost", "bound leaves poses out",
              {"align.target:least_cost": to(lambda *_: -np.inf)}, WHOLE),
    Mechanism("POSES", "four given poses, not two", {"pose.stand:POSES": to(2)},
              WHOLE),
    Mechanism("symmetry plane", "roll by left and right",
              {"pose.hypotheses:best_rolls": to(lambda _: [(0.0, 0.0), (np.pi / 2, 0.0)])},
              WHOLE),
    Mechanism("without_centre_line", "symmetry of curved bodies",
              {"pose.hypotheses:without_centre_line": to(lambda points: points)},
              (*WHOLE, "bent")),
    Mechanism("body without strays", "far nuclei and clumps out",
              {"pose.pose:STRAY": to(1e9), "pose.pose:CLUMP": to(0.0)},
              WHOLE),
]  # fmt: skip

FIND_ROWS = [
    Mechanism("resplit", "splits confusable cells again",
              {"find.refine.resplit:resplit": to(lambda cells, *_, **__: (cells, 0))},
              ("build", "build windows", "build embryos")),
    Mechanism("fuse", "better regions of other targets",
              {"find.refine.fuse:fuse": to(lambda first, *_, **__: (first, 0))},
              ("build", "build windows", "build embryos")),
    Mechanism("warp afresh", "in the first joint round",
              {"find.refine.rounds:joint_round": lambda original: lambda *given, afresh, **more:
                  original(*given, afresh=False, **more)}, ("build",)),
    Mechanism("LACKING", "more targets if nuclei lack",
              {"find.refine:LACKING": to(1.0)}, ("build degraded",)),
    Mechanism("placed again", "those in doubt in a better mean",
              {"find.poses:PASSES": to(1)}, ("build windows",)),
    Mechanism("SHARE", "higher bar to fit",
              {"find.poses:SHARE": to(0.0)}, ("build windows",)),
    Mechanism("_without_strays", "no new cell near lacking",
              {"find.refine.grow:_without_strays": to(lambda cells, spare, _: spare)},
              ("build windows",)),
    Mechanism("_exceptional", "seldom cells cost more",
              {"find.refine.fuse:_exceptional": to(lambda seen, *_: np.zeros(len(seen)))},
              ("build windows",)),
    Mechanism("_in_doubt", "doubted cells not asked for",
              {"find.refine.fuse:_in_doubt": to(lambda cells, _: np.zeros(cells.count, bool))},
              ("build windows",)),
    Mechanism("between ends", "cells beyond cuts unseen",
              {"geometry:between_ends": to(lambda means, *_: np.ones(len(means)))},
              ("build windows",)),
    Mechanism("SETTLED, LEFT_OVER", "limits of what is missing",
              {"fit.model:SETTLED": to(2.0), "fit.model:LEFT_OVER": to(1e9)}, ("build windows",)),
]  # fmt: skip

MECHANISMS = [*FIT_ROWS, *SERIES_ROWS, *FIND_ROWS, *VIEW_ROWS, *POSE_ROWS]

UNJUDGED = {
    "ASYMMETRIC, TELLING": "symmetric animals: simulated ones only",
    "LARGE, _roughly": "more than 700 cells: simulated ones only",
}
"""Mechanisms that none of the cohorts reaches."""
