"""Whole specimens that outnumber the parts of an atlas are matched by each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.atlas import Atlas
from eutely.execute import open_executor
from eutely.fit.evidence import PLACED
from eutely.fit.hypothesis import Prior
from eutely.fit.model import model_of_atlas
from eutely.fit.posterior import Posterior, posterior_of
from eutely.fit.refit import place_standing
from eutely.frame import Points, Posed
from eutely.series.shared import SERIES
from eutely.series.together import is_whole, matched_together, outnumber

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
def before(parts: Atlas, series: list[Points]) -> list[Posterior]:
    model = model_of_atlas(parts)
    results = []
    for points in series:
        nothing = np.full((len(points), len(parts.features)), np.nan)
        posed = Posed((points,), np.full(points.shape, np.nan), nothing)
        fit = place_standing(model, posed)
        results.append(posterior_of(model, points, [fit], Prior.of(1.0, same=1.0)))
    return results


def together(parts: Atlas, results: Sequence[Posterior], workers: int = 1) -> list[Posterior]:
    with open_executor(workers) as executor:
        return matched_together(parts, results, executor)


def right(results: Sequence[Posterior]) -> float:
    """Share of the nuclei that are their cell."""
    return float(np.mean([r.fit.nuclei == np.arange(len(r.fit.nuclei)) for r in results]))


def test_cells_that_parts_mix_up_are_settled_by_whole_specimens(
    parts: Atlas, before: list[Posterior]
) -> None:
    """Cells are split again and come in any order; they keep their numbers."""
    assert right(before) < 1.0
    after = together(parts, before)
    assert right(after) == 1.0
    for result in after:
        assert is_whole(result)
        assert result.fit.shares is not None
        assert len(result.fit.shares.starts) == len(parts) + 1
        assert result.trust.shape == (len(result.points),)


def test_what_spoke_for_the_other_handedness_is_still_known(
    parts: Atlas, before: list[Posterior]
) -> None:
    model = model_of_atlas(parts)
    first = before[0]
    image = replace(first.fit, warped=first.fit.warped * [1.0, 1.0, -1.0])
    both = posterior_of(model, first.points, [first.fit, image], first.prior)
    assert not both.mirrored
    after = together(parts, [both, *before[1:]])[0]
    assert after.hands.tolist() == [False, True]
    assert after.fits[1] is image


def test_specimens_must_be_more_than_the_atlas_is_of(parts: Atlas, before: list[Posterior]) -> None:
    assert outnumber(parts, before)
    assert not outnumber(parts, before[: SERIES - 1])
    assert not outnumber(replace(parts, model="offsets"), before)
    assert not is_whole(replace(before[0], supports=(PLACED - 0.1,)))
    view = replace(before[0].fit, view=np.arange(len(parts)) % 2 * 1.0)
    assert not is_whole(replace(before[0], fits=(view,)))


def test_a_cell_that_hardly_any_specimen_has_gets_no_nucleus(
    parts: Atlas, before: list[Posterior]
) -> None:
    rare = 7
    lacking = []
    for result in before:
        nuclei = result.fit.nuclei.copy()
        nuclei[rare] = -1
        lacking.append(replace(result, fits=(replace(result.fit, nuclei=nuclei),)))
    lacking[0] = before[0]
    for result in together(parts, lacking):
        nuclei = result.fit.nuclei
        assert nuclei[rare] == -1
        assert (np.delete(nuclei, rare) == np.delete(np.arange(len(nuclei)), rare)).mean() > 0.9


def test_the_same_with_any_number_of_workers(parts: Atlas, before: list[Posterior]) -> None:
    for one, two in zip(together(parts, before), together(parts, before, 2), strict=True):
        assert one.support == two.support
        np.testing.assert_array_equal(one.fit.nuclei, two.fit.nuclei)
        np.testing.assert_array_equal(one.fit.warped, two.fit.warped)
