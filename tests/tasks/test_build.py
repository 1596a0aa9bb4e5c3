"""The whole build on small simulated cohorts: what reaches the atlas, and what must not."""

from __future__ import annotations

import csv
import errno
import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eutely
from eutely.config import Config, resolve
from eutely.errors import AtlasError, EutelyError, WriteError
from eutely.io.atlas import read_atlas
from eutely.simulation import body_plan
from eutely.specimen import UNKNOWN, Specimen
from eutely.tasks.build import Built
from toy_animals import window

CELLS = 60
SETTINGS: Config = resolve(
    overrides={"refine.linear_rounds": 2, "refine.joint_rounds": 2, "refine.folds": 2}
)


def cohort(count: int = 8, seed: int = 0, **errors: float) -> list[Specimen]:
    return eutely.simulate(specimens=count, cells=CELLS, seed=seed, variation=0.5, **errors)


def shuffled(specimen: Specimen, seed: int) -> Specimen:
    """Other rows, other ids, no names: nothing that an atlas may depend on."""
    order = np.random.default_rng(seed).permutation(len(specimen))
    mixed = specimen.take(order).without_names()
    return replace(mixed, ids=np.arange(len(mixed))[::-1] + 1000)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build") / "run"


@pytest.fixture(scope="module")
def built(run: Path) -> Built:
    return eutely.build(cohort(), run, config=SETTINGS, workers=1)


def test_an_atlas_without_names_names_the_next_specimens(built: Built) -> None:
    assert not any(built.atlas.names)
    named = eutely.name(built.atlas, cohort()[:4], workers=1)
    result = eutely.evaluate(named, cohort(3, seed=5), workers=1)
    assert result.mean > 0.9


