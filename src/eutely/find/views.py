"""Cohorts of which some specimens show parts of the body: where each of them belongs.

Bringing a specimen to the usual length and width would stretch a part over the whole. So whole
specimens make a first mean, in which the view of each other specimen is searched: its place, scale
and handedness. Those that fit, and whose handedness is clear, are added to the mean. In that better
mean all are placed again, also those that were taken for whole ones, since some may lack an end;
then those that still do not fit, until no further one fits.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.errors import EutelyError
from eutely.estimate import Gaussians, independent_gaussians, robust_gaussians
from eutely.features import cell_means
from eutely.find.hands import DOUBTFUL, mirror_images, most_are, turned, with_signs
from eutely.find.refine.grow import settled
from eutely.find.refine.rounds import fit_of, linear_round, nuclei_as_cells, specimens_of
from eutely.fit.again import posed_again
from eutely.fit.choose import settle_view
from eutely.fit.evidence import ASYMMETRIC, HAND, PLACED, asymmetry, is_mirrored, support
from eutely.fit.handedness import CERTAIN, mirror_odds
from eutely.fit.model import Model, joint_model
from eutely.fit.place import match_jointly
from eutely.fit.view import MANY, Unposed
from eutely.frame import Body, Frame, Points, Posed
from eutely.geometry import spacing
from eutely.steps import Context, Run, step

log = logging.getLogger("eutely")

DECILE, COMPLETE, NEARLY = 0.9, 0.85, 0.99
"""Shares of the nuclei of the most complete specimens (their ninth decile) below which a specimen
may show a part, and below which all are looked at where some do. Missing and spurious nuclei make
counts differ by less."""

ODD_SHAPE = 0.3
"""Logarithm of a ratio of lengths from which a specimen hardly shows the whole body."""

FOUNDERS, FEWEST_FOUNDERS = 12, 3
"""Specimens, those with most nuclei, that make the first mean; and those from which it may show
handedness."""

ROUNDS = 2
"""Rounds in which a mean is found."""

PASSES = 3
"""Times that specimens which did not fit are tried again, in a mean that has grown."""

SHARE = 0.15
"""Share of the support of the first specimens by which others must do better than `PLACED`: those
that show another part of the body fit the mean nowhere, and by chance a little."""

HANGING = 0.5
"""Share of the specimens, and more, that must fit together."""


class View(NamedTuple):
    """Where a specimen fits.

    Attributes
    ----------
    posed
        (n, 3), its nuclei there.
    support
        see `eutely.fit.evidence.support`.
    mirrored, part
        whether it is a mirror image, and whether it shows a part of the body.
    evidence
        log-likelihood by which each of the means so far prefers the mirror image.
    odds
        log-odds that it is a mirror image, by all means and all specimens imaged alike.
    """

    posed: Points
    support: float
    mirrored: bool
    part: bool
    evidence: tuple[float, ...] = ()
    odds: float = 0.0

    @property
    def clear(self) -> bool:
        """Whether its handedness is clear; also where it cannot be compared."""
        enough = DOUBTFUL * np.sqrt(len(self.posed))
        return not self.evidence or bool(abs(self.odds) >= HAND * enough)


def stand_together(run: Run, frame: Frame, sizes: NDArray[np.float64], *, known: bool) -> Frame:
    """Return the frame with mirror images undone, and parts of the body at their places.

    Parameters
    ----------
    run
        settings, executor and store.
    frame
        all specimens, brought to the same length and width.
    sizes
        (N, 2), length and width of each specimen as it is.
    known
        whether the unit of all specimens is known, so that they have one scale.
    """
    parts = possible_parts(frame, sizes, known=known)
    if not parts.any():
        return run(one_handed, frame)
    return run(in_their_places, frame, sizes, parts, known)


@step("estimate")
def one_handed(context: Context, frame: Frame) -> Frame:
    """Return the frame with the mirror images of most specimens mirrored; else as it is."""
    mirrored = mirror_images(frame, context.settings.estimate, context.executor)
    return with_signs(frame, mirrored != most_are(mirrored))


def possible_parts(frame: Frame, sizes: NDArray[np.float64], *, known: bool) -> NDArray[np.bool_]:
    """Return (N,), the specimens that may show a part of the body, by counts and extents."""
    counts = np.array([len(posed) for posed in frame.specimens])
    most = np.quantile(counts, DECILE)
    complete = counts >= COMPLETE * most
    length, width = np.log(sizes / np.median(sizes[complete], axis=0)).T
    apart = np.abs(length - width)
    if known:
        apart = np.maximum(apart, np.maximum(np.abs(length), np.abs(width)))
    parts = ~complete | (apart >= ODD_SHAPE)
    if parts.any():
        parts |= counts < NEARLY * most
        parts[np.argmax(counts)] &= not parts.all()  # the most complete one to start from
    return np.asarray(parts)


@step("refine.common", "refine.rare", "estimate")
def in_their_places(
    context: Context,
    frame: Frame,
    sizes: NDArray[np.float64],
    parts: NDArray[np.bool_],
    known: bool,
) -> Frame:
    """Place the specimens that may be ``parts`` (N,) in the mean of the others."""
    frame = _resized(frame, sizes, ~parts)
    placed, tried = np.flatnonzero(~parts).tolist(), np.flatnonzero(parts).tolist()
    mirrored = np.zeros(len(frame), bool)
    settings = context.settings.estimate
    mirrored[placed] = mirror_images(frame.subset(placed), settings, context.executor)
    before = frame = with_signs(frame, mirrored)
    most = sorted(placed, key=lambda one: -len(frame.specimens[one]))
    first = frame.specimens[most[0]]
    start = nuclei_as_cells(first.poses[0], frame.body.spacing), np.nan_to_num(first.scores)
    least = PLACED
    seen: dict[int, View] = {}
    for number in range(PASSES):
        founders = sorted(placed if number else most[:FOUNDERS])
        cells, model = _mean(frame.subset(founders), start, context)
        start = Gaussians(model.means, model.centres.covariances), model.features
        shows = len(founders) >= FEWEST_FOUNDERS and asymmetry(model, cells.seen()) >= ASYMMETRIC
        hands: tuple[bool, ...] = (False, True) if shows else (False,)
        if number == 0 and len(founders) > 1:
            least += SHARE * max(_usual_support(model, cells), 0.0)
        considered = {one: hands if parts[one] else hands[:1] for one in tried}
        seen = _searched(context, model, before, (considered, known), seen)
        # Those of clear handedness come first: the others are judged by a better mean.
        fitting = [one for one in tried if seen[one].support > least]
        fits = {one: seen[one] for one in fitting if number or seen[one].clear}
        frame = _with_views(before, frame, fits)
        joined = set(fitting) - set(placed)
        placed = sorted({*placed, *fits})
        log.info("%d of %d specimens fit each other", len(placed), len(frame))
        if number:  # all are placed again in the mean of all, then what is in doubt
            tried = [one for one in tried if one not in fits or not seen[one].clear]
        elif joined:
            tried += [one for one in most if len(frame.specimens[one]) >= MANY]
        if not tried or not joined:
            break
    _check_hanging(len(frame) - len(placed), len(frame))
    return _as_most(frame)


def _check_hanging(left: int, total: int) -> None:
    """Warn of specimens that fit nowhere; raise an error if these are most."""
    if left >= (1 - HANGING) * total:
        raise EutelyError(
            f"the specimens do not hang together: {left} of {total} do not fit the others; a "
            "cohort of partial specimens needs some that show most of the body"
        )
    if left:
        log.warning("%d of %d specimens fit nowhere in the others", left, total)


def _as_most(frame: Frame) -> Frame:
    """Return the frame, all of it mirrored if most specimens were mirrored."""
    mirrored = np.array([posed.mirrored for posed in frame.specimens])
    return with_signs(frame, np.full(len(frame), most_are(mirrored)))


def _resized(frame: Frame, sizes: NDArray[np.float64], whole: NDArray[np.bool_]) -> Frame:
    """Return the frame of the size and spacing of whole specimens."""
    size = np.median(sizes[whole], axis=0)
    factors = (size / frame.body.size)[[0, 1, 1]]
    if all(posed.stretch == (1.0, 1.0) for posed in frame.specimens):  # each has its own size
        factors = np.ones(3)
    specimens = tuple(
        replace(
            posed,
            poses=tuple(points * factors for points in posed.poses),
            radii=posed.radii * float(np.cbrt(factors.prod())),
            stretch=(posed.stretch[0] * float(factors[0]), posed.stretch[1] * float(factors[1])),
        )
        for posed in frame.specimens
    )
    inside = [posed.poses[0] for posed, one in zip(specimens, whole, strict=True) if one]
    distance = float(np.median([spacing(points) for points in inside]))
    return replace(frame, specimens=specimens, body=Body(size, distance, frame.body.smooth))


def _mean(
    frame: Frame, start: tuple[Gaussians, NDArray[np.float64]], context: Context
) -> tuple[Cells, Model]:
    """Return the cells of some specimens: those to start from, and what others add to them.

    ``start`` are Gaussians of places and mean scores (m, d), from which a single specimen has all.
    """
    settings: Estimate = context.settings.estimate
    posed = tuple(specimen.poses[0] for specimen in frame.specimens)
    cells = Cells(posed, posed, (), frame.scores, frame.body, frame.parts)
    means, scores = start
    if len(frame) == 1:
        cells = cells.with_nuclei(np.arange(len(posed[0]), dtype=np.int32)[None])
    for _ in range(ROUNDS if len(frame) > 1 else 0):
        cells = linear_round(cells, frame.specimens, (means, scores), settings, context.executor)
        cells = settled(cells, context.settings.refine, settings)
        means, scores = robust_gaussians(cells.places(), settings), cell_means(cells.cell_scores())
    model = joint_model(independent_gaussians(means), cells, settings, cells.often(), scores)
    return cells, model._replace(complete=True)


def _usual_support(model: Model, cells: Cells) -> float:
    """Return the median support of the specimens that a mean was found from."""
    fits = (match_jointly(model, fit_of(model, row), refits=1) for row in specimens_of(cells))
    return float(np.median([support(model, fit, fit.posed) for fit in fits]))


def _searched(
    context: Context,
    model: Model,
    frame: Frame,
    search: tuple[dict[int, tuple[bool, ...]], bool],
    seen: dict[int, View],
) -> dict[int, View]:
    """Return the views of specimens, with those that are tried again replaced.

    The handedness of a specimen is that which all means so far prefer, and others imaged alike: a
    single mean may prefer either by chance.

    Parameters
    ----------
    context, model
        where to run, and the present mean.
    frame
        all specimens as they were before.
    search
        specimens to try -> handednesses to consider; and whether the unit is known.
    seen
        the views so far.
    """
    tried, known = search
    items = [
        (frame.specimens[one], hands, known, seen[one].evidence if one in seen else ())
        for one, hands in tried.items()
    ]
    found = context.executor.map(_viewed, items, shared=(model,))
    seen = seen | dict(zip(tried, found, strict=True))
    odds = {
        one: HAND * float(np.mean(view.evidence)) for one, view in seen.items() if view.evidence
    }
    for group in frame.imaged_alike():
        # Whole specimens have been compared with each other.
        own = [
            odds.get(one, CERTAIN if frame.specimens[one].mirrored else -CERTAIN) for one in group
        ]
        settled = zip(group, mirror_odds(np.array(own)).tolist(), strict=True)
        odds |= {one: value for one, value in settled if one in odds}
    seen |= {one: seen[one]._replace(odds=value) for one, value in odds.items()}
    open_ones = [one for one, hands in tried.items() if len(hands) > 1 and one in odds]
    other = [one for one in open_ones if seen[one].mirrored != (odds[one] > 0)]
    items = [(frame.specimens[one], (odds[one] > 0,), known, seen[one].evidence) for one in other]
    turned_over = context.executor.map(_viewed, items, shared=(model,))
    for one, view in zip(other, turned_over, strict=True):
        seen[one] = view._replace(odds=odds[one])
    return seen


def _viewed(model: Model, item: tuple[Posed, tuple[bool, ...], bool, tuple[float, ...]]) -> View:
    """Search the view of one specimen, and add to the ``evidence`` about its handedness."""
    specimen, hands, known, evidence = item
    points = specimen.unstretched()
    length, width = np.log(specimen.stretch).tolist()
    apart = [length - width, length, width] if known else [length - width]
    whole = max(map(abs, apart)) < ODD_SHAPE
    unposed = Unposed(points, 1.0 if known else None, whole, hands)
    fit = settle_view(model, specimen, unposed)
    if fit.mirror is not None:
        evidence = (*evidence, fit.mirror)
    mirrored = is_mirrored(points, fit.posed)
    placed = support(model, fit, points)
    if fit.view is not None and len(points) >= MANY:
        fit, _ = posed_again(model, match_jointly(model, fit, refits=1), points)
    return View(fit.posed, placed, mirrored, fit.view is not None, evidence)


def _with_views(before: Frame, frame: Frame, views: dict[int, View]) -> Frame:
    """Return the frame with specimens in their views, which are maps of those ``before``."""
    specimens = list(frame.specimens)
    for number, view in views.items():
        specimen = before.specimens[number]
        points = specimen.unstretched()
        if not view.part:
            specimens[number] = turned(specimen) if view.mirrored else specimen
            continue
        design = np.column_stack([points, np.ones(len(points))])
        matrix = np.linalg.lstsq(design, view.posed, rcond=None)[0][:3]
        growth = abs(np.linalg.det(matrix)) / (specimen.stretch[0] * specimen.stretch[1] ** 2)
        specimens[number] = replace(
            specimen,
            poses=(view.posed,),
            radii=specimen.radii * float(np.cbrt(growth)),
            stretch=(1.0, 1.0),
            mirrored=specimen.mirrored != view.mirrored,
            part=True,
        )
    return replace(frame, specimens=tuple(specimens))
