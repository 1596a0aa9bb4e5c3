"""Cohorts of which one specimen, or more, is not what it seems: it is said, with its name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import eutely
from eutely.annotation import MORE_DOUBT, NOT_CLEAR, UNCLEAR
from eutely.cli import app
from eutely.io.tables import write_table
from eutely.report.words import checks
from eutely.simulation.plan import body_plan
from eutely.specimen import Specimen
from eutely.tasks.outputs import read_report
from toy_animals import QUICK

ODD = 2
"""Number of the odd specimen."""


def nearly_symmetric(asymmetry: float) -> list[Specimen]:
    """Return eight specimens, one mirrored; cells lie so many spacings off their mirror images."""
    plan = body_plan(120)
    shift = np.random.default_rng(9).standard_normal(plan.centroids.shape)
    plan = replace(plan, centroids=plan.centroids + asymmetry * plan.spacing * shift)
    cohort = eutely.simulate(8, cells=plan, seed=0)
    image = cohort[ODD].centroids * [1.0, 1.0, -1.0]
    cohort[ODD] = replace(cohort[ODD], centroids=image, axes=None)
    return cohort


def run(*words, code=0):
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


@pytest.fixture
def built(tmp_path):
    """Return what a build of a cohort says, and its folder."""

    def build(cohort: list[Specimen]):
        for one in cohort:
            write_table(one, tmp_path / "cohort" / f"{one.name}.csv")
        out = run("build", tmp_path / "cohort", "-o", tmp_path / "run", "--config", config)
        return out, tmp_path / "run"

    config = tmp_path / "quick.toml"
    config.write_text(eutely.config.to_toml(QUICK))
    return build


def test_a_specimen_that_may_be_a_mirror_image_is_named_and_less_sure(built) -> None:
    said, folder = built(nearly_symmetric(0.1))
    line = "left and right look alike in these specimens: none shows whether it is a mirror image"
    assert f"{line}; most in doubt: worm003" in " ".join(said.split())
    atlas, report = read_report(folder)
    means = [float(np.nanmean(shown.confidence)) for shown in report.specimens]
    assert means[ODD] < min(means[:ODD] + means[ODD + 1 :]) - 0.03
    assert max(means) < 1 - UNCLEAR / 2
    assert all(NOT_CLEAR in shown.note for shown in report.specimens)
    assert [MORE_DOUBT in shown.note for shown in report.specimens] == [
        number == ODD for number in range(8)
    ]
    [check] = [one for one in checks(atlas, report) if "look alike" in one.what]
    assert check.specimens == (ODD,)
    # The same command again says it again, though nothing is computed.
    assert "most in doubt: worm003" in " ".join(built(nearly_symmetric(0.1))[0].split())


def test_clear_mirror_images_are_no_doubt(built) -> None:
    said, folder = built(nearly_symmetric(0.3))
    assert "mirror images of the others: 1 of 8 specimens (worm003)" in said
    assert NOT_CLEAR not in said
    report = read_report(folder)[1]
    assert float(np.nanmean(report.specimens[ODD].confidence)) > 0.9


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_one_of_another_size_is_named(built, factor: float) -> None:
    cohort = eutely.simulate(8, cells=60, seed=1)
    odd = cohort[ODD]
    cohort[ODD] = replace(odd, centroids=factor * odd.centroids, radii=factor * odd.radii)
    said, folder = built(cohort)
    other = "nanometres" if factor > 1 else "millimetres"
    assert (
        f"worm003: size far from the cohort's: about {factor:,.6g} times the cohort's: {other}"
        in said
    )
    shown = read_report(folder)[1].specimens[ODD]
    assert (shown.cells >= 0).mean() > 0.9  # it is brought to the size of the others
    assert "worm003: size far" in run("check", folder.parent / "cohort")
