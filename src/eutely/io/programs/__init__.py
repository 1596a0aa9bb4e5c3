"""Files of other programs, recognised by their content; each becomes a `Recording`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eutely.io.programs.acetree import is_acetree, is_epic, read_acetree, read_epic
from eutely.io.programs.geff import is_geff, read_geff
from eutely.io.programs.neuropal import is_neuropal, read_neuropal
from eutely.io.programs.recording import Recording
from eutely.io.programs.spots import is_imaris, is_mastodon, read_imaris, read_mastodon
from eutely.io.programs.trackmate import (
    is_trackmate_table,
    is_trackmate_xml,
    read_trackmate_table,
    read_trackmate_xml,
)

__all__ = ["PROGRAMS", "Program", "Recording", "program_of"]


class Program(NamedTuple):
    """A kind of file of another program.

    Attributes
    ----------
    suffix
        of the file's name, "" for a folder.
    recognises
        whether a file is of this kind, by its beginning.
    read
        all of it.
    """

    suffix: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path], Recording]


PROGRAMS = (
    Program(".zip", is_acetree, read_acetree),
    Program(".xml", is_trackmate_xml, read_trackmate_xml),
    Program(".csv", is_epic, read_epic),
    Program(".csv", is_trackmate_table, read_trackmate_table),
    Program(".csv", is_mastodon, read_mastodon),
    Program(".csv", is_imaris, read_imaris),
    Program(".csv", is_neuropal, read_neuropal),
    Program("", is_geff, read_geff),
)
"""All kinds. Append one to add a format; docs/extending.md shows how."""


def program_of(path: Path) -> Program | None:
    """Return the kind of file at ``path``, or None if it is of no program listed."""
    folder, suffix = path.is_dir(), path.suffix.lower()
    for program in PROGRAMS:
        fits = folder if not program.suffix else not folder and suffix == program.suffix
        if fits and program.recognises(path):
            return program
    return None
