"""Build the atlas ``celegans-embryo-350`` that comes with the package from all named embryos.

Needs the real data (``EUTELY_DATA``): 116 embryos at the 350-cell stage.

    python benchmarks/embryo_atlas.py
"""

from dataclasses import replace

import eutely
from eutely.io.atlas import BUILT_IN
from worms import DATA

NAME = "celegans-embryo-350"

SOURCE = {
    "organism": "C. elegans",
    "stage": "embryo, 350 cells",
    "source": "116 embryos of the EPIC database (Murray et al., Genome Research 22, 2012)",
    "cells": "from names of the lineage; places only, one radius",
}

FEWEST = 12
"""Embryos in which a cell must occur, a tenth: divisions around this stage differ in time."""


def main() -> None:
    embryos = eutely.read(DATA / "epic" / "epic_350cell.csv")
    atlas = eutely.build(embryos, supervised=True).atlas
    kept = atlas.take(atlas.seen >= FEWEST)
    path = BUILT_IN / f"{NAME}.h5"
    replace(kept, provenance=SOURCE).save(path)
    print(f"{NAME}: {len(kept)} of {len(atlas)} cells, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
