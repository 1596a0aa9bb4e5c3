# ruff: noqa: ARG005  (functions that stand in for others take their arguments)
"""Mechanisms of pose, fit, find and series, and how `ablation.py` switches each of them off.

A mechanism is a guard, a stage of a search, a rule with a threshold, or a step of a series. It is
switched off from outside, by other values of constants and functions of the package.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from eutely.fit.evidence import PLACED, support

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

    def alone(results: Any, group: Any, known: Any, *, every: bool) -> dict[int, bool]:
        again: dict[int, bool] = {}
        for number in group:
            again |= settle(results, [number], known, every=every)
        return again

    return alone


def _unless(key: str, instead: Callable[..., Any]) -> Change:
    """Return the change to another function where an argument is set."""
    return lambda original: (
        lambda *given, **more: instead(*given) if more.get(key) else original(*given, **more)
    )


CANDIDATES = [
    Mechanism("shift by series", "moves the atlas to a series",
              {"tasks.annotate:_fit_series": to(lambda *_, **__: set())}, SERIES),
    Mechanism("completed", "end cells that atlases lack",
              {"tasks.series:completed": to(lambda atlas, _: atlas)},
              ("windows series",)),
    Mechanism("matched_together", "series matched by each other",
              {"tasks.series:outnumber": to(lambda *_: False)},
              ("windows series",)),
    Mechanism("all three of them", "series but for handedness",
              {"tasks.annotate:_fit_series": to(lambda *_, **__: set()),
               "tasks.series:completed": to(lambda atlas, _: atlas),
               "tasks.series:outnumber": to(lambda *_: False)},
              ("windows series",)),
    Mechanism("curate --learn", "atlas learns from curated specimens",
              {"curate.learn:lesson": to(lambda *_: None)}, ("learn worms", "learn heads")),
    Mechanism("merged cells", "unites split cells by BIC",
              {"find.refine.merge:merged": to(lambda cells, _: cells)},
              ("build", "build windows", "build embryos", "build heads")),
]  # fmt: skip

SERIES_ROWS = [
    Mechanism("gain guard", "no shift that fits worse",
              {"tasks.series:gain": to(lambda *_: 1.0)}, SERIES[:3]),
    Mechanism("handedness by series", "alike specimens settle it together",
              {"tasks.series:settle_hands": _by_itself}, ("worms series", "heads series")),
    Mechanism("handedness known of an origin", "that of the atlas's specimens",
              {"atlas:Atlas.hands_of": to(lambda *_: (0, 0))}, HEADS),
    Mechanism("shared error of handedness", "alike specimens err together",
              {"fit.handedness:SHARED": to(1e-6)}, HEADS),
    Mechanism("atlas of an origin", "cells and colours of it",
              {"tasks.annotate:_of_origin": to(lambda atlas, _: atlas)}, HEADS),
    Mechanism("EXCHANGED", "doubt about left and right",
              {"tasks.series:EXCHANGED": to(0.0)}, HEADS),
]  # fmt: skip

FIT_ROWS = [
    Mechanism("search of views", "place and scale of parts", {"fit.choose:search": to(_nothing)},
              (*EACH, "spurious")),
    Mechanism("thorough search", "second search with more poses",
              {"fit.choose:_searched": _unless(
                  "thorough", lambda model, rivals, *_: (rivals[0], PLACED))}, PARTIAL),
    Mechanism("posed_again", "poses anew from own matches",
              {"fit.again:posed_again": to(lambda model, fit, points, pins=None: (
                  fit, support(model, fit, points)))},
              (*EACH, "spurious")),
    Mechanism("posed again as a part", "up to six times",
              {"fit.again:MANY": to(10**9)}, ("parts", "ends", "clouds")),
    Mechanism("mirror images of fits", "fits each in other handedness",
              {"fit.choose:_mirror_images": to(_nothing)}),
    Mechanism("_unless_cut", "whole body may lack an end",
              {"fit.choose:_unless_cut": to(lambda model, whole, *_: whole)},
              ("whole", "ends", "degraded", "embryos", "spurious")),
    Mechanism("without_an_end", "tries either end cut off",
              {"fit.poses:without_an_end": to(_nothing)},
              ("whole", "ends", "degraded", "embryos")),
    Mechanism("_shows_all", "whole bodies are not searched",
              {"fit.choose:_shows_all": to(lambda *_: False)}, (*WHOLE, "spurious")),
    Mechanism("AT_PLACE", "support that ends a search",
              {"fit.choose:AT_PLACE": to(PLACED)},
              ("parts", "ends", "degraded", "clouds", "spurious")),
    Mechanism("MOST_FITS", "three fits are matched jointly",
              {"fit.choose:MOST_FITS": to(1)},
              ("parts", "ends", "degraded", "clouds", "spurious")),
    Mechanism("_by_places", "features do not decide handedness",
              {"fit.choose:_by_places": to(lambda model, fits, pins: fits)},
              ("whole", "mirrored", "parts", "ends", "degraded", "spurious")),
    Mechanism("CLEAR", "close handednesses fitted to end", {"fit.choose:CLEAR": to(0.0)},
              (*EACH, "spurious")),
    Mechanism("prior of handedness", "mirror images are rarer",
              {"fit.choose:AS_IS": to(0.0), "fit.evidence:MIRRORED": to(0.5),
               "fit.handedness:MIRRORED": to(0.5),
               "fit.handedness:mirror_probabilities.__defaults__": to(((0, 0), 0.5))},
              ("mirrored", *PARTIAL)),
    Mechanism("MANY: all are few", "200 nuclei change the algorithm",
              {f"fit.{room}:MANY": to(10**9) for room in ("choose", "again", "view")}),
    Mechanism("MANY: all are many", "200 nuclei change the algorithm",
              {f"fit.{room}:MANY": to(1) for room in ("choose", "again", "view")},
              ("heads", "parts", "clouds")),
    Mechanism("_likely", "rough costs leave poses out",
              {"fit.choose:_likely": to(lambda model, poses, pins: [(p, None) for p in poses])},
              (*WHOLE, "heads")),
    Mechanism("trust", "doubt about place lowers confidence",
              {"fit.evidence:trust": to(lambda _: 1.0)},
              ("ends", "heads", "embryos", "clouds", "spurious")),
    Mechanism("rivals", "other fits lower confidence",
              {"fit.evidence:rival_weights": to(
                  lambda rivals, mirrored=None: [1.0] + [0.0] * (len(rivals) - 1))},
              (*PARTIAL, "spurious")),
    Mechanism("usual rates", "poses compared at one rate",
              {"fit.place:cost_at_usual_rates": to(lambda model, fit, pins: fit.cost)},
              (*WHOLE, "heads", "spurious")),
    Mechanism("error of coordinates", "loosens the atlas per specimen",
              {"fit.place:error_of": to(lambda *_, **__: 0.0)},
              ("whole", "degraded", "embryos", "heads", "ends", "spurious", "spurious, all")),
    Mechanism("features", "scores add to costs",
              {"fit.place:feature_term": to(lambda *_: None),
               "fit.place:TERMS": lambda terms: terms[1:]},
              (*WHOLE, "heads", "parts", "spurious")),
    Mechanism("oddity", "features of spurious nuclei",
              {"fit.place:oddity_term": to(lambda *_: None),
               "fit.place:TERMS": lambda terms: terms[:1]},
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
              {"fit.place:match_jointly.__kwdefaults__": lambda given: given | {"refits": 1}},
              (*WHOLE, "heads", "parts", "spurious", "spurious, all")),
    Mechanism("second hard warp", "warp to hard matches twice",
              {"fit.place:REFITS": to(1), "fit.choose:REFITS": to(1)},
              (*WHOLE, "heads", "parts")),
    Mechanism("slow cooling", "six soft warps, not three",
              {"fit.place:WARP_COOLING": to((4.0, 2.0, 1.0)),
               "fit.place:FIRST_COOLING": to((4.0,)), "fit.choose:FIRST_COOLING": to((4.0,)),
               "fit.soft:soft_warp.__defaults__": to((None, (4.0, 2.0, 1.0), None))},
              (*WHOLE, "heads", "parts")),
    Mechanism("second round of a part", "view, warp, view again",
              {"fit.again:PART_ROUNDS": to(1)}, PARTIAL),
]  # fmt: skip

VIEW_ROWS = [
    Mechanism("unit", "one scale if both micrometres",
              {"tasks.annotate:_unposed": lambda original: lambda *given: original(
                  *given)._replace(scale=None)},
              ("parts", "ends", "heads")),
    Mechanism("prior of scale", "unusual scales are less likely",
              {"fit.view:SCALE_SPREAD": to(1e9)},
              ("parts", "heads")),
    Mechanism("tilts", "long axis tilted when thorough",
              {"fit.view:_tilts": to(lambda: [np.eye(3)])}, ("heads",)),
    Mechanism("widths of the mixture", "three widths, not the last",
              {"fit.view:WIDTHS": lambda all_: all_[-1:], "fit.view:KEPT": lambda all_: all_[:1],
               "fit.view:THOROUGH": to((72,))},
              ("parts", "heads")),
    Mechanism("half the poses kept", "effort of the search",
              {"fit.view:KEPT": to((16, 6, 2)), "fit.view:THOROUGH": to((750, 18, 6))},
              ("parts", "heads")),
    Mechanism("half the rolls", "effort of the search", {"fit.view:ROLLS": to(6)},
              ("parts", "heads")),
    Mechanism("several views", "views nearly as likely too",
              {"fit.view:DOUBT": to(0.0), "fit.view:DOUBTFUL": to(1e-9)},
              ("parts", "heads")),
    Mechanism("features in the search", "ranks of scores",
              {"fit.view:_fitted": lambda original: lambda model, unposed, scores, *rest: original(
                  model, unposed, scores[:, :0], *rest)},
              ("parts", "heads")),
    Mechanism("window of a view", "cells beyond the ends unseen",
              {"fit.view:_window": to(lambda model, _: np.ones(len(model.means), bool))},
              ("parts", "heads")),
    Mechanism("shear of views", "more than a similarity",
              {"fit.view:RIDGE": to(1e6)},
              ("parts", "heads")),
    Mechanism("STRETCH", "limit of that shear", {"fit.view:STRETCH": to(1e9)},
              ("parts", "heads")),
    Mechanism("ODD_SHAPE", "odd shapes are parts",
              {"tasks.annotate:ODD_SHAPE": to(1e9)},
              ("parts", "ends", "heads")),
]  # fmt: skip

POSE_ROWS = [
    Mechanism("straighten", "unbends long bodies",
              {"pose.straighten:straighten": to(lambda one: one)},
              ("whole", "bent")),
    Mechanism("rolls all around", "besides poses by symmetry",
              {"fit.poses:_rolled": to(_nothing)}, WHOLE),
    Mechanism("FAIR", "far poses are not compared",
              {"fit.poses:FAIR": to(1e9)}, WHOLE),
    Mechanism("least_cost", "bound leaves poses out",
              {"align.target:least_cost": to(lambda *_: -np.inf)}, WHOLE),
    Mechanism("POSES", "four given poses, not two", {"pose.stand:POSES": to(2)},
              WHOLE),
    Mechanism("symmetry plane", "roll by left and right",
              {"pose.symmetry:best_rolls": to(lambda _: [(0.0, 0.0), (np.pi / 2, 0.0)])},
              WHOLE),
    Mechanism("without_centre_line", "symmetry of curved bodies",
              {"pose.symmetry:without_centre_line": to(lambda points: points)},
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
    Mechanism("stand_together", "mirror images and parts first",
              {"find.views:stand_together": to(lambda run, frame, *_, **__: frame)},
              ("build windows",)),
    Mechanism("placed again", "parts anew in better mean",
              {"find.views:PASSES": to(1)}, ("build windows",)),
    Mechanism("SHARE", "higher bar to join",
              {"find.views:SHARE": to(0.0)}, ("build windows",)),
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

MECHANISMS = [*CANDIDATES, *FIT_ROWS, *SERIES_ROWS, *FIND_ROWS, *VIEW_ROWS, *POSE_ROWS]

UNJUDGED = {
    "ASYMMETRIC, TELLING, TELLING_LARGE": "symmetric animals: simulated ones only",
    "LARGE, _by_slab, _roughly": "more than 700 cells: simulated ones only",
}
"""Mechanisms that none of the cohorts reaches."""
