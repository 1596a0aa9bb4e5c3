"""A used run folder never gives an old result: whatever is changed, it ends like a fresh one."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import annotated_types
import numpy as np
import pytest
from pydantic.fields import FieldInfo

import eutely
from eutely.candidates import PairCosts
from eutely.config import Config, resolve
from eutely.config.model import Section
from eutely.config.resolve import keys
from eutely.find import METHODS
from eutely.fit import match
from eutely.fit.match import Fit
from eutely.fit.model import Model
from eutely.io.atlas import write_atlas
from eutely.specimen import Specimen
from eutely.store.folder import RunFolder, open_run
from eutely.tasks.build import Built
from eutely.tasks.outputs import ATLAS, CLIQUES, cliques_table, read_report

SMALL: dict[str, Any] = {
    "refine.linear_rounds": 1,
    "refine.joint_rounds": 1,
    "refine.targets": 1,
    "refine.target_rounds": 1,
    "refine.folds": 2,
    "learn.specimens": 3,
    "learn.trials_linear": 2,
    "learn.trials_sparsity": 2,
    "learn.trials_offsets": 1,
    "realign.iterations": 1,
    "atlas.model": "offsets",
    "atlas.rounds": 1,
}


def settings(method: str, **changes: object) -> Config:
    """Return few rounds and trials; ``changes`` have ``__`` for dots."""
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return resolve(overrides={"method": method, **SMALL, **dotted})


def cohort() -> list[Specimen]:
    """Four specimens of 27 cells, with a colour of each nucleus besides its radii."""
    random = np.random.default_rng(1)
    return [
        replace(one, features={"colour": random.normal(size=len(one))})
        for one in eutely.simulate(specimens=4, cells=26, variation=0.7, missing=0.05)
    ]


class Steps:
    """The steps of a run folder without its report, which takes longer than all else here."""

    def __init__(self, folder: RunFolder) -> None:
        self.get, self.put = folder.get, folder.put
        self.seconds, self.journal = folder.seconds, folder.journal


Files = tuple[bytes, bytes]


def files_of(built: Built, folder: Path) -> Files:
    """Return what atlas.h5 and cliques.csv of a build are."""
    write_atlas(built.atlas, folder / "aside.h5")
    return (folder / "aside.h5").read_bytes(), cliques_table(built).encode()


def in_folder(folder: Path, specimens: Sequence[Specimen], config: Config) -> Files:
    """Build in a folder; return atlas.h5 and cliques.csv."""
    eutely.build(specimens, folder, config=config, workers=1)
    return (folder / ATLAS).read_bytes(), (folder / CLIQUES).read_bytes()


def fits_of(built: Built) -> list[list[object]]:
    """Return what atlases of others make of each specimen; it is shown in the report."""
    return [[fit.cells.tolist(), repr(fit.confidence.tolist()), fit.cost] for fit in built.fits]


def leaves() -> dict[str, FieldInfo]:
    """Return all settings but ``method`` by their dotted keys."""
    known = {}
    for key in keys():
        section: type[Section] = Config
        *path, last = key.split(".")
        for name in path:
            section = section.model_fields[name].annotation  # type: ignore[assignment]
        field = section.model_fields[last]
        annotation = field.annotation
        if not (isinstance(annotation, type) and issubclass(annotation, Section)):
            known[key] = field
    del known["method"]
    return known


def other_value(key: str, field: FieldInfo, value: Any) -> Any:
    """Return another valid value of a setting."""
    if key == "estimate.features":
        return "colour"
    words = [word for word in get_args(field.annotation) if word != value]
    if words:
        return words[0]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    highest = [bound.le for bound in field.metadata if isinstance(bound, annotated_types.Le)]
    highest += [bound.lt for bound in field.metadata if isinstance(bound, annotated_types.Lt)]
    return (value + highest[0]) / 2 if highest else 2 * value


def changed(method: str, key: str, field: FieldInfo) -> Config:
    """Return the settings with one of them changed."""
    before = settings(method)
    value = other_value(key, field, before.value(key))
    after = settings(method, **{key.replace(".", "__"): value})
    assert after.value(key) == value != before.value(key)
    return after


@pytest.fixture(scope="module", params=list(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def used(method: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which a cohort was built."""
    folder = tmp_path_factory.mktemp(method) / "run"
    in_folder(folder, cohort(), settings(method))
    return folder


