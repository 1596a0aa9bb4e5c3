"""What the page of a run or of an annotation tells, kept so that it can be written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.errors import EutelyError, ReadError
from eutely.evaluation import Evaluation, Score, majority_names
from eutely.io.atlas import read_atlas
from eutely.record import Record, read_record, write_record
from eutely.io.whole import whole
from eutely.tasks.records import annotations_of, annotations_saved
from eutely.report import Shown, Story, Trial, render
from eutely.specimen import Specimen

FILE = "story.npz"
PAGE = "report.html"


@dataclass(frozen=True, eq=False)
class Facts:
    """All that a page shows besides the atlas.

    Attributes
    ----------
    fits
        what the nuclei of each specimen were taken for.
    cells
        for each specimen (n,), the cell of each nucleus, or -1.
    names
        for each specimen n true names, or none.
    consistency
        for each specimen; NaN where not known.
    unlike
        specimens that do not fit -> in which way.
    scores
        accuracy of each specimen, where names are known.
    about
        plain values: ``parameters``, ``timings``, ``versions``, ``config``, ``command``,
        ``trials``, ``chosen``.
    """

    kind: Literal["build", "annotate"]
    fits: Sequence[Annotation]
    cells: Sequence[NDArray[np.int32]]
    names: Sequence[Sequence[str]]
    consistency: NDArray[np.float64]
    unlike: Mapping[str, str]
    scores: Sequence[Score] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


def names_of(specimens: Sequence[Specimen]) -> list[list[str]]:
    """Return the true names of each specimen, none where it has none."""
    return [list(one.names or ()) for one in specimens]


def write_page(folder: Path, atlas: Atlas, facts: Facts) -> None:
    """Write the page into ``folder``; for a run also what it is made of, to write it again."""
    record = _record(facts)
    if facts.kind == "build":
        write_record(folder / FILE, record)
    write_html(folder, _story(atlas, record))


def write_html(folder: Path, story: Story) -> None:
    """Write the page of a story into ``folder``."""
    with whole(folder / PAGE) as aside:
        aside.write_text(render(story), encoding="utf-8")


def read_story(folder: Path) -> Story:
    """Return what the page of a run folder tells."""
    if not (folder / FILE).exists():
        raise ReadError(f"{folder} holds no finished run (no {FILE}); run eutely build first")
    return _story(read_atlas(folder / "atlas.h5"), read_record(folder / FILE))


def _record(facts: Facts) -> Record:
    saved = annotations_saved(facts.fits)
    return Record(
        {
            **saved.arrays,
            "own": np.concatenate(facts.cells),
            "consistency": facts.consistency,
        },
        {
            **saved.metadata,
            "kind": facts.kind,
            "truth": [list(row) for row in facts.names],
            "unlike": dict(facts.unlike),
            "scores": [[one.specimen, one.named, one.correct] for one in facts.scores],
            "about": dict(facts.about),
        },
    )


def _story(atlas: Atlas, record: Record) -> Story:
    data, about = record.metadata, record.metadata["about"]
    fits = annotations_of(record)
    own = np.split(record.arrays["own"], np.cumsum(record.arrays["counts"])[:-1])
    if any(len(cells) and cells.max() >= len(atlas) for cells in own):
        raise EutelyError("the atlas is not the one of this run; build it again")
    if any(data["truth"]) and not any(atlas.names):
        # For the page only, so that it can say which cells are confused.
        truth = [row or [""] * len(cells) for row, cells in zip(data["truth"], own, strict=True)]
        atlas = atlas.named(majority_names(own, truth, len(atlas)))
    shown = [
        Shown(
            fit.specimen,
            fit.places,
            cells,
            # What others would call differently is as doubtful as they are sure.
            np.where(fit.cells == cells, fit.confidence, 1 - fit.confidence),
            fit.ids,
            tuple(truth),
            float(consistency),
            data["unlike"].get(fit.specimen, ""),
            alternatives=fit.alternatives,
        )
        for fit, cells, truth, consistency in zip(
            fits, own, data["truth"], record.arrays["consistency"], strict=True
        )
    ]
    scores = tuple(Score(*row) for row in data["scores"])
    return Story(
        atlas,
        data["kind"],
        specimens=shown,
        trials=[Trial(**trial) for trial in about.get("trials", [])],
        chosen=about.get("chosen", {}),
        parameters=about.get("parameters", {}),
        timings=dict(about.get("timings", [])),
        command=about.get("command", ""),
        versions=about.get("versions", {}),
        config=about.get("config", ""),
        evaluation=Evaluation(scores) if scores else None,
    )
