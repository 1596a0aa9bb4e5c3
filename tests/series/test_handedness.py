"""Specimens that were imaged alike settle their handedness together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eutely.fit.evidence import PLACED, Weighed
from eutely.fit.hypothesis import MIRRORED, Prior
from eutely.fit.match import Fit
from eutely.fit.posterior import Posterior
from eutely.fit.rates import Rates
from eutely.series.shared import CLEAR, EXCHANGED, settle_hands

POINTS = np.concatenate([np.zeros((1, 3)), np.eye(3)])


def specimen(odds: float, support: float = 2.0) -> Posterior:
    """Return a specimen with a fit of each handedness, and the log-odds that it is mirrored."""
    weighed = []
    for sign, log in ((1.0, 0.0), (-1.0, odds)):
        warped, nuclei = POINTS * [1.0, 1.0, sign], np.arange(4, dtype=np.int32)
        fit = Fit(POINTS, warped, np.zeros((4, 0)), nuclei, 0.0, Rates(0.1, 0.1))
        weighed.append(Weighed(fit, log, support))
    trusts = (np.ones(4), np.ones(4))
    return Posterior(POINTS, Prior.of(1.0, same=1.0), tuple(weighed), trusts)


def one_handed(*, mirrored: bool) -> Posterior:
    both = specimen(0.0)
    at = int(mirrored)
    return replace(
        both,
        weighed=(both.weighed[at]._replace(support=2.0),),
        trusts=both.trusts[:1],
    )


def settled(*specimens: Posterior, known: tuple[int, int] = (0, 0)) -> list[Posterior]:
    results = list(specimens)
    settle_hands(results, range(len(results)), known)
    return results


def test_a_series_turns_specimens_whose_other_handedness_it_shows() -> None:
    doubtful = specimen(-0.5)
    assert not settled(doubtful)[0].mirrored
    *_, turned = settled(specimen(3.0), specimen(2.0), doubtful)
    assert turned.mirrored
    assert turned.fit is doubtful.weighed[1].fit
    assert settled(doubtful, known=(0, 9))[0].mirrored


def test_only_the_specimens_of_the_series_are_settled() -> None:
    results = [specimen(-0.5), specimen(3.0), specimen(2.0)]
    before = list(results)
    settle_hands(results, [1, 2], (0, 0))
    assert results[0] is before[0]
    assert results[1].mirrored


def test_what_is_not_placed_does_not_witness_the_handedness() -> None:
    doubtful = specimen(-0.5)
    lost = specimen(15.0, support=PLACED - 0.1)
    assert not settled(lost, doubtful)[1].mirrored
    np.testing.assert_allclose(settled(lost)[0].mirrored_by, MIRRORED, rtol=1e-3)
    alone, beside = settled(doubtful)[0], settled(lost, doubtful)[1]
    np.testing.assert_allclose(beside.mirrored_by, alone.mirrored_by, rtol=1e-6)


def test_a_specimen_of_one_handedness_has_it_for_sure_and_witnesses_it() -> None:
    doubtful = specimen(-0.5)
    certain, other = settled(one_handed(mirrored=True), doubtful)
    assert certain.mirrored
    assert certain.weights.tolist() == [1.0]
    assert other.mirrored
    certain, other = settled(one_handed(mirrored=False), specimen(0.7))
    assert not certain.mirrored
    assert not other.mirrored


def test_names_may_contradict_a_handedness_unless_it_is_clear() -> None:
    def doubt(odds: float) -> float:
        return settled(specimen(odds))[0].mirrored_by

    assert doubt(-0.9 * CLEAR) == EXCHANGED
    assert doubt(0.9 * CLEAR) == 1 - EXCHANGED
    assert doubt(-1.2 * CLEAR) < 1e-3
    assert doubt(1.2 * CLEAR) > 1 - 1e-3
