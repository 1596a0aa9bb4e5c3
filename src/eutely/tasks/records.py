"""Results of stages as records, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eutely.annotation import Annotation
from eutely.record import Record, pieces
from eutely.find.refine import Cohort


def same(record: Record) -> Record:
    """Return a result that is a record already."""
    return record


def cohort_saved(cohort: Cohort) -> Record:
    """Return a cohort as a record."""
    return Record(
        {
            "counts": np.array([len(one) for one in cohort.posed]),
            "posed": np.concatenate(cohort.posed),
            "warped": np.concatenate(cohort.warped),
            "nuclei": np.stack(cohort.nuclei),
            "size": cohort.size,
            **({"features": np.concatenate(cohort.features)} if cohort.features else {}),
        },
        {"spacing": cohort.spacing, "smooth": cohort.smooth},
    )


def cohort_of(record: Record) -> Cohort:
    """Return the cohort of a record."""
    counts = record.arrays["counts"]
    return Cohort(
        pieces(record.arrays["posed"], counts),
        pieces(record.arrays["warped"], counts),
        tuple(record.arrays["nuclei"]),
        record.arrays["size"],
        float(record.metadata["spacing"]),
        pieces(record.arrays["features"], counts) if "features" in record.arrays else (),
        bool(record.metadata["smooth"]),
    )


def annotations_saved(fits: Sequence[Annotation]) -> Record:
    """Return annotations, with their alternatives, as a record."""
    others = [[list(map(list, row)) for row in fit.alternatives] for fit in fits]
    return Record(
        {
            "counts": np.array([len(fit.ids) for fit in fits]),
            "ids": np.concatenate([fit.ids for fit in fits]),
            "cells": np.concatenate([fit.cells for fit in fits]),
            "confidence": np.concatenate([fit.confidence for fit in fits]),
            "places": np.concatenate([fit.places for fit in fits]),
            "costs": np.array([fit.cost for fit in fits]),
        },
        {
            "specimens": [fit.specimen for fit in fits],
            "names": [list(fit.names) for fit in fits],
            "alternatives": others,
        },
    )


def annotations_of(record: Record) -> list[Annotation]:
    """Return the annotations of a record."""
    counts = record.arrays["counts"]
    rows = zip(
        record.metadata["specimens"],
        *(pieces(record.arrays[key], counts) for key in ("ids", "cells")),
        record.metadata["names"],
        pieces(record.arrays["confidence"], counts),
        record.metadata["alternatives"],
        record.arrays["costs"].tolist(),
        pieces(record.arrays["places"], counts),
        strict=True,
    )
    return [
        Annotation(
            specimen,
            ids,
            cells,
            tuple(names),
            confidence,
            tuple(tuple((int(cell), float(share)) for cell, share in row) for row in others),
            cost,
            places,
        )
        for specimen, ids, cells, names, confidence, others, cost, places in rows
    ]
