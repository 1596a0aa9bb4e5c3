"""All writing goes through one module: no other one opens a file for writing, moves or deletes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "eutely"

WRITER = "io/whole.py"

ANYWHERE = {
    "write_text", "write_bytes", "touch", "mkdir", "makedirs", "rmdir", "unlink", "rename",
    "symlink_to", "hardlink_to", "symlink", "link", "rmtree", "copyfile", "copy2", "copytree",
    "copyfileobj", "truncate", "tofile", "chmod",
    "mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory",
    "SpooledTemporaryFile", "FileHandler", "RotatingFileHandler", "memmap", "open_memmap",
    "savez", "savez_compressed", "savetxt", "removedirs", "renames", "mknod", "mkfifo",
    "make_archive", "extractall", "extract", "pwrite", "sendfile",
}  # fmt: skip
"""Functions and methods that write or delete, whatever they belong to."""

OF_MODULES = {
    "os": {"replace", "remove", "open", "write", "fdopen", "ftruncate"},
    "shutil": {"copy", "move"},
    "np": {"save"}, "numpy": {"save"},
    "io": {"FileIO", "open_code"},
    "zarr": {"create_group", "create_array", "save", "open_group"}, "nrrd": {"write"},
    "sqlite3": {"connect"}, "shelve": {"open"}, "dbm": {"open"},
}  # fmt: skip
"""Further functions of single modules, whose names others have too."""

OPENERS = {"open", "File", "ZipFile", "LZMAFile", "GzipFile", "BZ2File", "TarFile"}
"""What opens a file by a path, for reading unless its mode says otherwise."""

GIVEN_A_FILE = {"imwrite", "TiffWriter", "write_table", "ParquetWriter", "write_h5ad", "savefig",
                "save_array"}  # fmt: skip
"""Writers of libraries: they get an open file or a new folder of `eutely.io.whole`."""

ALLOWED = {
    ("kernel.py", "mkdir"), ("kernel.py", "TemporaryFile"),  # the cache of compiled code
    ("cli/warm.py", "touch"),  # a mark in that cache
    ("cli/progress.py", "open"),  # the null device, after a broken pipe
    ("store/files.py", "truncate"), ("store/folder.py", "truncate"),  # of a file of `growing`
    ("curate/session.py", "replace"),  # of a specimen in a cohort
    ("cli/show.py", "mkdtemp"),  # the folder of a page that has none
    ("tasks/export.py", "to_excel"),  # into memory
    ("io/h5ad.py", "write_h5ad"),  # into a folder of `scratch`: AnnData wants a path
}  # fmt: skip


def test_the_list_of_exceptions_is_not_longer_than_needed() -> None:
    assert {(place, name) for place, name, _ in writers()} & ALLOWED == ALLOWED


def test_no_other_module_writes() -> None:
    found = [
        f"{place}:{line}: {name}" for place, name, line in writers() if (place, name) not in ALLOWED
    ]
    assert not found, "files are written through eutely.io.whole only"


@pytest.mark.parametrize(
    "line",
    [
        "path.open('w')", "open(path, 'ab')", "open(path, mode='r+')", "h5py.File(path, 'a')",
        "h5py.File(path)", "path.write_text('x')", "table.to_csv(path)", "os.replace(a, b)",
        "tifffile.imwrite(path, x)", "zarr.create_group(path)", "np.save(path, x)",
        "ZipFile(path, 'w')", "lzma.open(path, mode=m)", "logging.FileHandler(path)",
        "zarr.open(path)", "a.replace(b)", "nrrd.write(path, x)", "frame.to_parquet(path)",
    ],
)  # fmt: skip
def test_what_writes_is_recognised(line: str) -> None:
    assert list(writes(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "path.open()", "open(path, 'rb')", "h5py.File(path, 'r')", "table.to_csv(index=False)",
        "with new_file(p) as file:\n    tifffile.imwrite(file, x)", "'a'.replace('b', 'c')",
        "memory = io.BytesIO()\nh5py.File(memory, 'w')", "zarr.open(path, mode='r')",
        "zarr.create_group(new_folder(path))", "replace(atlas, names=())",
    ],
)  # fmt: skip
def test_what_does_not_write_is_not(line: str) -> None:
    assert not list(writes(ast.parse(line)))


def writers() -> Iterator[tuple[str, str, int]]:
    """Yield module, function and line of each call outside of the writer that may write."""
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if place != WRITER:
            for name, line in writes(ast.parse(path.read_text(encoding="utf-8"))):
                yield place, name, line


def writes(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield name and line of each call that may write to a path."""
    ours, known = set(files_of_ours(tree)), set(functions_of_ours(tree))
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        module, name = called(call.func)
        given = any(is_ours(argument, ours) for argument in call.args[:2])
        if (module or name not in known) and may_write(call, module, name, given):
            yield name, call.lineno