def test_the_folder_holds_the_results(built: Built, run: Path) -> None:
    stored = read_atlas(run / "atlas.h5")
    np.testing.assert_array_equal(stored.means, built.atlas.means)
    with (run / "cliques.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(map(len, built.specimens))
    first = {int(row["id"]): row["cell"] for row in rows if row["specimen"] == "worm001"}
    for id_, cell in zip(built.specimens[0].ids.tolist(), built.cells[0].tolist(), strict=True):
        assert first[id_] == ("" if cell < 0 else str(cell))
    assert json.loads((run / "parameters.json").read_text())["cells"] == len(built.atlas)
    assert "[refine]" in (run / "config.toml").read_text()


def test_names_rows_and_ids_do_not_reach_the_atlas(run: Path, built: Built, tmp_path: Path) -> None:
    mixed = [shuffled(one, seed) for seed, one in enumerate(cohort())][::-1]
    eutely.build(mixed, tmp_path / "run", config=SETTINGS, workers=2)
    assert (tmp_path / "run" / "atlas.h5").read_bytes() == (run / "atlas.h5").read_bytes()


def test_building_again_computes_nothing(
    built: Built, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = (run / "atlas.h5").read_bytes()
    with caplog.at_level(logging.INFO, "eutely"):
        eutely.build(cohort(), run, config=SETTINGS, workers=1)
    done = [line for line in caplog.messages if line.startswith("step")]
    assert done
    assert all("done before" in line for line in done)
    assert (run / "atlas.h5").read_bytes() == before


def test_a_damaged_result_is_computed_again(built: Built, run: Path) -> None:
    before = (run / "atlas.h5").read_bytes()
    stage = next((run / "stages").glob("last-round-*.npz"))
    stage.write_bytes(stage.read_bytes()[:-100])
    eutely.build(cohort(), run, config=SETTINGS, workers=1)
    assert (run / "atlas.h5").read_bytes() == before


def test_times_that_are_not_known_do_no_harm(built: Built, run: Path) -> None:
    """A build that was killed between a result and its time goes on all the same."""
    before = (run / "atlas.h5").read_bytes()
    (run / "timings.jsonl").unlink()
    (run / "report.html").unlink()
    eutely.build(cohort(), run, config=SETTINGS, workers=1)
    assert (run / "atlas.h5").read_bytes() == before
    assert (run / "report.html").exists()


def test_a_full_disk_costs_nothing_but_time(
    run: Path, built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 8

    def replace_or_fail(source: Path, goal: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.rename(source, goal)

    with monkeypatch.context() as patched:
        patched.setattr("eutely.io.whole.os.replace", replace_or_fail)
        with pytest.raises(WriteError, match="No space left on device"):
            eutely.build(cohort(), tmp_path / "run", config=SETTINGS, workers=1)
    assert not (tmp_path / "run" / "atlas.h5").exists()
    kept = {path.name for path in (tmp_path / "run" / "stages").iterdir()}
    assert kept
    eutely.build(cohort(), tmp_path / "run", config=SETTINGS, workers=1)
    assert kept < {path.name for path in (tmp_path / "run" / "stages").iterdir()}
    assert (tmp_path / "run" / "atlas.h5").read_bytes() == (run / "atlas.h5").read_bytes()


def test_ctrl_c_keeps_what_is_finished(run: Path, built: Built, tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int, note: str) -> None:
        if what == "finding cells" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        eutely.build(cohort(), tmp_path / "run", config=SETTINGS, workers=1, progress=stop)
    kept = {path.name.rpartition("-")[0] for path in (tmp_path / "run" / "stages").iterdir()}
    assert {"poses", "targets", "first-target"} <= kept
    eutely.build(cohort(), tmp_path / "run", config=SETTINGS, workers=1)
    assert (tmp_path / "run" / "atlas.h5").read_bytes() == (run / "atlas.h5").read_bytes()


def test_names_become_the_cells_of_a_supervised_atlas(tmp_path: Path) -> None:
    train = cohort(6)
    built = eutely.build(train, config=SETTINGS, supervised=True, workers=1)
    assert sorted(built.atlas.names) == sorted(train[0].names or ())
    assert eutely.evaluate(built.atlas, cohort(3, seed=5), workers=1).mean > 0.9
    with pytest.raises(EutelyError, match="column 'name'"):
        eutely.build([one.without_names() for one in train], supervised=True, workers=1)


def test_a_named_part_of_the_body_is_no_stranger() -> None:
    """Names do not say that a specimen shows a part; how its nuclei lie does."""
    whole = eutely.simulate(specimens=9, cells=150, variation=0.5, pose="none")
    parts = [window(one, 0.0, 0.45) for one in whole[:3]]
    built = eutely.build([*parts, *whole[3:]], supervised=True, workers=1)
    assert not built.outliers
    assert all(fit.placed is not None and fit.placed > 0.8 for fit in built.fits)


def test_a_stranger_is_flagged_and_not_fatal(caplog: pytest.LogCaptureFixture) -> None:
    other = eutely.simulate(specimens=1, cells=body_plan(CELLS, seed=17), seed=3)[0]
    built = eutely.build([*cohort(), replace(other, name="stranger")], config=SETTINGS, workers=1)
    assert list(built.outliers) == ["stranger"]
    assert any("stranger" in line and "another organism" in line for line in caplog.messages)


def test_random_points_among_good_specimens_are_flagged() -> None:
    good = cohort(11)
    box = good[0].centroids
    random = np.random.default_rng(1)
    points = random.uniform(box.min(axis=0), box.max(axis=0), (36, 3))
    bad = Specimen.from_arrays("points", points, unit=good[0].unit)
    built = eutely.build([*good, bad], config=SETTINGS, workers=1)
    assert list(built.outliers) == ["points"]
    supports = np.array([fit.support for fit in built.fits])
    assert supports.argmin() == 0
    assert np.sort(supports)[1] > 2
    assert np.nanmean(built.fits[0].confidence) < 0.1


def test_nuclei_at_one_place_in_any_order(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    plain = [replace(one, features={"colour": random.random(len(one))}) for one in cohort(5)]
    pairs = np.array([[3, 3, 3], [9, 9, 9], [20, 20, 20]])
    for case in ("alike", "unlike"):
        together = []
        for one in plain:
            rows = np.concatenate([np.arange(len(one)), pairs[:, :2].ravel()])
            twice = replace(one.take(np.arange(len(one))), ids=np.arange(len(one)))
            radii, colour = one.radii[rows], one.features["colour"][rows]
            if case == "unlike":
                radii, colour = radii * random.uniform(0.9, 1.1, (len(rows), 1)), colour + rows
            together.append(
                replace(
                    twice,
                    ids=np.arange(len(rows)),
                    centroids=one.centroids[rows],
                    radii=radii,
                    axes=None,
                    features={"colour": colour},
                    names=None,
                )
            )
        mixed = [one.take(random.permutation(len(one))) for one in together]
        eutely.build(together, tmp_path / case, config=SETTINGS, workers=1)
        eutely.build(mixed, tmp_path / f"{case} mixed", config=SETTINGS, workers=1)
        for name in ("atlas.h5", "cliques.csv"):
            first, second = (tmp_path / run / name for run in (case, f"{case} mixed"))
            assert first.read_bytes() == second.read_bytes(), (case, name)


def test_specimens_of_very_different_counts(caplog: pytest.LogCaptureFixture) -> None:
    few = cohort(10)[9].take(np.arange(0, CELLS, 3))
    built = eutely.build([*cohort(), few], config=SETTINGS, workers=1)
    assert len(built.cells[-1]) == len(few)
    named = eutely.name(built.atlas, cohort()[:4], workers=1)
    assert eutely.evaluate(named, cohort(3, seed=5), workers=1).mean > 0.85


LEARN: Config = resolve(
    preset="paper-plus",
    overrides={
        "learn.specimens": 4,
        "learn.trials_linear": 3,
        "learn.trials_sparsity": 3,
        "learn.trials_offsets": 2,
        "realign.iterations": 2,
        "refine.folds": 2,
        "atlas.model": "offsets",
    },
)


def test_the_method_of_the_paper(tmp_path: Path) -> None:
    train = cohort(6)
    built = eutely.build(train, tmp_path / "run", config=LEARN, workers=2)
    assert built.atlas.model == "offsets"
    assert built.learned is not None
    stages = [trial.stage for trial in built.learned.trials]
    assert stages == ["linear"] * 3 + ["sparsity"] * 3 + ["offsets"] * 2
    named = eutely.name(built.atlas, train[:3], workers=1)
    assert eutely.evaluate(named, cohort(3, seed=5), workers=1).mean > 0.9
    stored = json.loads((tmp_path / "run" / "parameters.json").read_text())
    assert stored["learned"]["k_min"] == built.learned.parameters.k_min
    # A killed run goes on after its last trial, to the same bytes.
    before = (tmp_path / "run" / "atlas.h5").read_bytes()
    for name in ("costs", "realigned", "matched", "synchronised"):
        next((tmp_path / "run" / "stages").glob(f"{name}-*.npz")).unlink()
    journal = next((tmp_path / "run" / "stages").glob("costs-*.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:7])
    mixed = [shuffled(one, seed) for seed, one in enumerate(train)]
    eutely.build(mixed, tmp_path / "run", config=LEARN, workers=1)
    assert (tmp_path / "run" / "atlas.h5").read_bytes() == before
    assert len(journal.read_bytes().splitlines()) == len(lines) == 8


@pytest.mark.parametrize(
    ("specimens", "words"),
    [
        ([], "at least 2"),
        (cohort(1), "at least 2"),
        ([cohort(1)[0], cohort(1)[0]], "two specimens are called worm001"),
        ([cohort(2)[0], replace(cohort(2)[1], unit="voxel")], "mixed units"),
    ],
)
def test_cohorts_that_cannot_be_built(specimens: list[Specimen], words: str) -> None:
    with pytest.raises(EutelyError, match=words):
        eutely.build(specimens, workers=1)


def test_naming_needs_names(built: Built) -> None:
    with pytest.raises(EutelyError, match="naming needs"):
        eutely.name(built.atlas, [cohort(1)[0].without_names()], workers=1)


def test_pins_and_names_as_cells_exclude_each_other() -> None:
    with pytest.raises(EutelyError, match="leave the pins out"):
        eutely.build(cohort(3), supervised=True, pins={("worm001", 1): "A"}, workers=1)


def test_an_unnamed_atlas_cannot_be_evaluated(built: Built) -> None:
    with pytest.raises(AtlasError, match="eutely name"):
        eutely.evaluate(built.atlas, cohort(1), workers=1)


@pytest.mark.parametrize("key", ["warp", "scale"])
def test_specimens_may_be_aligned_by_less(key: str) -> None:
    settings = resolve(overrides={f"realign.{key}": False, "refine.folds": 2, "refine.targets": 1})
    found = eutely.build(cohort(6), config=settings, workers=1)
    assert not getattr(found.atlas, key)
    [new] = cohort(1, seed=7)
    named = eutely.name(found.atlas, cohort(6)[:3], workers=1)
    assert eutely.evaluate(named, [new], workers=1).mean > 0.85
    # Of no declared unit, it may be twice as large.
    large = replace(new.mapped(2 * np.eye(3), np.zeros(3)), unit=UNKNOWN)
    [placed] = eutely.annotate(found.atlas, [large], workers=1)
    assert np.ptp(placed.places[:, 0]) / np.ptp(found.atlas.means[:, 0]) < 1.2


def test_a_specimen_that_fits_nowhere_is_named(caplog: pytest.LogCaptureFixture) -> None:
    specimens = eutely.simulate(8, cells=60, seed=1)
    random, extent = np.random.default_rng(0), np.ptp(specimens[3].centroids, axis=0)
    specimens[3] = replace(specimens[3], centroids=random.uniform(0, 1, (60, 3)) * extent)
    settings = resolve(overrides={"refine.folds": 2, "refine.targets": 1})
    eutely.build(specimens, config=settings, workers=1)
    assert "1 of 8 specimens fit nowhere in the others: worm004" in caplog.text
