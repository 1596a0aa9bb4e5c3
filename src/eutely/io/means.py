"""Means of cells that others estimated: a table, or a statistical atlas of NeuroPAL_ID."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import check_memory, check_regular
from eutely.io.tables import read_table
from eutely.io.volumes.volume import BROKEN
from eutely.specimen import MICROMETRE, Specimen

COLOURS = ("R", "G", "B", "W")
"""Features of a statistical atlas of NeuroPAL_ID, after x, y, z."""

SPREADS = ("sx", "sy", "sz")
"""Columns of a table with the standard deviations along x, y, z."""

MATLAB = 20
"""Bytes of memory that a byte of a MATLAB file may unpack to, and what is allowed for more."""


@dataclass(frozen=True, eq=False)
class Means:
    """Cells by their means.

    Attributes
    ----------
    specimen
        the cells as if they were the nuclei of a specimen: means, names, features.
    covariances
        (m, 3, 3) of their places, or None if not known.
    about
        words on where they come from.
    """

    specimen: Specimen
    covariances: NDArray[np.float64] | None = None
    about: Mapping[str, str] = field(default_factory=dict)


def read_means(path: Path, part: str = "head") -> Means:
    """Read means of cells.

    Parameters
    ----------
    path
        a table with the columns name, x, y, z, optionally ``sx``, ``sy``, ``sz`` (standard
        deviations), radii and features; or ``.mat`` of NeuroPAL_ID.
    part
        of the body, in a ``.mat`` that has several.
    """
    if path.suffix.lower() == ".mat":
        return _neuropal(path, part)
    [specimen, *others] = read_table(path, path.stem)
    if others or not any(specimen.names or ()):
        raise ReadError(f"{path}: expected one row per cell, with the columns name, x, y, z")
    spreads = [specimen.features.get(key) for key in SPREADS]
    covariances = None
    if all(spread is not None for spread in spreads):
        table = np.stack([spread for spread in spreads if spread is not None], axis=1)
        if not (table > 0).all():
            raise ReadError(f"{path}: sx, sy, sz must be positive for every cell; correct them")
        covariances = np.array([np.diag(row**2) for row in table])
    features = {key: values for key, values in specimen.features.items() if key not in SPREADS}
    bare = Specimen(
        specimen.name, specimen.ids, specimen.centroids, specimen.radii, None, features,
        specimen.names, specimen.unit,
    )  # fmt: skip
    return Means(bare, covariances)


def _neuropal(path: Path, part: str) -> Means:
    """Read ``atlas.<part>``: names ``N``, means ``model.mu`` and covariances ``model.sigma``."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    check_regular(path)
    check_memory(path, MATLAB * path.stat().st_size, "the file")
    try:
        content: Any = loadmat(path, simplify_cells=True, variable_names=["atlas"])["atlas"]
        parts = [key for key, value in content.items() if isinstance(value, dict) and "N" in value]
        if part not in parts:
            raise ReadError(
                f"{path}: no part '{part}'; give --part one of: {', '.join(parts) or 'none'}"
            )
        names = [str(name) for name in np.atleast_1d(content[part]["N"])]
        means = np.atleast_2d(np.asarray(content[part]["model"]["mu"], dtype=np.float64))
        sigma = np.asarray(content[part]["model"]["sigma"], dtype=np.float64)
        if means.shape[0] != len(names) or means.shape[1] < 3 or sigma.shape[2:] != (len(names),):
            raise ValueError(f"{len(names)} names, means {means.shape}, covariances {sigma.shape}")
    except NotImplementedError as error:
        raise ReadError(f"{path}: MATLAB 7.3; save it with -v7") from error
    except (*BROKEN, MatReadError) as error:
        raise ReadError(
            f"{path}: not a statistical atlas of NeuroPAL_ID ({error}); give its file atlas_*.mat, "
            "or a table with the columns name, x, y, z"
        ) from error
    features = {key: means[:, 3 + n] for n, key in enumerate(COLOURS[: means.shape[1] - 3])}
    specimen = Specimen.from_arrays(
        path.stem, means[:, :3], names=names, features=features, unit=MICROMETRE
    )
    about = {"organism": "C. elegans", "body part": part, "imaging": "NeuroPAL"}
    return Means(specimen, np.moveaxis(sigma[:3, :3], 2, 0), about)
