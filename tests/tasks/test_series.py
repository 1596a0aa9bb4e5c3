"""Whole specimens that outnumber the parts of an atlas are matched by each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.atlas import Atlas
from eutely.execute import open_executor
from eutely.fit.evidence import PLACED, support
from eutely.fit.model import model_of_atlas
from eutely.frame import Points, Posed
from eutely.specimen import Specimen
from eutely.tasks import annotate
from eutely.tasks.annotate import Task, fit_specimen
from eutely.tasks.series import (
    SERIES,
    Result,
    _numbers,
    _renumbered,
    is_whole,
    matched_together,
    outnumber,
)

COUNT = 20
"""Specimens of the series."""


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    cohort = eutely.simulate(specimens=6, cells=60, variation=0.5)
    return eutely.build(cohort, supervised=True, workers=1).atlas


def tip(atlas: Atlas) -> tuple[int, int]:
    """The cells of the front that the atlas confuses."""
    second, first = np.argsort(atlas.means[:, 0])[-2:].tolist()
    return first, second


@pytest.fixture(scope="module")
def series(atlas: Atlas) -> list[Points]:
    """Specimens whose nuclei are in the order of the cells.

    Of the two front cells one lies behind the other, and on either side:

        left     .  2  .  .      .  .  1  .
        right    .  .  1  .  or  .  2  .  .  (the front is to the right)
    """
    random = np.random.default_rng(0)
    wide = np.sqrt(np.median(atlas.covariances, axis=0).diagonal())
    first, second = tip(atlas)
    specimens = []
    for _ in range(COUNT):
        centres = atlas.means.copy()
        apart = np.array([3.3, 0.0, 0.3 if random.uniform() < 0.6 else -0.3])
        centres[[first, second]] = atlas.means[first] + apart, atlas.means[first] - apart
        specimens.append(centres + random.normal(0, 0.5, centres.shape) * wide)
    return specimens


@pytest.fixture(scope="module")
def parts(atlas: Atlas) -> Atlas:
    """An atlas of parts, few of which show the front: it splits the two cells there by side."""
    first, second = tip(atlas)
    means = atlas.means.copy()
    apart = np.array([0.65, 0.0, 0.3])
    means[[first, second]] = atlas.means[first] + apart, atlas.means[first] - apart
    return replace(atlas, means=means, shown=np.full(len(atlas), 6.0))


@pytest.fixture(scope="module")
def before(parts: Atlas, series: list[Points]) -> list[Result]:
    model = model_of_atlas(parts)
    results = []
    for points in series:
        nothing = np.full((len(points), len(parts.features)), np.nan)
        posed = Posed((points,), np.full(points.shape, np.nan), nothing)
        fit = fit_specimen(parts, model, posed)
        results.append(Result(posed, points, fit, support(model, fit, points)))
    return results


def together(parts: Atlas, results: Sequence[Result], workers: int = 1) -> list[Result]:
    with open_executor(workers) as executor:
        return matched_together(parts, results, executor)


def right(results: Sequence[Result]) -> float:
    """Share of the nuclei that are their cell."""
    return float(np.mean([r.fit.nuclei == np.arange(len(r.fit.nuclei)) for r in results]))


def fitted(
    parts: Atlas,
    results: Sequence[Result],
    *,
    pinned: Sequence[int] = (),
    alike: Sequence[int] = (),
) -> list[Result]:
    """Results after `_fit_together`, where some specimens have pins."""
    nowhere = np.full(len(parts), -1, np.int32)
    bare = Specimen.from_arrays("bare", parts.means)
    tasks = [Task(bare, nowhere if number in pinned else None) for number in range(len(results))]
    after = list(results)
    with open_executor(1) as executor:
        annotate._fit_together(parts, tasks, after, range(len(after)), set(alike), executor)
    return after


def test_cells_that_parts_mix_up_are_settled_by_whole_specimens(
    parts: Atlas, before: list[Result]
) -> None:
    assert right(before) < 1.0
    after = fitted(parts, before)
    assert right(after) == 1.0
    for result in after:
        assert is_whole(result)
        assert result.fit.shares is not None
        assert len(result.fit.shares.starts) == len(parts) + 1


def test_pins_and_atlases_of_whole_specimens_stay(parts: Atlas, before: list[Result]) -> None:
    after = fitted(parts, before, pinned=[2])
    assert after[2] is before[2]
    assert after[3] is not before[3]
    whole = replace(parts, shown=np.zeros(0))
    for untouched in (whole, replace(parts, specimens=COUNT)):
        after = fitted(untouched, before)
        assert all(a is b for a, b in zip(before, after, strict=True))


def test_specimens_must_be_more_than_the_atlas_is_of(parts: Atlas, before: list[Result]) -> None:
    assert outnumber(parts, before)
    assert not outnumber(parts, before[: SERIES - 1])
    assert not outnumber(replace(parts, model="offsets"), before)
    assert not is_whole(before[0]._replace(support=PLACED - 0.1))
    view = replace(before[0].fit, view=np.ones(len(parts)))
    assert not is_whole(before[0]._replace(fit=view))


def test_specimens_that_are_not_likelier_keep_their_fits(
    parts: Atlas, before: list[Result]
) -> None:
    sure = [result._replace(support=100.0) for result in before]
    after = fitted(parts, sure, alike=range(COUNT))  # most of the series
    assert all(a is b for a, b in zip(sure, after, strict=True))
    after = fitted(parts, [*sure[:2], *before[2:]], alike=[1])
    assert after[0] is sure[0]
    assert after[1] is not sure[1]
    assert after[2] is not before[2]


def test_a_cell_that_hardly_any_specimen_has_gets_no_nucleus(
    parts: Atlas, before: list[Result]
) -> None:
    rare = 7
    lacking = []
    for result in before:
        nuclei = result.fit.nuclei.copy()
        nuclei[rare] = -1
        lacking.append(result._replace(fit=replace(result.fit, nuclei=nuclei)))
    lacking[0] = before[0]
    for result in together(parts, lacking):
        nuclei = result.fit.nuclei
        assert nuclei[rare] == -1
        assert (np.delete(nuclei, rare) == np.delete(np.arange(len(nuclei)), rare)).mean() > 0.9


def test_cells_keep_their_numbers_in_whichever_order_they_come(
    parts: Atlas, before: list[Result]
) -> None:
    fits = [result.fit for result in before]
    every = np.arange(len(parts))
    order = np.random.default_rng(1).permutation(len(parts))
    mixed = [_renumbered(fit, order, parts.means) for fit in fits]
    numbers = _numbers(fits, mixed, every)
    for fit, other in zip(fits, mixed, strict=True):
        back = _renumbered(other, numbers, parts.means)
        np.testing.assert_array_equal(back.nuclei, fit.nuclei)
        np.testing.assert_array_equal(back.expected, fit.expected)
        assert back.shares is not None
        assert fit.shares is not None
        for values, same in zip(back.shares, fit.shares, strict=True):
            np.testing.assert_array_equal(values, same)


def test_the_same_with_any_number_of_workers(parts: Atlas, before: list[Result]) -> None:
    for one, two in zip(together(parts, before), together(parts, before, 2), strict=True):
        assert one.support == two.support
        np.testing.assert_array_equal(one.fit.nuclei, two.fit.nuclei)
        np.testing.assert_array_equal(one.fit.warped, two.fit.warped)
