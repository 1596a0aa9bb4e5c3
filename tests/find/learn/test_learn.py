"""The paper's method from specimens to an atlas, on small bodies whose truth is known."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import eutely
from eutely.align.consensus import Aligned
from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.cliques import Cliques
from eutely.config import Config
from eutely.config.model import Learn
from eutely.errors import EutelyError
from eutely.estimate import atlas_of
from eutely.evaluation import majority_names, pre_atlas
from eutely.execute import open_executor
from eutely.find.learn import clique_cells, find
from eutely.frame import Body, Frame, Posed
from eutely.learned import Learned
from eutely.specimen import Specimen
from eutely.steps import Run
from eutely.store import Memory
from eutely.store.folder import open_run
from toy_frames import frame_of, in_canonical_order

CONFIG = Config(
    method="learn",
    learn=Learn(specimens=4, trials_linear=6, trials_sparsity=6, trials_offsets=6),
    atlas={"model": "offsets", "rounds": 0},  # type: ignore[arg-type]
)


def worms(count: int, seed: int = 0) -> list[Specimen]:
    """Return bodies of 50 cells, denser at one end, each sheared a little, in any order."""
    plan = np.random.default_rng(99)
    cells = plan.normal(size=(50, 3)) * [0, 12, 7]
    cells[:, 0] = 300 * (1 - plan.random(50) ** 2)
    cells[:, 1] += 0.06 * np.abs(cells[:, 2]) ** 1.5
    random = np.random.default_rng(seed)
    specimens = []
    for number in range(count):
        shear = np.eye(3) + random.normal(0, 0.02, (3, 3))
        points = (cells + random.normal(size=cells.shape) * [1.5, 0.7, 0.7]) @ shear.T
        order = random.permutation(50)
        specimens.append(
            Specimen.from_arrays(
                f"worm{number}",
                points[order],
                radii=np.where(order % 2, 2.0, 4.0) + random.normal(0, 0.2, 50),
                names=[f"C{cell}" for cell in order],
            )
        )
    return in_canonical_order(specimens)


class Result(NamedTuple):
    specimens: list[Specimen]
    cells: Cells
    learned: Learned
    atlas: Atlas
    steps: list[str]
    reported: list[str]


def learn_cells(folder: Path, workers: int = 1) -> Result:
    specimens = worms(7)
    frame = frame_of(specimens)
    reported: list[str] = []
    with open_executor(workers) as executor, open_run(folder) as store:
        run = Run(CONFIG, executor, store, lambda what, done, total, note: reported.append(what))
        cells, _, weights, learned = find(run, frame)
    assert learned is not None
    atlas = atlas_of(cells, frame, CONFIG, weights=weights)
    steps = [step for step, _ in run.timings]
    inside = [what for what in reported if what not in steps]
    return Result(specimens, cells, learned, atlas, steps, inside)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cells") / "run"


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    return learn_cells(folder)


def test_cells_are_found_step_by_step(result: Result) -> None:
    assert result.steps == [
        "aligned",
        "costs",
        "realigned",
        "matched",
        "synchronised",
        "cells-of-cliques",
    ]
    assert [what for what in dict.fromkeys(result.reported) if what != "part"] == [
        "learning linear",
        "learning sparsity",
        "learning offsets",
        "matching all pairs",
    ]
    assert len(result.atlas) == 50
    assert pre_atlas(result.specimens, result.cells.labels()).mean > 0.95


def test_what_is_done_is_not_done_again(result: Result, folder: Path) -> None:
    again = learn_cells(folder)
    assert again.reported == []
    assert again.learned == result.learned
    np.testing.assert_array_equal(again.cells.places(), result.cells.places())


def test_two_workers_find_the_same(result: Result, tmp_path: Path) -> None:
    again = learn_cells(tmp_path / "run", workers=2)
    assert again.learned == result.learned
    np.testing.assert_array_equal(again.cells.places(), result.cells.places())


def annotated(atlas: Atlas, specimen: Specimen) -> Annotation:
    return eutely.annotate(atlas, [specimen], workers=1)[0]


@pytest.mark.parametrize("warp", [True, False])
def test_new_specimens_are_annotated_by_offsets(result: Result, warp: bool) -> None:
    assert result.atlas.model == "offsets"
    assert result.atlas.warp
    np.testing.assert_allclose(result.atlas.weights, result.learned.parameters.weights())
    names = majority_names(
        result.cells.labels(), [one.names or () for one in result.specimens], len(result.atlas)
    )
    (new,) = worms(1, seed=5)
    turned = new.moved(np.diag([1.0, -1, -1]), [7.0, 3, 1])
    atlas = replace(result.atlas.named(names), warp=warp)
    annotation = annotated(atlas, turned)
    assert np.mean(np.array(new.names) == np.array(annotation.names)) > 0.95
    assert annotation.confidence.min() >= 0
    assert annotation.confidence.max() <= 1
    assert np.median(annotation.confidence) > 0.8
    for cell, others in zip(annotation.cells, annotation.alternatives, strict=True):
        assert len(others) <= 3
        assert cell not in [other for other, _ in others]
    backwards = turned.take(np.arange(len(turned))[::-1])
    np.testing.assert_array_equal(annotated(atlas, backwards).cells[::-1], annotation.cells)


def test_splinters_are_no_cells() -> None:
    points = np.zeros((2, 3))
    frame = Frame((Posed((points,), points, points[:, :0]),) * 3, Body(np.ones(2), 1.0, False))
    aligned = Aligned(
        (points,) * 3, (points,) * 3, np.zeros(3, np.int64), 0, np.ones(3), np.ones(3)
    )
    shared = Cliques.from_labels([[0, 1], [2, 0], [0, 3]])
    cells = clique_cells(frame, aligned, shared)
    assert [nuclei.tolist() for nuclei in cells.nuclei] == [[0], [1], [0]]
    apart = Cliques.from_labels([[0, 1], [2, 3], [4, 5]])
    with pytest.raises(EutelyError, match="no two specimens share a cell"):
        clique_cells(frame, aligned, apart)


def test_halves_are_refused_with_a_way_out() -> None:
    """All pairs are matched: halves that share nothing would be matched with each other."""
    specimens = worms(5)
    frame = frame_of(specimens)
    parts = []
    for number, posed in enumerate(frame.specimens):
        along = posed.poses[0][:, 0]
        front = along > np.median(along)
        kept = np.flatnonzero(front if number % 2 else ~front) if number else np.arange(len(along))
        points, sizes = posed.poses[0][kept], posed.radii[kept]
        parts.append(Posed((points,), sizes, posed.scores[kept], part=number > 0))
    halves = Frame(tuple(parts), frame.body, frame.features)
    with (
        open_executor(1) as executor,
        pytest.raises(EutelyError, match=r"40% .* use method"),
    ):
        find(Run(CONFIG, executor, Memory()), halves)
