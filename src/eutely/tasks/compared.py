"""Files that a comparison leaves: tables, the page, figures, methods."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

from eutely.comparison import Comparison
from eutely.comparison.words import methods
from eutely.errors import install
from eutely.execute import Progress, silent
from eutely.io.whole import new_bytes, new_text
from eutely.io.written import tables_in
from eutely.report.compared import render_comparison

log = logging.getLogger("eutely")

TABLE, PAGE, METHODS = "compare.csv", "compare.html", "methods.txt"
"""The table of cells and tests, the page, and the methods for a paper."""

FIGURES = ("volcano", "shifts", "detectable")
"""Figures of a comparison; several contrasts have several of each."""


def written_files(contrasts: int = 1) -> list[str]:
    """Return the names of the files that `write_comparison` writes."""
    ends = [""] if contrasts == 1 else [f"-{number + 1}" for number in range(contrasts)]
    figures = [f"{name}{end}.{kind}" for name in FIGURES for end in ends for kind in ("svg", "pdf")]
    tables = ["details.csv", "sets.csv", "pairs.csv", "animals.csv"]
    return [TABLE, PAGE, METHODS, *tables, *figures]


def write_comparison(
    comparison: Comparison, folder: Path, command: str = "", progress: Progress = silent
) -> None:
    """Write all files of a comparison, or none; tables that a person changed are kept as ``.bak``.

    Parameters
    ----------
    comparison
        to write.
    folder
        for the files.
    command
        that repeats it.
    progress
        callback.
    """
    from importlib.metadata import version

    tables = {
        TABLE: comparison.to_frame(),
        "details.csv": comparison.details(),
        "sets.csv": comparison.set_frame(),
        "pairs.csv": comparison.pair_frame(),
        "animals.csv": comparison.whole_frame(),
    }
    with tables_in(folder) as aside:
        for name, table in tables.items():
            text = table.to_csv(index=False, lineterminator="\n")
            with new_text(aside / name) as file:
                file.write(text)
        texts = {
            METHODS: methods(comparison, version("eutely")) + "\n",
            PAGE: render_comparison(comparison, version("eutely"), command),
        }
        for name, text in texts.items():
            with new_text(aside / name) as file:
                file.write(text)
        if find_spec("matplotlib") is None:
            log.warning("no figures: they need matplotlib; %s", install("plots"))
            return
        from eutely.plots.compared import comparison_figures
        from eutely.plots.draw import encoded

        figures = comparison_figures(comparison)
        for number, (name, figure) in enumerate(figures.items()):
            progress("drawing figures", number, len(figures), name)
            for kind in ("svg", "pdf"):
                new_bytes(aside / f"{name}.{kind}", encoded(figure, kind))
