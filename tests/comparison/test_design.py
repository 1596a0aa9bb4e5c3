"""Designs: batches and covariates are respected, trends ordered, impossible questions refused."""

import numpy as np
import pytest

from eutely.comparison.design import Design, contrasts
from eutely.comparison.permutations import permutations
from eutely.comparison.scores import result_of, scores_of
from eutely.errors import EutelyError

NAMES = [f"w{k}" for k in range(12)]
LABELS = ["a"] * 6 + ["b"] * 6


def test_animals_are_exchanged_within_batches_only() -> None:
    batch = dict(zip(NAMES, ["x", "x", "x", "y", "y", "y"] * 2, strict=True))
    (contrast,) = contrasts(["a", "b"], LABELS, NAMES, Design(covariates={"day": batch}))
    exchanged = permutations(contrast, 10_000, 0)
    assert exchanged.exact
    assert len(exchanged.values) == 20 * 20
    first = np.array([batch[name] == "x" for name in NAMES])
    high = exchanged.values > 0
    assert (high[:, first].sum(axis=1) == 3).all()
    assert (high[:, ~first].sum(axis=1) == 3).all()


def test_a_batch_effect_is_no_finding() -> None:
    random = np.random.default_rng(0)
    labels, names = ["a"] * 20 + ["b"] * 20, [f"w{k}" for k in range(40)]
    day = np.array(["x"] * 15 + ["y"] * 5 + ["x"] * 5 + ["y"] * 15)
    values = random.normal(size=(40, 50, 1)) + 2.0 * (day == "y")[:, None, None]
    shares = []
    for covariates in ({}, {"day": dict(zip(names, day.tolist(), strict=True))}):
        (contrast,) = contrasts(["a", "b"], labels, names, Design(covariates=covariates))
        found = scores_of(values, np.ones((40, 50)), contrast.nuisance)
        exchanged = permutations(contrast, 500, 0)
        result = result_of(found, contrast, exchanged, pooled=True, deflate=1.0)
        shares.append((result.p <= 0.05).mean())
    assert shares[0] > 0.5
    assert shares[1] < 0.2


def test_a_number_is_regressed_out() -> None:
    random = np.random.default_rng(1)
    labels, names = ["a"] * 20 + ["b"] * 20, [f"w{k}" for k in range(40)]
    age = np.r_[random.normal(0, 1, 20), random.normal(1, 1, 20)]
    values = random.normal(size=(40, 60, 1)) + 1.5 * age[:, None, None]
    table = dict(zip(names, age.tolist(), strict=True))
    (contrast,) = contrasts(["a", "b"], labels, names, Design(covariates={"age": table}))
    found = scores_of(values, np.ones((40, 60)), contrast.nuisance)
    exchanged = permutations(contrast, 500, 0)
    assert not exchanged.exact
    result = result_of(found, contrast, exchanged, pooled=True, deflate=1.0)
    assert (result.p <= 0.05).mean() < 0.15


def test_more_groups_are_compared_with_the_first_or_as_a_trend() -> None:
    labels = ["4"] * 4 + ["8"] * 4 + ["20"] * 4
    both = contrasts(["4", "8", "20"], labels, NAMES, Design())
    assert [one.name for one in both] == ["8 against 4", "20 against 4"]
    assert [len(one.rows) for one in both] == [8, 8]
    (trend,) = contrasts(["4", "8", "20"], labels, NAMES, Design(trend=True))
    assert trend.values.tolist() == [4.0] * 4 + [8.0] * 4 + [20.0] * 4
    (ranks,) = contrasts(
        ["young", "old", "dead"],
        ["young"] * 4 + ["old"] * 4 + ["dead"] * 4,
        NAMES,
        Design(trend=True),
    )
    assert ranks.values.tolist() == [0.0] * 4 + [1.0] * 4 + [2.0] * 4


@pytest.mark.parametrize(
    ("labels", "design", "words"),
    [
        (["a"] * 10 + ["b"] * 2, Design(), "group 'b' has 2 animals"),
        (LABELS, Design(trend=True), "a trend needs three groups"),
        (LABELS, Design(covariates={"batch": dict(zip(NAMES, LABELS, strict=True))}),
         "say which group an animal is"),
        (LABELS, Design(covariates={"age": {n: float(k > 5) for k, n in enumerate(NAMES)}}),
         "say which group an animal is"),
        (LABELS, Design(covariates={"age": {"w0": 1.0}}), "w1 has no value of the covariate 'age'"),
    ],
)  # fmt: skip
def test_impossible_questions_are_one_line(labels: list[str], design: Design, words: str) -> None:
    with pytest.raises(EutelyError, match=words) as error:
        contrasts(["a", "b"], labels, NAMES, design)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bad", [{"permutations": 3}, {"seed": -1}])
def test_settings_have_bounds(bad: dict[str, int]) -> None:
    with pytest.raises(EutelyError):
        Design(**bad)
