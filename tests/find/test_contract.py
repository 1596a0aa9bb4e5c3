"""One contract for all ways to find cells: what `eutely.find.METHODS` promise, method by method."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eutely
from eutely.config import Config, resolve
from eutely.evaluation import pre_atlas
from eutely.execute import open_executor
from eutely.find import METHODS
from eutely.specimen import Specimen
from eutely.tasks.outputs import ATLAS, CLIQUES
from toy_frames import frame_of, in_canonical_order, run_in_memory

FEW_TRIALS = {
    "learn.specimens": 3,
    "learn.trials_linear": 3,
    "learn.trials_sparsity": 3,
    "learn.trials_offsets": 2,
    "realign.iterations": 2,
    "atlas.model": "offsets",
    "atlas.rounds": 1,
}
FEW_ROUNDS = {
    "refine.linear_rounds": 2,
    "refine.joint_rounds": 3,
    "refine.targets": 2,
    "refine.target_rounds": 1,
    "refine.folds": 2,
}
CONFIGS: dict[str, Config] = {
    name: resolve(overrides={"method": name, **FEW_ROUNDS, **changes})
    for name, changes in {"refine": {}, "learn": FEW_TRIALS, "named": FEW_TRIALS}.items()
}

CELLS = 50


def cohort(**flaws: float) -> list[Specimen]:
    return eutely.simulate(specimens=7, cells=CELLS, variation=0.5, **flaws)


def shuffled(specimens: list[Specimen]) -> list[Specimen]:
    """Return the specimens in another order, with other rows and ids."""
    mixed = []
    for number, one in enumerate(reversed(specimens)):
        order = np.random.default_rng(number).permutation(len(one))
        mixed.append(replace(one.take(order), ids=np.arange(len(one)) + 1000))
    return mixed


def atlas_bytes(folder: Path) -> bytes:
    return (folder / ATLAS).read_bytes()


@pytest.fixture(scope="module", params=list(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(method: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(method) / "run"
    eutely.build(cohort(), path, config=CONFIGS[method], workers=1)
    return path


def test_cells_are_found(method: str) -> None:
    """Straight from the method: every nucleus is at most one cell, and it is the right one."""
    specimens = in_canonical_order(cohort())
    labels = tuple(one.names or () for one in specimens) if method == "named" else ()
    with open_executor(1) as executor:
        run = run_in_memory(CONFIGS[method], executor)
        cells, names, _, learned = METHODS[method](run, frame_of(specimens), labels)
    for nuclei in cells.nuclei:
        matched = nuclei[nuclei >= 0]
        assert len(np.unique(matched)) == len(matched)
    assert (cells.seen() > 0).all()
    assert len(names) == (cells.count if method == "named" else 0)
    assert (learned is not None) == (method == "learn")
    assert abs(cells.count - CELLS) <= 1
    assert pre_atlas(specimens, cells.labels()).mean > 0.95
    assert all(np.isfinite(points).all() for points in cells.warped)


def test_workers_make_no_difference(method: str, folder: Path, tmp_path: Path) -> None:
    eutely.build(cohort(), tmp_path / "run", config=CONFIGS[method], workers=2)
    assert atlas_bytes(tmp_path / "run") == atlas_bytes(folder)
    assert (tmp_path / "run" / CLIQUES).read_bytes() == (folder / CLIQUES).read_bytes()


def test_order_and_ids_make_no_difference(method: str, folder: Path, tmp_path: Path) -> None:
    eutely.build(shuffled(cohort()), tmp_path / "run", config=CONFIGS[method], workers=1)
    assert atlas_bytes(tmp_path / "run") == atlas_bytes(folder)


@pytest.mark.parametrize("unsupervised", sorted(set(METHODS) - {"named"}))
def test_names_do_not_reach_methods_without_supervision(unsupervised: str, tmp_path: Path) -> None:
    for name, specimens in {
        "named": cohort(),
        "bare": [one.without_names() for one in cohort()],
        "wrong": [replace(one, names=(one.names or ())[::-1]) for one in cohort()],
    }.items():
        eutely.build(specimens, tmp_path / name, config=CONFIGS[unsupervised], workers=1)
    assert atlas_bytes(tmp_path / "named") == atlas_bytes(tmp_path / "bare")
    assert atlas_bytes(tmp_path / "named") == atlas_bytes(tmp_path / "wrong")


def test_missing_and_spurious_nuclei_are_survived(method: str) -> None:
    specimens = cohort(missing=0.04, spurious=0.04)
    assert len({len(one) for one in specimens}) > 1
    built = eutely.build(specimens, config=CONFIGS[method], workers=1)
    assert abs(len(built.atlas) - CELLS) <= 3
    assert pre_atlas(built.specimens, built.cells).mean > 0.9
    named = built.atlas
    if method != "named":
        named = eutely.name(named, specimens, workers=1)
    new = eutely.simulate(specimens=3, cells=CELLS, variation=0.5, seed=5)
    assert eutely.evaluate(named, new, workers=1).mean > 0.85


def test_a_run_without_its_last_steps_ends_in_the_same_bytes(method: str, folder: Path) -> None:
    before = atlas_bytes(folder)
    rows = [json.loads(line[9:]) for line in (folder / "timings.jsonl").read_text().splitlines()]
    files = [folder / "stages" / f"{row['step']}-{row['key']}.npz" for row in rows]
    assert len(files) >= 3
    for count in (1, 3, len(files)):
        for file in files[-count:]:
            file.unlink()
        eutely.build(cohort(), folder, config=CONFIGS[method], workers=1)
        assert atlas_bytes(folder) == before
        assert all(file.exists() for file in files)


class Stop:
    """A progress callback by which a user stops a build at a given call."""

    def __init__(self, call: int) -> None:
        self.left = call

    def __call__(self, what: str, done: int, total: int, note: str) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_again_and_again_ends_in_the_same_bytes(
    method: str, folder: Path, tmp_path: Path
) -> None:
    stops = 0
    for call in range(1, 100):
        try:
            eutely.build(
                cohort(),
                tmp_path / "run",
                config=CONFIGS[method],
                workers=1,
                progress=Stop(call if call < 3 else 2 * call),
            )
            break
        except KeyboardInterrupt:
            stops += 1
            assert not (tmp_path / "run" / ATLAS).exists()
    assert stops >= 2
    assert atlas_bytes(tmp_path / "run") == atlas_bytes(folder)
