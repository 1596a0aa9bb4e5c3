"""Atlases as things that are shared: imported, renamed, named by another, reduced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from eutely.atlas import Atlas
from eutely.errors import AtlasError, ReadError
from eutely.estimate.given import atlas_of_means
from eutely.io.atlas import checksum
from eutely.io.columns import read_columns
from eutely.io.exchange import DESCRIPTION, read_exported
from eutely.io.headings import with_words
from eutely.io.means import read_means
from eutely.specimen import Specimen
from eutely.tasks.annotate import annotate


class Merged(NamedTuple):
    """An atlas with names of another.

    Attributes
    ----------
    atlas
        with names where it had none.
    added
        number of cells that got a name.
    differing
        names of cells that have another name in the other atlas: own name -> other name.
    """

    atlas: Atlas
    added: int
    differing: Mapping[str, str]


def import_atlas(path: Path, *, part: str = "head", specimens: int = 1) -> Atlas:
    """Return an atlas from files of others.

    Parameters
    ----------
    path
        a folder of ``eutely atlas export``; a table with the columns name, x, y, z (and sx, sy,
        sz); or a statistical atlas of NeuroPAL_ID (``.mat``).
    part
        of the body, in a ``.mat``.
    specimens
        number of specimens that means were estimated from, if known.
    """
    if path.is_dir():
        if not (path / DESCRIPTION).is_file():
            raise ReadError(f"{path}: no {DESCRIPTION}; expected a folder of 'eutely atlas export'")
        return read_exported(path)
    means = read_means(path, part)
    atlas = atlas_of_means(means.specimen, means.covariances, specimens)
    return atlas.described(
        cells="means and covariances of others; how cells move together is assumed",
        source=path.name,
        **{key.replace(" ", "_"): text for key, text in means.about.items()},
    )


def new_names(path: Path) -> dict[str, str]:
    """Read a table of names: the columns ``name`` (or ``cell``, a number) and ``new``."""
    table = with_words(read_columns(path), ("name", "cell", "new"))
    key = next((key for key in ("name", "cell") if key in table.fields), None)
    if key is None or "new" not in table.fields:
        raise ReadError(f"{path}: expected the columns name (or cell) and new")
    olds = [text.strip() for text in table.fields[key]]
    twice = next((old for old in olds if olds.count(old) > 1), None)
    if twice is not None:
        raise ReadError(f"{path}: {twice} is there twice; keep one")
    return {
        f"#{old}" if key == "cell" else old: new.strip()
        for old, new in zip(olds, table.fields["new"], strict=True)
    }


def renamed(atlas: Atlas, names: Mapping[str, str]) -> Atlas:
    """Return an atlas with some names replaced.

    Parameters
    ----------
    atlas
        with or without names.
    names
        old name -> new one, or ``#12`` -> name of cell 12; an empty new name removes it.
    """
    numbers = {f"#{number}": number for number in range(len(atlas))}
    places = {name: number for number, name in enumerate(atlas.names) if name} | numbers
    unknown = [old for old in names if old not in places]
    if unknown:
        raise AtlasError(f"the atlas has no cell {unknown[0]} ({len(unknown)} such names)")
    result = list(atlas.names)
    for old, new in names.items():
        result[places[old]] = new
    given = [name for name in result if name]
    twice = next((name for name in given if given.count(name) > 1), None)
    if twice is not None:
        raise AtlasError(f"two cells would be called {twice}; names must differ")
    return atlas.named(result)


def merge_names(atlas: Atlas, other: Atlas) -> Merged:
    """Return an atlas with the names of another for cells that have none.

    The cells of the other atlas are matched with this one as if they were the nuclei of a specimen;
    names do not take part. Names that the atlas has stay.
    """
    if not any(other.names):
        raise AtlasError("the other atlas has no names")
    cells = Specimen.from_arrays("other", other.means, radii=other.radii, unit=other.unit)
    [annotation] = annotate(atlas, [cells], adapt=False)
    names, taken = list(atlas.names), set(atlas.names)
    added, differing = 0, {}
    for cell, name in zip(annotation.cells.tolist(), other.names, strict=True):
        if cell < 0 or not name:
            continue
        if not names[cell] and name not in taken:
            names[cell] = name
            added += 1
        elif names[cell] and names[cell] != name:
            differing[names[cell]] = name
    return Merged(atlas.named(names), added, differing)


def subset(atlas: Atlas, patterns: Sequence[str]) -> Atlas:
    """Return the atlas of the cells whose names match any of the patterns, such as ``AV*``."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in atlas.names if name):
            raise AtlasError(f"no cell of the atlas is called {pattern}")
    kept = [
        bool(name) and any(fnmatchcase(name, pattern) for pattern in patterns)
        for name in atlas.names
    ]
    return atlas.take(kept)


def summary(atlas: Atlas) -> dict[str, str]:
    """Return what to tell about an atlas: what it is, what it holds, where it comes from."""
    named = sum(map(bool, atlas.names))
    length, width = atlas.size
    hands = ((origin, *atlas.hands_of(origin)) for origin in atlas.origins)
    return {
        "content": f"{len(atlas)} cells, {named} named, {int(atlas.rare.sum())} rare",
        "specimens": str(atlas.specimens),
        "features": ", ".join(atlas.features) or "none",
        "length x width": f"{length:.4g} x {width:.4g} {atlas.unit} (SD)",
        "model": atlas.model,
        "origins": "; ".join(f"{key}: {a} as they are, {b} mirrored" for key, a, b in hands)
        or "not known",
        **dict(atlas.provenance),
        "checksum": checksum(atlas),
    }
