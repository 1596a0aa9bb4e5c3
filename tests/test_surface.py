"""What users see: public names, atlases as files, tables, notebooks; and limits of the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.config import resolve
from eutely.errors import EutelyError
from eutely.specimen import Specimen
from eutely.tasks.build import Built

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "eutely"

NOUNS = {
    "Annotation",
    "Atlas",
    "Built",
    "Comparison",
    "Config",
    "Design",
    "EutelyError",
    "Specimen",
}
VERBS = {
    "annotate",
    "build",
    "compare",
    "evaluate",
    "export",
    "match",
    "name",
    "orient",
    "read",
    "simulate",
    "solve",
    "synchronise",
}


def test_the_public_surface_is_what_the_documentation_lists() -> None:
    assert set(eutely.__all__) == NOUNS | VERBS | {"__version__"}
    assert list(eutely.__all__) == sorted(eutely.__all__)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^::: eutely\.[\w.]*?(\w+)$", page, re.MULTILINE)
    assert sorted(documented) == sorted(NOUNS | VERBS)


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        eutely.nonsense  # noqa: B018
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", eutely.__version__)


def test_an_interactive_session_offers_the_public_names_and_no_others() -> None:
    assert set(dir(eutely)) == NOUNS | VERBS | {"__version__"}
    jedi = pytest.importorskip("jedi", reason="no jedi: pip install 'eutely[test]'")
    offered = jedi.Interpreter("eutely.", [{"eutely": eutely}]).complete()
    assert {one.name for one in offered} == set(dir(eutely))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("eutely.", {"annotate", "Atlas", "build", "Specimen"}),
        ("eutely.read('worms')[0].", {"centroids", "names", "take", "without_names"}),
        ("eutely.Specimen.", {"from_arrays", "from_frame"}),
        ("eutely.build('worms').", {"atlas", "to_frame", "outliers"}),
        ("eutely.build('worms').atlas.", {"means", "names", "save", "load"}),
        ("eutely.annotate('a', 'b')[0].", {"confidence", "to_frame", "alternatives"}),
        ("eutely.match('a', 'b').", {"partners", "mirrored", "doubt"}),
        ("eutely.evaluate('a', 'b').", {"mean", "accuracies"}),
        ("eutely.compare('a', {}).", {"to_frame", "left_out"}),
        ("eutely.orient('a')[0].", {"rotation", "apply"}),
        ("eutely.solve('a').", {"matching", "objective", "bound"}),
        ("eutely.Config(", {"seed=", "method=", "refine="}),
        ("eutely.annotate('a', 'b', ", {"handedness=", "pins=", "adapt="}),
        ("eutely.export('a', ", {"kinds=", "output=", "about="}),
    ],
)
def test_an_editor_completes_what_follows(code: str, expected: set[str]) -> None:
    jedi = pytest.importorskip("jedi", reason="no jedi: pip install 'eutely[test]'")
    offered = {one.name for one in jedi.Script(f"import eutely\n{code}").complete()}
    assert expected <= offered
    assert not offered & {"import_module", "TYPE_CHECKING"}


@pytest.mark.parametrize("name", sorted(NOUNS | VERBS))
def test_every_name_is_imported_when_it_is_first_used(name: str) -> None:
    assert isinstance(getattr(eutely, name), type) == (name in NOUNS)
    assert callable(getattr(eutely, name))


def python(code: str) -> str:
    """Return what a new process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, eutely; "
        "print([n for n in ('numba', 'scipy', 'pandas', 'optuna', 'h5py') if n in sys.modules])"
    )
    assert python(code) == "[]"


def test_readers_import_numba_and_the_libraries_of_formats_when_they_need_them() -> None:
    code = (
        "import sys, eutely.io; names = ('numba', 'h5py', 'zarr', 'pynwb', 'anndata', 'bioio'); "
        "print([n for n in names if n in sys.modules])"
    )
    assert python(code) == "[]"


