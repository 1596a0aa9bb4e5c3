"""The noun `Report`: what a page or a figure shows besides the atlas."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.evaluation import Evaluation
from eutely.learned import Trial
from eutely.specimen import UNMATCHED


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
        for each nucleus the other cells that it may be, as (cell, share), likeliest first; () if
        not known.
    consistency
        share of its nuclei whose cell the other specimens confirm, 0 .. 1; NaN where not known.
    outlier
        why the specimen should be checked, a plain sentence; "" if it is fine.
    note
        whether it is a mirror image, and which part of the atlas it shows; "" for a whole specimen.
    colours
        (n, 3) uint8, red, green and blue of the nuclei; (0, 3) where these are not known.
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
    note: str = ""
    colours: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 3), np.uint8))

    def __post_init__(self) -> None:
        count = len(self.cells)
        if np.shape(self.positions) != (count, 3):
            raise EutelyError(
                f"{self.name}: 'positions' has shape {np.shape(self.positions)}, expected "
                f"{(count, 3)}"
            )
        for what in ("confidence", "ids", "names", "alternatives", "colours"):
            length = len(getattr(self, what))
            absent = length == 0 and what in ("names", "alternatives", "colours")
            if length != count and not absent:
                raise EutelyError(
                    f"{self.name}: '{what}' has {length} entries, expected one for each of the "
                    f"{count} nuclei"
                )

    def __repr__(self) -> str:
        return f"<Shown {self.name}: {len(self)} nuclei>"

    def __len__(self) -> int:
        """Return the number of nuclei."""
        return len(self.cells)


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that a page shows besides the atlas; the page says what is absent.

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
        that were learned; plain values, possibly nested.
    timings
        (step, seconds) in the order in which the steps ran; a step that ran twice is there twice.
    command
        that repeats the run.
    versions
        of the software: package -> version.
    config
        the resolved settings, TOML.
    evaluation
        accuracy against known names; the table of confused cells needs `Shown.names` as well.
    pins
        (specimen, id, name or number of the cell) of nuclei that a person settled; "" for no cell.
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
    pins: tuple[tuple[str, int, str], ...] = ()

    def __repr__(self) -> str:
        return f"<Report of {self.kind}: {len(self.specimens)} specimens>"

    def check(self, atlas: Atlas) -> None:
        """Raise an error unless all cells of the report are cells of ``atlas``, or -1."""
        for shown in self.specimens:
            if len(shown) and not UNMATCHED <= shown.cells.min() <= shown.cells.max() < len(atlas):
                raise EutelyError(
                    f"{shown.name}: some of its cells are not among the {len(atlas)} cells of the "
                    "atlas; the report belongs to another atlas"
                )
