"""Compare groups of animals cell by cell."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.comparison import Comparison, Design
from eutely.comparison.answer import answer
from eutely.comparison.body import symmetric_pairs, whole_animal
from eutely.comparison.design import FEWEST, contrasts
from eutely.comparison.measured import measured
from eutely.comparison.permutations import permutations
from eutely.comparison.second import renamed
from eutely.comparison.sets import cell_sets
from eutely.errors import CompareError
from eutely.execute import Progress, silent
from eutely.io import read
from eutely.plots.compute import groups as prefixes
from eutely.series.channels import in_true_order
from eutely.specimen import Specimen
from eutely.tasks.annotate import annotate
from eutely.tasks.first_look import look, under_other_names
from eutely.tasks.inputs import GivenAtlas, Specimens, is_path, kind, the_atlas, the_specimens
from eutely.tasks.outliers import outliers
from eutely.tasks.pins import Pins

log = logging.getLogger("eutely")

MOST_LOST = 0.5
"""Share of a group that may be left out: more are another organism."""


def compare(
    atlas: GivenAtlas,
    groups: Mapping[str, Specimens] | Sequence[str | PathLike[str]],
    output: str | Path | None = None,
    *,
    design: Design | None = None,
    annotations: Mapping[str, Sequence[Annotation]] | None = None,
    workers: int | str | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Return which cells differ between groups of animals.

    Animals are named by the atlas without knowledge of their groups; then places, scatter,
    presence, sizes and features of cells, sets of cells, left-right pairs and whole animals are
    compared by permutation tests.

    Parameters
    ----------
    atlas
        that has the cells, see `eutely.annotate`.
    groups
        label -> animals (see `eutely.annotate`), at least three; the first group is the reference.
        Or folders, which are groups of their names.
    output
        folder for ``compare.csv``, ``compare.html``, further tables and figures; None for none.
    design
        covariates, batches, trend, sets of cells, permutations; see `Design`.
    annotations
        label -> annotations of the animals by this atlas, if they are known already.
    workers
        see `eutely.annotate`.
    progress
        callback for long-running work.
    """
    design = design or Design()
    if not isinstance(design, Design):
        raise CompareError(
            f"design: expected a Design, such as eutely.Design(permutations=999), "
            f"found {kind(design)}"
        )
    atlas, groups = the_atlas(atlas), _the_groups(groups)
    check_groups(groups)
    labels = tuple(groups)
    specimens = [specimen for label in labels for specimen in groups[label]]
    look(specimens, [None] * len(specimens), atlas)
    animals = [label for label in labels for _ in groups[label]]
    # What is wrong with the design is said before the animals are named, which takes longest.
    contrasts(labels, animals, [one.name for one in specimens], design)
    pairs = symmetric_pairs(atlas)
    sets = cell_sets(atlas, prefixes(atlas.names), design.cell_groups)
    named = (
        _annotated(atlas, specimens, design, workers, progress)
        if annotations is None
        else _given(groups, annotations)
    )
    specimens = in_true_order(specimens, named)
    lost = _lost(atlas, specimens, animals, named)
    kept = [number for number in range(len(specimens)) if number not in lost]
    for number, why in lost.items():
        log.warning("%s is left out: it %s", specimens[number].name, why)
    left_out = {specimens[number].name: why for number, why in lost.items()}
    specimens = [specimens[k] for k in kept]
    animals = [animals[k] for k in kept]
    named = [named[k] for k in kept]
    if not design.given_names:
        before = named
        named = renamed(atlas, specimens, named)
        changed = sum(int((a.cells != b.cells).sum()) for a, b in zip(before, named, strict=True))
        if changed:
            log.info("%d nuclei are taken for the cell that lies there in several animals", changed)
    names = [specimen.name for specimen in specimens]
    questions = contrasts(labels, animals, names, design)
    progress("comparing", 0, len(questions) + 1, "measuring")
    cells = measured(atlas, specimens, named)
    whole = whole_animal(atlas, specimens, named, cells, pairs)
    answers = []
    for number, contrast in enumerate(questions):
        progress("comparing", number, len(questions), contrast.name)
        exchanged = permutations(contrast, design.permutations, design.seed)
        answers.append(answer(atlas, cells, contrast, exchanged, (sets, pairs, whole)))
    comparison = Comparison(
        atlas,
        design,
        labels,
        tuple(animals),
        cells,
        tuple(sets),
        tuple(pairs),
        whole,
        tuple(answers),
        left_out,
    )
    if output is not None:
        from eutely.tasks.compared import write_comparison

        write_comparison(comparison, Path(output), progress=progress)
    return comparison