def test_functions_stay_functions_after_all_rooms_were_imported() -> None:
    code = """
import importlib, pkgutil, types, eutely
for module in pkgutil.walk_packages(eutely.__path__, "eutely."):
    if not module.name.startswith(("eutely.napari", "eutely.cli")):
        importlib.import_module(module.name)
bad = [n for n in eutely.__all__ if isinstance(getattr(eutely, n), types.ModuleType)]
from eutely import annotate, match, orient, simulate, solve, synchronise
bad += [f for f in (annotate, match, orient, simulate, solve, synchronise) if not callable(f)]
print(bad)
"""
    assert python(code) == "[]"


def test_no_function_hides_a_room() -> None:
    """``import eutely.find.learn.stages as stages`` works, as for any other package."""
    code = """
import importlib, pkgutil, sys, eutely
hidden = []
for room in pkgutil.walk_packages(eutely.__path__, "eutely."):
    if room.ispkg and not room.name.startswith(("eutely.napari", "eutely.cli")):
        package = importlib.import_module(room.name)
        parent, _, last = room.name.rpartition(".")
        if getattr(sys.modules[parent], last) is not package:
            hidden.append(room.name)
print(hidden)
"""
    assert python(code) == "[]"


def test_errors_of_users_are_of_one_kind() -> None:
    with pytest.raises(EutelyError, match=r"nowhere\.csv"):
        eutely.read("nowhere.csv")
    with pytest.raises(EutelyError, match="nowhere"):
        eutely.Atlas.load("nowhere")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("surface") / "run"


@pytest.fixture(scope="module")
def built(folder: Path) -> Built:
    cohort = eutely.simulate(specimens=4, cells=40, variation=0.5, missing=0.05, spurious=0.05)
    return eutely.build(
        cohort, folder, config=resolve(overrides={"refine.folds": 2}), supervised=True, workers=1
    )


def test_an_atlas_is_loaded_by_name_file_or_folder(
    built: Built, folder: Path, tmp_path: Path
) -> None:
    assert len(eutely.Atlas.load("celegans-l1")) == 558
    built.atlas.save(tmp_path / "first.h5")
    again = eutely.Atlas.load(tmp_path / "first.h5")
    again.save(str(tmp_path / "second.h5"))
    assert (tmp_path / "first.h5").read_bytes() == (tmp_path / "second.h5").read_bytes()
    assert again.names == built.atlas.names
    np.testing.assert_array_equal(eutely.Atlas.load(folder).means, again.means)
    np.testing.assert_array_equal(eutely.Atlas.load(str(folder)).means, again.means)


def test_annotations_are_tables(built: Built) -> None:
    (new,) = eutely.simulate(specimens=1, cells=40, variation=0.5, seed=4, spurious=0.2)
    (annotation,) = eutely.annotate(built.atlas, [new], workers=1)
    assert isinstance(annotation, Annotation)
    table = annotation.to_frame()
    columns = ["specimen", "id", "cell", "name", "confidence", "x", "y", "z", "mirrored"]
    assert list(table.columns) == columns
    assert len(table) == len(new)
    assert (table["specimen"] == new.name).all()
    assert table["id"].tolist() == new.ids.tolist()
    unmatched = annotation.cells < 0
    assert unmatched.any()
    np.testing.assert_array_equal(table["cell"].isna(), unmatched)
    assert table["cell"].dropna().tolist() == annotation.cells[~unmatched].tolist()
    np.testing.assert_array_equal(table["confidence"], annotation.confidence)
    np.testing.assert_array_equal(table[["x", "y", "z"]], annotation.places)


def test_builds_are_tables(built: Built) -> None:
    table = built.to_frame()
    assert list(table.columns) == ["specimen", "id", "cell", "name", "confirmed"]
    assert len(table) == sum(map(len, built.specimens))
    confirmed = table[table["cell"].notna()].groupby("specimen")["confirmed"].mean()
    np.testing.assert_allclose(confirmed.sort_index(), built.consistency())
    cells = np.concatenate(built.cells)
    assert table["cell"].isna().tolist() == (cells < 0).tolist()
    names = [built.atlas.names[cell] if cell >= 0 else "" for cell in cells]
    assert table["name"].tolist() == names


