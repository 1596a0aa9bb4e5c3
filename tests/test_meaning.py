"""Features by meaning: spellings of one channel, and what is said where a channel is absent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely import EutelyError, Specimen
from eutely.features import feature_names, scores
from eutely.meaning import SYNONYMS, matched, meaning, one_spelling, told

COLOURS = st.sampled_from([name for names in SYNONYMS.values() for name in names])
DRESSES = st.sampled_from(
    ["{}", "{}_mean", "{} mean", "mean_{}", "Mean intensity ({})", "{}_median", "{}.mean", "ch {}"]
)


@given(COLOURS, DRESSES, st.booleans())
def test_every_spelling_in_every_dress_means_its_colour(name, dress, lower):
    column = dress.format(name.lower() if lower else name)
    (colour,) = [key for key, names in SYNONYMS.items() if name in names]
    found = meaning(column)
    assert found is not None
    assert found[0] == colour
    letter = SYNONYMS[colour][0]
    assert matched((letter,), [column]) == {letter: column}
    assert matched((column,), [letter]) == {column: letter}  # an atlas may be spelled otherwise


@pytest.mark.parametrize(
    "column", ["R_total", "G_sd", "B_background", "ch0", "channel1", "c2", "_"]
)
def test_columns_that_stand_for_no_channel(column):
    assert meaning(column) is None
    assert matched(("R", "G", "B"), [column]) == {}


def test_the_very_name_comes_first_then_the_mean_and_nothing_counts_twice():
    assert matched(("R",), ["R", "red", "R_mean"]) == {"R": "R"}
    assert matched(("R",), ["R_median", "R_mean", "R_sd"]) == {"R": "R_mean"}
    assert matched(("R_mean", "R_median"), ["R"]) == {"R_mean": "R"}
    assert matched(("R", "red"), ["red"]) == {"red": "red"}


@given(st.lists(st.sets(st.text("RGBrgb_mean ", max_size=8), max_size=4), max_size=4))
def test_one_spelling_keeps_every_meaning(cohort):
    kept = one_spelling(cohort)
    everything = {column for columns in cohort for column in columns}
    assert set(kept) <= everything
    for column in everything:
        about = meaning(column)
        assert column in kept or about[0] in {meaning(name)[0] for name in kept if meaning(name)}


def worm(**features):
    rng = np.random.default_rng(len(features))
    columns = {key: np.arange(12.0) % 5 * value for key, value in features.items()}
    return Specimen.from_arrays("w", rng.normal(size=(12, 3)), features=columns)


def test_scores_are_those_of_the_column_that_means_it():
    plain = scores(worm(R=2.0, G=3.0), ("G", "R"))
    same = scores(worm(red_mean=2.0, CyOFP1=3.0, R_sd=7.0), ("G", "R"))
    np.testing.assert_array_equal(plain, same)
    assert np.isnan(scores(worm(red_sd=2.0), ("R",))).all()


def test_a_cohort_of_several_spellings_has_each_feature_once():
    cohort = [worm(R=1.0), worm(red=1.0), worm(red=2.0), worm(R_mean=1.0)]
    assert feature_names(cohort) == ("red",)
    assert feature_names(cohort, "R") == ("R",)
    both = [worm(R=1.0, red=2.0), worm(R=1.0, red=1.0)]
    assert feature_names(both) == ("R", "red")


def test_what_is_said():
    assert told(("R", "G"), [["R", "G"]]) == ("", False)
    line, lacking = told(("R", "G"), [["red", "G"], ["R_mean", "G"]])
    assert (line, lacking) == ("features: R is R_mean or red", False)
    line, lacking = told(("R", "G"), [["red", "size"]])
    assert lacking
    assert line == (
        "features: R is red; the atlas has G, this specimen does not: names are less sure; is it "
        "one of size? --features-map NAME=G"
    )
    line, _ = told(("B", "G", "R"), [["one", "two", "ch3", "four", "two_sd", "five", "six"]])
    assert line.endswith(
        "are they some of one, two, ch3, four, five, ...? --features-map NAME=B,NAME=G,NAME=R"
    )
    line, _ = told(("B", "G", "R"), [["channel1_mean", "channel1_sd", "channel2_mean"]])
    assert line.endswith("--channels names the channels of the image in their order, such as R,G,B")
    assert told(("R",), [["R_total"]]).line.endswith("names are less sure")
    line, lacking = told(("R",), [["R"], []])
    assert (line, lacking) == ("features: R is absent in 1 of 2 specimens", True)


def test_renamed_features():
    specimen = worm(red=1.0, other=2.0)
    again = specimen.renamed({"red": "R", "other": "-", "absent": "x"})
    assert list(again.features) == ["R"]
    assert again.features["R"].tolist() == specimen.features["red"].tolist()
    with pytest.raises(EutelyError, match=r"two features would be called R \(R and red\)"):
        worm(R=1.0, red=2.0).renamed({"red": "R"})
    with pytest.raises(EutelyError, match="leave one out: other=-"):
        worm(red=1.0, other=2.0).renamed({"red": "R", "other": "R"})
    assert list(worm(R=1.0, red=2.0).renamed({"red": "R", "R": "-"}).features) == ["R"]