def _the_groups(
    given: Mapping[str, Specimens] | Sequence[str | PathLike[str]],
) -> dict[str, list[Specimen]]:
    """Return the groups that a user gave."""
    if isinstance(given, Mapping):
        return {str(label): the_specimens(animals) for label, animals in given.items()}
    if isinstance(given, list | tuple) and all(map(is_path, given)):
        labels = [Path(path).resolve().name.split(".")[0] for path in given]
        if len(set(labels)) == len(labels):
            return {label: read(path) for label, path in zip(labels, given, strict=True)}
        raise CompareError("two groups have the same name; give a dict of label -> animals")
    raise CompareError(
        "groups: expected label -> animals, such as {'wild type': 'wt/', 'mutant': 'mut/'}, or a "
        f"list of folders, found {kind(given)}"
    )


def check_groups(groups: Mapping[str, Sequence[Specimen]]) -> None:
    """Raise an error unless there are two groups or more, of different animals."""
    if len(groups) < 2:
        raise CompareError(f"{len(groups)} group; give two or more")
    for label, animals in groups.items():
        if len(animals) < FEWEST:
            count = "1 animal" if len(animals) == 1 else f"{len(animals)} animals"
            raise CompareError(f"group '{label}' has {count}, expected at least {FEWEST}")
    seen: dict[str, str] = {}
    units: dict[str, str] = {}
    for label, animals in groups.items():
        for specimen in animals:
            where = f"{specimen.name} of '{label}'"
            before = seen.setdefault(digest(specimen), where)
            if before is not where:
                raise CompareError(
                    f"{before} and {where} are the same nuclei; give each animal once, in one group"
                )
            units.setdefault(specimen.unit, where)
    if len(units) > 1:
        given = ", ".join(f"{where} is in {unit}" for unit, where in units.items())
        raise CompareError(f"mixed units: {given}; convert to one")


def digest(specimen: Specimen) -> str:
    """Return a hash of the nuclei of a specimen, whatever their order and its name."""
    order = np.lexsort(specimen.centroids.T)
    return hashlib.sha256(np.ascontiguousarray(specimen.centroids[order]).tobytes()).hexdigest()


def _annotated(
    atlas: Atlas,
    specimens: Sequence[Specimen],
    design: Design,
    workers: int | str | None,
    progress: Progress,
) -> list[Annotation]:
    """Annotate animals under names that say nothing about their groups."""
    blind = [digest(specimen)[:16] for specimen in specimens]
    pins: Pins | None = None
    with under_other_names(specimens, blind) as animals:
        if design.given_names:
            pins = {
                (specimen.name, int(id_)): name
                for specimen in animals
                for id_, name in zip(specimen.ids, specimen.names or (), strict=False)
                if name
            }
        found = annotate(
            atlas, animals, adapt=design.adapt, pins=pins, workers=workers, progress=progress
        )
    return [replace(one, specimen=real.name) for one, real in zip(found, specimens, strict=True)]


def _given(
    groups: Mapping[str, Sequence[Specimen]], annotations: Mapping[str, Sequence[Annotation]]
) -> list[Annotation]:
    """Return annotations in the order of the animals."""
    result = []
    for label, animals in groups.items():
        given = annotations.get(label, ())
        if len(given) != len(animals):
            raise CompareError(
                f"{len(given)} annotations for the {len(animals)} animals of '{label}'; give one "
                "each"
            )
        for specimen, annotation in zip(animals, given, strict=True):
            if len(annotation) != len(specimen):
                raise CompareError(
                    f"{specimen.name}: its annotation has {len(annotation)} nuclei, it has "
                    f"{len(specimen)}"
                )
            result.append(annotation)
    return result


def _lost(
    atlas: Atlas,
    specimens: Sequence[Specimen],
    animals: Sequence[str],
    annotations: Sequence[Annotation],
) -> dict[int, str]:
    """Return animals that are not of the atlas's kind -> why; an error if most of a group are."""
    blind = [
        replace(annotation, specimen=str(number)) for number, annotation in enumerate(annotations)
    ]
    unlike = {int(number): why for number, why in outliers(blind, len(atlas)).items()}
    lost = {number: why for number, why in unlike.items() if "fits the atlas worse" not in why}
    for number in sorted(set(unlike) - set(lost)):
        log.warning("%s %s", specimens[number].name, unlike[number])
    for label in dict.fromkeys(animals):
        inside = [number for number, given in enumerate(animals) if given == label]
        gone = [number for number in inside if number in lost]
        if len(gone) > MOST_LOST * len(inside):
            raise CompareError(
                f"group '{label}': {len(gone)} of {len(inside)} animals do not fit the atlas "
                f"({specimens[gone[0]].name} {lost[gone[0]]})"
            )
    return lost
