"""Annotations in NWB files: a copy of the file with new columns; what people state about it.

A column of a table (``VectorData``) is a dataset with a description, its type and an id, listed in
the ``colnames`` of the table. Nothing else in the file is touched, whichever extensions it uses;
pynwb then verifies that the copy is as valid as the file itself.
"""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from eutely.annotation import Annotation
from eutely.errors import EutelyError, ReadError, WriteError, install
from eutely.io.limits import check_memory, check_regular
from eutely.io.nwb import segmentation
from eutely.io.nwb_file import opened
from eutely.io.whole import changing, copy, whole

COLUMNS = {
    "eutely_cell": "number of the cell in the atlas by which eutely named this nucleus; -1: none",
    "eutely_name": "name that eutely gave to this nucleus; empty where it has none",
    "eutely_confidence": "probability, 0 to 1, that this name is right; NaN without a cell",
}
"""Columns that are added to a segmentation, and what they mean."""


SESSION = {
    "session_description": str, "experiment_description": str, "experimenter": list,
    "lab": str, "institution": str, "keywords": list, "related_publications": list,
    "session_start_time": datetime,
}  # fmt: skip
SUBJECT = {
    "subject_id": str, "species": str, "sex": str, "age": str, "growth_stage": str, "strain": str,
    "genotype": str, "description": str, "cultivation_temp": float,
}  # fmt: skip
"""What ``--about`` may state about the recording, and in its table ``subject`` about the animal."""


@dataclass(frozen=True)
class About:
    """What a person states about recordings: values of `SESSION` and of `SUBJECT`."""

    session: Mapping[str, Any] = field(default_factory=dict)
    subject: Mapping[str, Any] = field(default_factory=dict)


def read_about(path: Path) -> About:
    """Read what a person states about recordings (TOML)."""
    check_regular(path)
    try:
        check_memory(path, 100 * path.stat().st_size, "a file of this size")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReadError(f"--about {path}: not TOML ({error}); see docs/neuropal.md") from error
    return about_of(given, f"--about {path}")


def about_of(given: Mapping[str, Any], where: str) -> About:
    """Return what a person states about recordings, verified; ``where`` it is, for errors."""
    session = dict(given)
    subject = session.pop("subject", {})
    if not isinstance(subject, Mapping):
        raise ReadError(f"{where}: subject is {subject!r}, expected a table")
    for table, known, more in ((session, SESSION, ", [subject]"), (subject, SUBJECT, "")):
        for key, value in table.items():
            kind = known.get(key)
            if kind is None:
                raise ReadError(
                    f"{where}: unknown key '{key}'; there are: {', '.join(known)}{more}"
                )
            if kind is float and isinstance(value, int | float):
                continue
            if not isinstance(value, kind):
                raise ReadError(f"{where}: {key} is {value!r}, expected {kind.__name__}")
    start = session.get("session_start_time")
    if start is not None and start.tzinfo is None:
        session["session_start_time"] = start.replace(tzinfo=UTC)
    return About(session, dict(subject))


def subject_of(provenance: Mapping[str, str]) -> dict[str, str]:
    """Return what an atlas says of the animals it is of; what is not known is said in NWB's way.

    >>> subject_of({"organism": "C. elegans, adult hermaphrodite"})
    {'age': 'P0D/', 'sex': 'XX', 'species': 'Caenorhabditis elegans'}
    """
    words = " ".join(provenance.get(key, "") for key in ("organism", "sex", "stage"))
    known = {"age": "P0D/", "sex": "U"}  # at least 0 days, unknown
    species = re.match(r"[A-Z][a-z]+ [a-z]+", words)
    if "C. elegans" in words:
        known["species"] = "Caenorhabditis elegans"
        known["sex"] = "XX" if "hermaphrodite" in words else "XO" if "male" in words else "U"
    elif species:
        known["species"] = species[0]
    return known


def check_pynwb() -> None:
    """Raise an error if the library is not installed; to be called before long work."""
    pynwb_library()


def pynwb_library() -> Any:
    """Return pynwb, or raise an error that says how to install it."""
    try:
        import pynwb
    except ImportError as error:
        raise EutelyError(f"--nwb: pynwb, which verifies files, is absent; {install('nwb')}") from (
            error
        )
    return pynwb


def write_annotated(
    source: Path, path: Path, annotation: Annotation, part: str | None = None
) -> None:
    """Write a copy of an NWB file in which the segmentation says what each nucleus is.

    The input is not changed. Columns of an earlier annotation are replaced.

    Parameters
    ----------
    source
        the file that was annotated.
    path
        of the copy; written completely or not at all.
    annotation
        one row per nucleus, in the order of the table.
    part
        name or path of the segmentation, where there are several.

    Raises
    ------
    WriteError
        if the copy would be less valid than the file.
    """
    with opened(source) as file:
        table = segmentation(file, source, part).path
        ids = file[table]["id"][()].tolist()
    if ids != annotation.ids.tolist():
        raise ReadError(
            f"{source}: the nuclei of {table} are not those that were annotated; annotate it again"
        )
    values: dict[str, list[Any]] = {
        "eutely_cell": annotation.cells.astype(np.int64).tolist(),
        "eutely_name": list(annotation.names),
        "eutely_confidence": annotation.confidence.tolist(),
    }
    with whole(path) as aside:
        copy(source, aside)
        with changing(aside) as file:  # it may be too large for the memory
            _add_columns(file, table, values)
        new = set(faults_of(aside)) - set(faults_of(source))
        if new:
            raise WriteError(f"cannot write {path}: not valid NWB ({min(new)[:160]})")


def object_id(*words: str) -> str:
    """Return an id of an object in a file, the same for the same words.

    >>> object_id("worm-1", "0")
    'be30752b-9cc2-5283-9700-acb738fbf04f'
    """
    return str(uuid5(NAMESPACE_URL, "/".join(("eutely", *words))))


def _add_columns(opened: BinaryIO, table: str, values: dict[str, list[Any]]) -> None:
    """Add columns to a table of an open file, or replace them."""
    import h5py

    text = h5py.string_dtype()
    with h5py.File(opened, "r+") as file:
        group = file[table]
        listed = [
            name.decode() if isinstance(name, bytes) else str(name)
            for name in group.attrs["colnames"]
        ]
        for key, column in values.items():
            if key in group:
                del group[key]
            data = group.create_dataset(
                key, data=column, dtype=text if isinstance(column[0], str) else None
            )
            data.attrs["description"] = COLUMNS[key]
            data.attrs["namespace"] = "hdmf-common"
            data.attrs["neurodata_type"] = "VectorData"
            data.attrs["object_id"] = object_id(str(group.attrs.get("object_id", table)), key)
        names = [*listed, *(key for key in values if key not in listed)]
        group.attrs.create("colnames", np.array(names, dtype=object), dtype=text)


def faults_of(path: Path) -> list[str]:
    """Return what pynwb's validator says about a file."""
    pynwb = pynwb_library()
    try:
        # Cached specifications may differ from the installed ones in harmless ways.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pynwb.NWBHDF5IO(str(path), "r", load_namespaces=True) as io:
                return [" ".join(str(fault).split()) for fault in pynwb.validate(io=io)]
    except Exception as error:  # noqa: BLE001  # hdmf has errors of many kinds
        return [f"pynwb cannot read it: {' '.join(str(error).split())}"]
