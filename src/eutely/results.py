"""What a page or a figure shows: the noun `Report`, one entry for each specimen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.errors import EutelyError
from eutely.evaluation import Evaluation
from eutely.learned import Trial


@dataclass(frozen=True, eq=False)
class Shown:
    """One specimen of a report: ``n`` nuclei and the cell of each.

    Attributes
    ----------
    name
        of the individual.
    positions
        (n, 3) float64, nuclei in the frame of the atlas.
    cells
        (n,) int32, cell of the atlas, or -1.
    confidence
        (n,) float64 in 0 .. 1, NaN where not known.
    ids
        (n,) int64, ids of the nuclei in the input.
    names
        n true names, "" where not known, for accuracy; () if there are none.
    alternatives
        for each nucleus other cells that it may be: (cell, share) each, the likeliest first; () if
        not known.
    consistency
        share of its nuclei whose cell the other specimens confirm, 0 .. 1; NaN where not known.
    outlier
        why the specimen should be looked at, a plain sentence; "" if it is fine.
    """

    name: str
    positions: NDArray[np.float64]
    cells: NDArray[np.int32]
    confidence: NDArray[np.float64]
    ids: NDArray[np.int64]
    names: tuple[str, ...] = ()
    alternatives: tuple[tuple[tuple[int, float], ...], ...] = ()
    consistency: float = float("nan")
    outlier: str = ""

    def __post_init__(self) -> None:
        count = len(self.cells)
        if np.shape(self.positions) != (count, 3):
            raise EutelyError(
                f"{self.name}: positions of shape {np.shape(self.positions)}, expected {(count, 3)}"
            )
        for what in ("confidence", "ids"):
            if len(getattr(self, what)) != count:
                raise EutelyError(f"{self.name}: {len(getattr(self, what))} {what}, {count} nuclei")
        for what in ("names", "alternatives"):
            if len(getattr(self, what)) not in (count, 0):
                raise EutelyError(f"{self.name}: {len(getattr(self, what))} {what}, {count} nuclei")

    def __len__(self) -> int:
        """Return the number of nuclei."""
        return len(self.cells)


@dataclass(frozen=True, eq=False)
class Report:
    """Everything a page shows besides the atlas; what is absent is left out of the page.

    Attributes
    ----------
    kind
        what was done: the page is about a cohort, about new individuals, or about an atlas alone.
    specimens
        in the order of the slider.
    trials
        of all stages of learning, in order. A trial with two losses is a point of a Pareto front.
    chosen
        stage -> number of the trial whose parameters were taken.
    parameters
        that were learned: plain values, nested.
    timings
        (step, seconds) in the order in which the steps ran.
    command
        that repeats the run.
    versions
        of the software: package -> version.
    config
        the resolved settings, TOML.
    evaluation
        accuracy against known names; the table of confused cells needs `Shown.names` as well.
    """

    kind: Literal["build", "annotate", "atlas"] = "build"
    specimens: tuple[Shown, ...] = ()
    trials: tuple[Trial, ...] = ()
    chosen: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    timings: tuple[tuple[str, float], ...] = ()
    command: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    config: str = ""
    evaluation: Evaluation | None = None

    def check(self, atlas: Atlas) -> None:
        """Raise an error unless all cells of the report are cells of ``atlas``."""
        for shown in self.specimens:
            if len(shown) and not UNMATCHED <= shown.cells.min() <= shown.cells.max() < len(atlas):
                raise EutelyError(
                    f"{shown.name}: its cells are not among the {len(atlas)} of the atlas; the "
                    "report belongs to another atlas"
                )
