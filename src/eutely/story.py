"""What a page tells: an atlas and, where there are any, its specimens, learning, accuracy, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.evaluation import Evaluation

NO_CELL = -1
"""Cell of a nucleus that has none."""


@dataclass(frozen=True, eq=False)
class Shown:
    """One specimen of a page: ``n`` nuclei and the cell of each.

    Attributes
    ----------
    name
        of the individual.
    positions
        (n, 3) float64, nuclei in the frame of the atlas.
    cells
        (n,) int32, cell of the atlas, or -1.
    confidence
        (n,) float64 in 0 .. 1, NaN where not known; None if not known at all.
    ids
        (n,) int64, ids of the nuclei in the input; None: row numbers.
    names
        n true names, "" where not known, for accuracy; () if there are none.
    alternatives
        for each nucleus what else it may be: (cell, share) each, the likeliest first; () if not
        known.
    consistency
        share of its nuclei whose cell the other specimens confirm, 0 .. 1; NaN where not known.
    outlier
        why the specimen should be looked at, a plain sentence; "" if it is fine.
    """

    name: str
    positions: NDArray[np.float64]
    cells: NDArray[np.int32]
    confidence: NDArray[np.float64] | None = None
    ids: NDArray[np.int64] | None = None
    names: Sequence[str] = ()
    alternatives: Sequence[Sequence[tuple[int, float]]] = field(default=(), kw_only=True)
    consistency: float = float("nan")
    outlier: str = ""

    def __post_init__(self) -> None:
        count = len(self.cells)
        if np.shape(self.positions) != (count, 3):
            raise EutelyError(
                f"{self.name}: positions of shape {np.shape(self.positions)}, expected {(count, 3)}"
            )
        for what in ("confidence", "ids", "names", "alternatives"):
            given = getattr(self, what)
            if given is not None and len(given) not in (count, 0):
                raise EutelyError(f"{self.name}: {len(given)} {what} for {count} nuclei")

    def __len__(self) -> int:
        """Return the number of nuclei."""
        return len(self.cells)


@dataclass(frozen=True)
class Trial:
    """One trial of learning: ``values`` are its losses, lower is better."""

    stage: str
    number: int
    values: Sequence[float]
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Story:
    """Everything one page shows; all but the atlas may be absent, and the page says so.

    Attributes
    ----------
    atlas
        the cells.
    kind
        what was done: the page speaks of a cohort, of new individuals, or of the atlas alone.
    title
        headline; "" for one that fits ``kind``.
    specimens
        in the order of the slider.
    trials
        of all stages of learning, in order. A trial with two values is a point of a Pareto front.
    chosen
        stage -> number of the trial whose parameters were taken; the best one where not given.
    parameters
        what was learned: plain values, nested as they are.
    timings
        stage -> seconds, in order.
    command
        that repeats the run.
    versions
        of the software: package -> version.
    config
        the resolved settings, TOML.
    evaluation
        accuracy against known names; the table of confused cells needs `Shown.names` as well.
    """

    atlas: Atlas
    kind: Literal["build", "annotate", "atlas"] = "build"
    title: str = ""
    specimens: Sequence[Shown] = ()
    trials: Sequence[Trial] = ()
    chosen: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    evaluation: Evaluation | None = None

    def __post_init__(self) -> None:
        for one in self.specimens:
            if len(one) and not NO_CELL <= one.cells.min() <= one.cells.max() < len(self.atlas):
                raise EutelyError(
                    f"{one.name}: cells must be numbers of the {len(self.atlas)} cells, or -1"
                )
