"""Every public function takes what its command takes; every misuse is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.errors import EutelyError
from eutely.io.dd import read_dd
from eutely.io.tables import write_table, write_tables
from eutely.multi import MultiProblem
from eutely.multi.joint import JointSolution
from eutely.specimen import Specimen

COHORT = eutely.simulate(4, cells=30, variation=0.5)
QUICK = {"refine.folds": 2, "refine.targets": 1, "refine.joint_rounds": 1}


def frame_of(specimen: Specimen) -> pd.DataFrame:
    """Return a specimen as users of pandas have it: unknown names are None."""
    x, y, z = specimen.centroids.T
    names = [name or None for name in specimen.names or [""] * len(specimen)]
    table = {"id": specimen.ids, "x": x, "y": y, "z": z, "name": names, "red": np.arange(len(x))}
    return pd.DataFrame(table).assign(unit="um", r1=specimen.radii[:, 0], r2=1.0, r3=1.0)


@pytest.fixture(scope="module")
def built() -> eutely.Built:
    return eutely.build(COHORT, config=QUICK, supervised=True, workers=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("given") / "worms"
    write_tables(COHORT, place)
    return place


def cells_of(found: list[Annotation]) -> list[list[int]]:
    return [annotation.cells.tolist() for annotation in found]


def test_annotate_takes_all_ways_to_say_which_atlas_and_specimens(
    built: eutely.Built, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "atlas.h5"
    built.atlas.save(file)
    expected = cells_of(eutely.annotate(built.atlas, COHORT[:2], workers=1))
    two = [folder / f"{one.name}.csv" for one in COHORT[:2]]
    named = {one.name: path for one, path in zip(COHORT, two, strict=False)}
    for atlas in (built, file, str(file)):
        assert cells_of(eutely.annotate(atlas, two, workers=1)) == expected
    for given in (named, [COHORT[0], two[1]], tuple(two)):
        assert cells_of(eutely.annotate(built, given, workers=1)) == expected
    assert cells_of(eutely.annotate(built, COHORT[0], workers=1)) == expected[:1]
    (annotation,) = eutely.annotate(built, str(two[0]), workers=1)
    assert annotation.cells.tolist() == expected[0]


def test_other_functions_take_files_and_folders(built: eutely.Built, folder: Path) -> None:
    first, second = (folder / f"{one.name}.csv" for one in COHORT[:2])
    np.testing.assert_array_equal(
        eutely.match(first, second).partners, eutely.match(*COHORT[:2]).partners
    )
    np.testing.assert_array_equal(
        eutely.orient(first)[0].rotation, eutely.orient(COHORT[0])[0].rotation
    )
    assert eutely.name(built, folder, workers=1).names == built.atlas.names
    assert eutely.evaluate(built, folder, workers=1).mean == 1.0
    again = eutely.build(str(folder), config=QUICK, supervised=True, workers=1)
    np.testing.assert_array_equal(again.atlas.means, built.atlas.means)


def test_compare_takes_folders(built: eutely.Built, tmp_path: Path) -> None:
    animals = eutely.simulate(6, cells=30, seed=3)
    write_tables(animals[:3], tmp_path / "wild")
    write_tables(animals[3:], tmp_path / "mutant")
    design = eutely.Design(permutations=19)
    folders = [tmp_path / "wild", tmp_path / "mutant"]
    found = eutely.compare(built, folders, design=design, workers=1)
    assert found.labels == ("wild", "mutant")
    labelled = {"wild": folders[0], "mutant": animals[3:]}
    same = eutely.compare(built.atlas, labelled, design=design, workers=1)
    pd.testing.assert_frame_equal(found.to_frame(), same.to_frame())


def test_settings_are_a_preset_a_file_or_a_dict(tmp_path: Path) -> None:
    from eutely.config import resolve
    from eutely.tasks.inputs import the_config

    file = tmp_path / "settings.toml"
    file.write_text("seed = 3\n[refine]\nfolds = 2\n", encoding="utf-8")
    expected = resolve({"seed": 3, "refine": {"folds": 2}})
    assert the_config(file) == the_config(str(file)) == expected
    assert the_config({"seed": 3, "refine.folds": 2}) == expected
    assert the_config({"seed": 3, "refine": {"folds": 2}}) == expected
    assert the_config("paper") == the_config({"preset": "paper"}) == resolve(preset="paper")
    assert the_config(None) == eutely.Config()


def test_pins_come_from_a_table(built: eutely.Built, tmp_path: Path) -> None:
    worm = COHORT[0]
    file = tmp_path / "pins.csv"
    wrong = built.atlas.names[7]
    file.write_text(f"specimen,id,name\n{worm.name},{worm.ids[0]},{wrong}\n", encoding="utf-8")
    (annotation,) = eutely.annotate(built, worm, pins=file, workers=1)
    assert annotation.names[0] == wrong


def test_a_problem_is_solved_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "tiny.dd"
    file.write_text("p 2 2 4 1\na 0 0 0 -1\na 1 0 1 -1\na 2 1 0 -1\na 3 1 1 -1\ne 0 3 1.5\n")
    solution = eutely.solve(file, bound=True)
    assert solution.matching.tolist() == [1, 0]
    assert solution.objective == solution.bound == -2.0


def test_three_graphs_are_solved_together(tmp_path: Path) -> None:
    lines = []
    for g, h in ((0, 1), (0, 2), (1, 2)):
        lines += [f"gm {g} {h}", "p 2 2 4 0"]
        lines += [f"a {k} {k // 2} {k % 2} {-3 if k in (0, 3) else -1}" for k in range(4)]
    file = tmp_path / "three.dd"
    file.write_text("\n".join(lines) + "\n")
    solution = eutely.solve(file, bound=True)
    assert isinstance(solution, JointSolution)
    assert {key: found.tolist() for key, found in solution.matchings.items()} == {
        (0, 1): [0, 1], (0, 2): [0, 1], (1, 2): [0, 1]
    }  # fmt: skip
    assert solution.objective == solution.bound == -18.0
    assert solution.forbidden == 0
    assert repr(solution) == "<JointSolution: 2 cliques, objective -18, at least -18>"
    joint = MultiProblem.from_pairs(read_dd(file))
    assert eutely.solve(joint).objective == solution.objective
    with pytest.raises(EutelyError, match="take no start"):
        eutely.solve(joint, start=[0, 1])


def test_a_pandas_table_becomes_a_specimen() -> None:
    table = frame_of(COHORT[0])
    table.loc[:2, "name"] = None
    worm = Specimen.from_frame(table, "mine")
    assert worm.name == "mine"
    assert worm.unit == "um"
    assert worm.ids.tolist() == COHORT[0].ids.tolist()
    assert worm.names[:3] == ("", "", "")  # type: ignore[index]
    assert worm.names[3:] == COHORT[0].names[3:]  # type: ignore[index]
    np.testing.assert_array_equal(worm.centroids, COHORT[0].centroids)
    assert list(worm.features) == ["red"]
    by_index = Specimen.from_frame(table.set_index("id"), "mine")
    assert by_index == worm
    assert Specimen.from_frame(table.iloc[::-1], "mine").ids.tolist() == worm.ids[::-1].tolist()


def test_a_table_of_a_cohort_is_read_like_its_file(tmp_path: Path) -> None:
    write_table(COHORT, tmp_path / "cohort.csv")
    table = pd.read_csv(tmp_path / "cohort.csv", float_precision="round_trip")
    assert eutely.read(table) == eutely.read(tmp_path / "cohort.csv") == COHORT
    with pytest.raises(EutelyError, match="4 specimens"):
        Specimen.from_frame(table)


def test_several_tables_have_different_names() -> None:
    first, second = frame_of(COHORT[0]), frame_of(COHORT[1])
    assert [one.name for one in eutely.read([first, second])] == ["table", "table2"]
    second.attrs["name"] = "other"
    assert [one.name for one in eutely.read(first, second)] == ["table", "other"]


def test_voxels_of_a_table_are_converted() -> None:
    table = frame_of(COHORT[0]).assign(unit="voxel")
    (worm,) = eutely.read(table, voxel_size=[1, 1, 2])
    assert worm.unit == "um"
    np.testing.assert_allclose(worm.centroids, COHORT[0].centroids * [1, 1, 2])


def test_names_that_pandas_does_not_know_are_no_names() -> None:
    given = ["A", None, float("nan"), ""]
    worm = Specimen.from_arrays("worm", np.eye(4)[:, :3], names=given)  # type: ignore[arg-type]
    assert worm.names == ("A", "", "", "")


BARE = [worm.without_names() for worm in COHORT]
L1 = "celegans-l1"
MISUSES: dict[str, Callable[[], object]] = {
    "found list": lambda: eutely.annotate(COHORT, L1),
    "nowhere.*celegans-l1": lambda: eutely.annotate("nowhere", COHORT),
    "worms does not exist": lambda: eutely.annotate(L1, "worms"),
    "found None": lambda: eutely.annotate(L1, None),
    "found ndarray; Specimen.from_arrays takes arrays": lambda: eutely.annotate(
        L1, COHORT[0].centroids
    ),
    "found Series": lambda: eutely.annotate(L1, frame_of(COHORT[0])["x"]),
    "expected a pandas table, found 'w'": lambda: Specimen.from_frame("w", frame_of(COHORT[0])),
    "not an atlas; expected an atlas": lambda: eutely.annotate(__file__, COHORT),
    "found int": lambda: eutely.annotate(L1, [5]),
    "auto, as-is, mirrored": lambda: eutely.annotate(L1, COHORT, handedness="left"),
    "adapt is 'yes'": lambda: eutely.annotate(L1, COHORT, adapt="yes"),
    "supervised is 1": lambda: eutely.build(COHORT, supervised=1),
    "workers is 2.5": lambda: eutely.annotate(L1, COHORT, workers=2.5),
    "progress is True": lambda: eutely.annotate(L1, COHORT, progress=True),
    "progress is 5": lambda: eutely.build(COHORT, progress=5),
    "pins: expected a table": lambda: eutely.annotate(L1, COHORT, pins=5),
    "pins: 'a'": lambda: eutely.annotate(L1, COHORT, pins={"a": "b"}),
    "cannot read nowhere.csv": lambda: eutely.annotate(L1, COHORT, pins="nowhere.csv"),
    "worms does not exist ": lambda: eutely.build("worms"),
    "at least 2": lambda: eutely.build(COHORT[0]),
    "found NoneType|found None": lambda: eutely.build(None),
    "output: expected a folder": lambda: eutely.build(COHORT, 5),
    "preset": lambda: eutely.build(COHORT, config="papr"),
    "did you mean seed": lambda: eutely.build(COHORT, config={"sed": 1}),
    "Config, the name": lambda: eutely.build(COHORT, config=5),
    "a preset is no setting": lambda: eutely.Config(preset="paper"),
    "found the class Config": lambda: eutely.build(COHORT, config=eutely.Config),
    "did you mean seed?": lambda: eutely.Config(sed=1),
    "settings have names": lambda: eutely.Config("paper"),
    "seed = 'one'": lambda: eutely.Config(seed="one"),
    "settings stay": lambda: setattr(eutely.Config(), "seed", 1),
    "no specimen has a named": lambda: eutely.name(L1, BARE),
    "no specimen has a named ": lambda: eutely.evaluate(L1, BARE),
    "match takes one specimen": lambda: eutely.match(COHORT[0], COHORT),
    "handedness 'left'": lambda: eutely.match(*COHORT[:2], handedness="left"),
    "effort is 'much'": lambda: eutely.match(*COHORT[:2], effort="much"),
    "seed -1 is negative": lambda: eutely.match(*COHORT[:2], seed=-1),
    "orient takes one specimen": lambda: eutely.orient(COHORT),
    "solve takes a PairProblem": lambda: eutely.solve(COHORT),
    "nowhere.dd does not exist": lambda: eutely.solve("nowhere.dd"),
    "synchronise takes Matchings": lambda: eutely.synchronise({(0, 1): [1]}),
    "specimens is 'two'": lambda: eutely.simulate("two"),
    "cells is 'many'": lambda: eutely.simulate(2, cells="many"),
    "knows no 'mising'": lambda: eutely.simulate(2, cells=10, mising=0.1),
    "missing is 'a'": lambda: eutely.simulate(2, cells=10, missing="a"),
    "variation is 'a'": lambda: eutely.simulate(2, cells=10, variation="a"),
    "groups: expected label": lambda: eutely.compare(L1, COHORT),
    "group 'b' has 1 animal": lambda: eutely.compare(L1, {"a": COHORT[:3], "b": COHORT[3]}),
    "design: expected a Design": lambda: eutely.compare(L1, {"a": COHORT}, design=5),
    "permutations is 'a'": lambda: eutely.Design(permutations="a"),
    "covariates": lambda: eutely.Design(covariates=5),
    "int cannot be read": lambda: eutely.read(5),
    "no input given": lambda: eutely.read([]),
    "voxel size a": lambda: eutely.read(frame_of(COHORT[0]), voxel_size="a"),
    "no column x": lambda: Specimen.from_frame(pd.DataFrame({"a": [1.0]})),
    "centroids are no table": lambda: Specimen.from_arrays("a", "b"),
    "the name of a specimen": lambda: Specimen.from_arrays(5, np.eye(3)),
    "the features of a specimen": lambda: Specimen.from_arrays("a", np.eye(3), features=[1]),
    "names are 5": lambda: Specimen.from_arrays("a", np.eye(3), names=5),
    "5 is no atlas": lambda: eutely.Atlas.load(5),
}


@pytest.mark.parametrize("words", MISUSES)
def test_every_misuse_is_one_line(words: str) -> None:
    with pytest.raises(EutelyError, match=words.strip()) as error:
        MISUSES[words]()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