def test_every_noun_shows_itself_in_one_line(built: Built) -> None:
    from eutely.candidates import Candidates, PairCosts
    from eutely.cliques import Matchings
    from eutely.learned import Learned, Parameters
    from eutely.pose import framed, oriented
    from eutely.problem import PairProblem
    from eutely.results import Report

    worms = list(built.specimens)
    frame = framed([oriented(worm) for worm in worms[:2]], (), scale=True, smooth=True)
    match, pose = eutely.match(*worms[:2]), oriented(worms[0]).poses[0]
    pairs = Matchings.from_pairs([len(worm) for worm in worms[:2]], {(0, 1): match.partners})
    problem = PairProblem.from_arrays((2, 2), [[0, 0], [1, 1]], [-1.0] * 2, [[0, 1]], [1.5])
    parameters = Parameters((1, 1, 1), (1, 1, 1), (1, 1, 1))
    comparison = eutely.compare(
        built.atlas,
        {"a": worms[:3], "b": eutely.simulate(3, cells=40, seed=9)},
        design=eutely.Design(permutations=19),
        workers=1,
    )
    nouns = [
        worms[0], built, built.atlas, built.fits[0], match, pose, pairs, problem, comparison,
        eutely.evaluate(built.atlas, worms[:1], workers=1), eutely.solve(problem, bound=True),
        eutely.synchronise(pairs), Candidates.every(2, 3), PairCosts.of_table(np.eye(2)), frame,
        Report(), parameters, Learned(parameters, (0,), (), {}), eutely.Config(),
        eutely.Design(), eutely.Design(covariates={f"column {k}": {} for k in range(9)}),
        resolve(preset="paper"),
    ]  # fmt: skip
    for noun in nouns:
        assert "\n" not in repr(noun)
        assert len(repr(noun)) <= 100, repr(noun)
    assert repr(eutely.Config(seed=1)) == "<Config: seed=1>"
    assert repr(eutely.Config()) == str(eutely.Config()) == "<Config: default>"


BAD = "<img src=x onerror=alert(1)>"


def test_notebooks_show_short_tables_that_escape_what_users_wrote(built: Built) -> None:
    specimen = Specimen.from_arrays(
        BAD, np.eye(4)[:, :3], features={BAD: np.arange(4.0)}, names=[BAD, "", "", ""]
    )
    atlas = replace(
        built.atlas, unit=BAD, features=(BAD,), feature_means=np.zeros((len(built.atlas), 1))
    )
    outliers = {BAD: BAD}
    for shown in (specimen, atlas, replace(built, atlas=atlas, outliers=outliers)):
        page = shown._repr_html_()
        assert "<table" in page
        assert "<img" not in page
        assert len(page) < (200_000 if shown is atlas else 2000)
    assert "&lt;img" in specimen._repr_html_()
    assert "4" in specimen._repr_html_()
    assert f"<td>{len(built.atlas)}</td>" in built.atlas._repr_html_()
    assert f"<td>{len(built.specimens)}</td>" in built._repr_html_()


MOST_PARAMETERS, MOST_LINES, MOST_FILES = 7, 400, 260


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    marks = ("kernel", "inner", "inlined", "bare")
    return any(isinstance(one, ast.Name) and one.id in marks for one in decorators)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    several = [one for one in (given.vararg, given.kwarg) if one is not None]
    names = [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs, *several]]
    return [name for name in names if name not in ("self", "cls")]


def test_functions_take_few_parameters() -> None:
    """Kernels take arrays one by one; commands have an option for each thing a user can say."""
    long = []
    for path in modules():
        if "cli" in path.relative_to(SOURCE).parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        long += [
            f"{path.relative_to(SOURCE)}:{function.lineno} {function.name}"
            for function in functions(tree)
            if not is_kernel(function) and len(parameters(function)) > MOST_PARAMETERS
        ]
    assert long == []


def test_modules_are_short_and_few() -> None:
    lines = {
        str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules()
    }
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
    assert len(lines) <= MOST_FILES