def test_any_changed_setting_gives_what_a_fresh_build_gives(
    method: str, used: Path, tmp_path: Path
) -> None:
    known = leaves()
    assert len(known) > 30
    before = (used / ATLAS).read_bytes(), (used / CLIQUES).read_bytes()
    different = set()
    with open_run(used) as folder:
        for key, field in known.items():
            config = changed(method, key, field)
            fresh = eutely.build(cohort(), config=config, workers=1)
            again = eutely.build(cohort(), Steps(folder), config=config, workers=1)
            assert files_of(again, tmp_path) == files_of(fresh, tmp_path), key
            assert fits_of(again) == fits_of(fresh), key
            if files_of(fresh, tmp_path) != before:
                different.add(key)
    # The cohort is not so easy that nothing matters.
    assert {"estimate.prior", "realign.scale", "realign.warp"} <= different
    assert in_folder(used, cohort(), settings(method)) == before


def edited(what: str) -> list[Specimen]:
    """Return the cohort after a person has worked on its files."""
    specimens = cohort()
    if what == "axes":
        return [replace(one, axes=None) for one in specimens]
    if what == "radii":
        return [replace(one, radii=one.radii[:, [0, 0, 0]]) for one in specimens]
    if what == "features":
        return [replace(one, features={"colour": -one.features["colour"]}) for one in specimens]
    if what == "ids":
        return [replace(one, ids=one.ids[::-1] + 7000) for one in specimens]
    if what == "specimens":
        return [replace(one, name=f"new-{9 - number}") for number, one in enumerate(specimens)]
    assert what == "names"
    return [replace(one, names=[f"{name}X" for name in one.names or ()]) for one in specimens]


@pytest.mark.parametrize("what", ["axes", "radii", "features", "ids", "specimens", "names"])
def test_edited_specimens_give_what_a_fresh_folder_gives(
    method: str, used: Path, tmp_path: Path, what: str
) -> None:
    specimens = edited(what)
    assert in_folder(used, specimens, settings(method)) == in_folder(
        tmp_path / "fresh", specimens, settings(method)
    )
    by_name = {one.name: one for one in specimens}
    rows = list(csv.DictReader(io.StringIO((used / CLIQUES).read_text())))
    known = {(one.name, int(id_)) for one in specimens for id_ in one.ids}
    assert {(row["specimen"], int(row["id"])) for row in rows} == known
    _, report = read_report(used)
    assert [shown.name for shown in report.specimens] == sorted(by_name)
    for shown in report.specimens:
        one = by_name[shown.name]
        assert dict(zip(shown.ids.tolist(), shown.names, strict=True)) == dict(
            zip(one.ids.tolist(), one.names or (), strict=True)
        )


def test_another_list_of_terms_gives_what_a_fresh_folder_gives(
    method: str, used: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any term, then with one more, that pushes nuclei from cell to cell."""
    config = settings(method, atlas__model="joint")
    before = in_folder(used, cohort(), config)

    def pushing_term(model: Model, fit: Fit) -> PairCosts:
        cells, nuclei = np.indices((len(fit.nuclei), len(fit.posed)))
        return PairCosts.of_table(5.0 * ((cells + nuclei) % 3))

    shown = [one.confidence for one in read_report(used)[1].specimens]
    for terms in ([], [*match.TERMS, pushing_term]):
        with monkeypatch.context() as patched:
            patched.setattr(match, "TERMS", terms)
            fresh = tmp_path / str(len(terms))
            assert in_folder(used, cohort(), config) == in_folder(fresh, cohort(), config)
        again, once = (
            [one.confidence for one in read_report(folder)[1].specimens] for folder in (used, fresh)
        )
        np.testing.assert_equal(again, once)
    assert any((one != other).any() for one, other in zip(shown, again, strict=True))
    assert in_folder(used, cohort(), config) == before
