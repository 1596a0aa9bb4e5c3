"""The paper's way from specimens to an atlas, on small bodies whose truth is known."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from eutely.annotation import annotate, canonical_order, posed, spacing_of
from eutely.atlas import Atlas
from eutely.cliques import Cliques
from eutely.config import Config
from eutely.config.model import Learn, Realign
from eutely.errors import EutelyError
from eutely.estimate import estimate
from eutely.evaluation import majority_names, pre_atlas
from eutely.execute import open_executor
from eutely.store.folder import open_run
from eutely.find.learn.steps import cells, find_cells, with_offsets
from eutely.pose import orient
from eutely.learned import Parameters
from eutely.align.consensus import Aligned
from eutely.find.refine import Cohort
from eutely.specimen import Specimen

CONFIG = Config(learn=Learn(specimens=4, trials_linear=6, trials_sparsity=6, trials_offsets=6))


def worms(count: int, seed: int = 0) -> list[Specimen]:
    """Return bodies of 50 cells, denser at one end, each sheared a little, in any order."""
    plan = np.random.default_rng(99)
    cells = plan.normal(size=(50, 3)) * [0, 12, 7]
    cells[:, 0] = 300 * (1 - plan.random(50) ** 2)
    cells[:, 1] += 0.06 * np.abs(cells[:, 2]) ** 1.5
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        shear = np.eye(3) + random.normal(0, 0.02, (3, 3))
        points = (cells + random.normal(size=cells.shape) * [1.5, 0.7, 0.7]) @ shear.T
        order = random.permutation(50)
        found.append(
            Specimen.from_arrays(
                f"worm{number}",
                points[order],
                radii=np.where(order % 2, 2.0, 4.0) + random.normal(0, 0.2, 50),
                names=[f"C{cell}" for cell in order],
            )
        )
    return [one.take(canonical_order(one)) for one in found]


class Built(NamedTuple):
    specimens: list[Specimen]
    cohort: Cohort
    parameters: Parameters
    atlas: Atlas
    told: list[str]


def build(folder: Path, workers: int = 1) -> Built:
    specimens = worms(7)
    first = [orient(one)[0] for one in specimens]
    size = np.median([pose.size for pose in first], axis=0)
    poses = [posed(one, size) for one in specimens]
    radii = [pose.apply(one, size).radii for pose, one in zip(first, specimens, strict=True)]
    spacing = float(np.median([spacing_of(one[0]) for one in poses]))
    told: list[str] = []
    with open_executor(workers) as executor, open_run(folder) as run:
        cohort, learned = find_cells(
            poses,
            radii,
            size,
            spacing,
            CONFIG,
            executor,
            run,
            "worms",
            lambda what, done, total, note: told.append(what),
        )
    sizes = np.full(cohort.places().shape, np.nan)
    for row, own, nuclei in zip(sizes, radii, cohort.nuclei, strict=True):
        row[nuclei >= 0] = own[nuclei[nuclei >= 0]]
    atlas = estimate(
        cohort.places(), size=size, spacing=spacing, settings=CONFIG.estimate, radii=sizes
    )
    parameters = learned.parameters
    return Built(
        specimens, cohort, parameters, with_offsets(atlas, parameters.weights(), CONFIG), told
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cells") / "run"


@pytest.fixture(scope="module")
def built(folder: Path) -> Built:
    return build(folder)


def test_cells_are_found_step_by_step(built: Built, folder: Path) -> None:
    with open_run(folder) as run:
        assert list(run.timings()) == ["align", "learn", "realign", "match", "synchronise"]
    assert list(dict.fromkeys(built.told)) == [
        "learning linear",
        "learning sparsity",
        "learning offsets",
        "matching all pairs",
    ]
    assert len(built.atlas) == 50
    assert pre_atlas(built.specimens, built.cohort.labels()).mean > 0.95


def test_what_is_done_is_not_done_again(built: Built, folder: Path) -> None:
    again = build(folder)
    assert again.told == []
    assert again.parameters == built.parameters
    np.testing.assert_array_equal(again.cohort.places(), built.cohort.places())


def test_two_workers_find_the_same(built: Built, tmp_path: Path) -> None:
    again = build(tmp_path / "run", workers=2)
    assert again.parameters == built.parameters
    np.testing.assert_array_equal(again.cohort.places(), built.cohort.places())


@pytest.mark.parametrize("warp", [True, False])
def test_new_specimens_are_annotated_by_offsets(built: Built, warp: bool) -> None:
    assert built.atlas.model == "offsets"
    assert built.atlas.warp
    np.testing.assert_allclose(built.atlas.weights, built.parameters.weights())
    names = majority_names(
        built.cohort.labels(), [one.names or () for one in built.specimens], len(built.atlas)
    )
    (new,) = worms(1, seed=5)
    turned = new.moved(np.diag([1.0, -1, -1]), [7.0, 3, 1])
    atlas = replace(built.atlas.named(names), warp=warp)
    found = annotate(turned, atlas)
    assert np.mean(np.array(new.names) == np.array(found.names)) > 0.95
    assert found.confidence.min() >= 0
    assert found.confidence.max() <= 1
    assert np.median(found.confidence) > 0.8
    for cell, others in zip(found.cells, found.alternatives, strict=True):
        assert len(others) <= 3
        assert cell not in [other for other, _ in others]
    backwards = turned.take(np.arange(len(turned))[::-1])
    np.testing.assert_array_equal(annotate(backwards, atlas).cells[::-1], found.cells)


def test_splinters_are_no_cells() -> None:
    frames = tuple(np.zeros((2, 3)) for _ in range(3))
    cohort = Aligned(frames, frames, np.zeros(3, np.int64), 0, np.ones(3), np.zeros(3))
    poses = [[frame] for frame in frames]
    shared = Cliques.from_labels([[0, 1], [2, 0], [0, 3]])
    affine = Config(realign=Realign(warp=False))
    found = cells(cohort, shared, poses, np.ones(2), 1.0, affine)
    assert [own.tolist() for own in found.nuclei] == [[0], [1], [0]]
    apart = Cliques.from_labels([[0, 1], [2, 3], [4, 5]])
    with pytest.raises(EutelyError, match="no two specimens share a cell"):
        cells(cohort, apart, poses, np.ones(2), 1.0, affine)
