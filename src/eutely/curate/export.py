"""Export of a folder of annotations, with the corrections made in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from eutely.curate.folder import open_material
from eutely.curate.session import Session
from eutely.errors import EutelyError, ReadError, WriteError
from eutely.execute import Progress, silent
from eutely.io.nwb_write import about_of, read_about
from eutely.tasks import export as kinds_of
from eutely.tasks.inputs import check_progress, kind


def export(
    folder: str | PathLike[str],
    kinds: str | Sequence[str] = "csv",
    output: str | PathLike[str] | None = None,
    *,
    h5ad: str | PathLike[str] | None = None,
    about: str | PathLike[str] | Mapping[str, Any] | None = None,
    min_confidence: float = 0.0,
    progress: Progress = silent,
) -> list[Path]:
    """Write the results of a folder for other programs, with all corrections made so far.

    Parameters
    ----------
    folder
        of ``eutely annotate`` or ``eutely curate``.
    kinds
        one or several of ``csv``, ``excel``, ``h5ad``, ``nwb`` and ``labels``.
    output
        folder to write into; by default ``export`` in the folder.
    h5ad
        file of AnnData, which ends in ``.h5ad``; by default ``annotations.h5ad`` in ``output``.
    about
        what is known about the recordings, for NWB: a TOML file, or its content as a dict.
    min_confidence
        nuclei with a lower confidence get no cell.
    progress
        callback for long-running work.

    Returns
    -------
    list of Path
        the files and folders written.
    """
    wanted = [kinds] if isinstance(kinds, str) else list(kinds)
    place = Path(_path("folder", folder))
    target = place / "export" if output is None else Path(_path("output", output))
    anndata = None if h5ad is None else Path(_path("h5ad", h5ad))
    check_progress(progress)
    if not place.is_dir():
        raise ReadError(f"{place}: not a folder; give one of eutely annotate or eutely curate")
    if target.exists() and not target.is_dir():
        raise WriteError(f"{target} is a file; give a folder")
    if target.resolve() == place.resolve():
        raise EutelyError(f"{target} is the folder itself; give another one to write into")
    if anndata is not None and anndata.suffix != ".h5ad":
        raise EutelyError(f"{anndata}: expected a name that ends in .h5ad")
    if not (isinstance(min_confidence, int | float) and 0 <= min_confidence <= 1):
        raise EutelyError(f"min_confidence is {min_confidence!r}; give a number from 0 to 1")
    if about is not None and "nwb" not in wanted:
        raise EutelyError("about is for nwb; export that too, or leave it out")
    kinds_of.check_kinds(wanted)
    known = None
    if isinstance(about, Mapping):
        known = about_of(about, "about")
    elif about is not None:
        known = read_about(Path(_path("about", about)))
    session = Session(open_material(place), read_only=True)
    try:
        results = session.results()
    finally:
        session.close()
    return kinds_of.export(
        results.sure(min_confidence), target, wanted, h5ad=anndata, about=known, progress=progress
    )


def _path(what: str, given: object) -> str:
    if not isinstance(given, str | PathLike):
        raise EutelyError(f"{what}: expected a path, found {kind(given)}")
    return str(fspath(given))
