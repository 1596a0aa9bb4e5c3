"""Build the atlas ``celegans-adult-head`` that comes with the package from all named heads.

Needs the real data (``EUTELY_DATA``). Positions in micrometres and raw NeuroPAL colours of the
heads of seven data sets; what is left out is said in `WITHOUT` and `cleaned`.

    python benchmarks/head_atlas.py
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import eutely
from eutely import Specimen
from eutely.io.atlas import BUILT_IN
from neuropal import heads

NAME = "celegans-adult-head"

SOURCE = {
    "organism": "C. elegans, adult hermaphrodite, neurons of the head",
    "source": "named heads of seven NeuroPAL data sets (NP, EY, HL, KK, SF, SK1, SK2) from the "
    "repository focolab/WormND, of the WormID corpus of NWB files",
    "cells": "from names; positions and raw colours (R, G, B), harmonised between laboratories",
}

WITHOUT = ("SK1_20221106-21-00-09", "SK1_20221106-21-23-19", "SK1_20230322-18-57-04")
"""Heads whose names exchange left and right: AQR and M1 lie on the wrong side of the named pairs,
and by these names the heads would be mirror images of all others of their microscope."""

FEWEST = 2
"""Heads in which a name must occur."""


def cleaned(specimens: list[Specimen]) -> list[Specimen]:
    """Return heads without names that are no cell: doubtful, without a side, or rare ones."""
    counts = Counter(name for specimen in specimens for name in specimen.names or () if name)

    def known(name: str) -> str:
        sideless = {f"{name}L", f"{name}R"} & set(counts)
        return "" if sideless or "-" in name or counts[name] < FEWEST else name

    return [
        replace(specimen, names=tuple(map(known, specimen.names or ()))) for specimen in specimens
    ]


def main() -> None:
    given = [head.specimen for head in heads("raw") if head.specimen.name not in WITHOUT]
    atlas = eutely.build(cleaned(given), supervised=True).atlas
    path = Path(BUILT_IN / f"{NAME}.h5")
    replace(atlas, provenance=SOURCE).save(path)
    print(f"{NAME}: {len(atlas)} cells, {len(given)} heads, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