def may_write(call: ast.Call, module: str, name: str, given: bool) -> bool:
    """Return whether a call may write to a path; ``given``: it gets a file that is open."""
    if name in ANYWHERE:
        return True
    if name in OF_MODULES.get(module, ()) or name in GIVEN_A_FILE:
        return not given and not (name == "open_group" and reads(call, name, module))
    if name in OPENERS and module != "webbrowser":
        return not given and not reads(call, name, module)
    if name in TO_FILES:
        return bool(call.args) or any(key.arg in TO_PATHS for key in call.keywords)
    # Path.replace; that of texts has two arguments.
    return name == "replace" and bool(module) and len(call.args) == 1 and not call.keywords


TO_FILES = {"to_csv", "to_parquet", "to_json", "to_excel", "to_hdf", "to_pickle", "to_feather",
            "to_zarr", "to_html"}  # fmt: skip
TO_PATHS = {"path", "path_or_buf", "excel_writer"}


def is_ours(argument: ast.expr, files: set[str]) -> bool:
    """Return whether an argument is an open file, or a new folder, of `eutely.io.whole`."""
    if isinstance(argument, ast.Call):
        return called(argument.func)[1] == "new_folder"
    return isinstance(argument, ast.Name) and argument.id in files


def called(function: ast.expr) -> tuple[str, str]:
    """Return the object and the name of what is called."""
    if isinstance(function, ast.Name):
        return "", function.id
    if isinstance(function, ast.Attribute):
        owner = function.value
        last = owner.id if isinstance(owner, ast.Name) else "?"
        return last, function.attr
    return "", ""


def reads(call: ast.Call, name: str, module: str) -> bool:
    """Return whether a file is opened for reading only, as far as the source shows it."""
    mode: ast.expr | None = next((k.value for k in call.keywords if k.arg == "mode"), None)
    builtin = name == "open" and module in ("", "io", "lzma", "gzip", "bz2", "zarr", "h5py", "os")
    place = 0 if name == "open" and not builtin else 1
    if mode is None and len(call.args) > place:
        mode = call.args[place]
    if mode is None:
        return (module, name) not in {("h5py", "File"), ("zarr", "open")}
    text = mode.value if isinstance(mode, ast.Constant) else None
    return isinstance(text, str) and not set(text) & set("wax+")


def functions_of_ours(tree: ast.AST) -> Iterator[str]:
    """Yield names of functions of the package: what they do is looked at where they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("eutely."):
            yield from (each.asname or each.name for each in node.names)


def files_of_ours(tree: ast.AST) -> Iterator[str]:
    """Yield names of files that `eutely.io.whole` has opened, and of buffers in memory."""
    makers = {"new_file", "new_text", "growing", "changing", "BytesIO", "StringIO"}
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and isinstance(node.context_expr, ast.Call):
            if called(node.context_expr.func)[1] in makers and isinstance(
                node.optional_vars, ast.Name
            ):
                yield node.optional_vars.id
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and called(node.value.func)[1] in makers
            and isinstance(node.targets[0], ast.Name)
        ):
            yield node.targets[0].id
        elif isinstance(node, ast.arg) and isinstance(node.annotation, ast.Name):
            # A function that is given an open file: whoever opened it is looked at.
            yield from [node.arg] if node.annotation.id in ("BinaryIO", "TextIO") else []
