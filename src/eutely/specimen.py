"""The nuclei of one individual, the main noun of the package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.errors import SpecimenError, check_texts

if TYPE_CHECKING:
    import pandas as pd

MICROMETRE = "um"
"""Unit of coordinates in micrometres."""

VOXEL = "voxel"
"""Unit of coordinates in (isotropic) voxels."""

UNKNOWN = "unit"
"""Unit of coordinates whose file does not specify it."""

UNMATCHED = -1
"""Partner of a nucleus that a matching leaves unmatched."""

LARGEST = 1e12
"""Largest absolute coordinate or radius; squares and products of such stay finite."""


@dataclass(frozen=True, eq=False)
class Specimen:
    """The ``n`` nuclei of one individual as ellipsoids, with names and further measurements.

    Immutable: arrays are copied, checked and locked on construction, so that a specimen can be
    shared between threads. The order of nuclei has no meaning; ``ids`` identify them.

    Attributes
    ----------
    name
        of the individual; unique in a cohort.
    ids
        (n,) int64, label value of the segment or ``id`` of the table row; unique.
    centroids
        (n, 3) float64, x, y, z in ``unit``; finite.
    radii
        (n, 3) float64, semi-axes in ``unit``, descending; a row of NaN where unknown.
    axes
        (n, 3, 3) float64 or None, unit vectors of the three semi-axes, one per row; NaN for a
        nucleus without a direction (a single voxel).
    features
        further measurements, name -> (n,) float64; NaN where unknown.
    names
        n cell names ("" where unknown), or None if no nucleus has a name.
    unit
        of all lengths: ``um``, ``voxel``, or ``unit`` if the file does not specify it.
    series
        which specimens were prepared and imaged alike; "" if the file does not say.
    """

    name: str
    ids: NDArray[np.int64]
    centroids: NDArray[np.float64]
    radii: NDArray[np.float64]
    axes: NDArray[np.float64] | None = None
    features: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    names: tuple[str, ...] | None = None
    unit: str = UNKNOWN
    series: str = ""

    def __post_init__(self) -> None:
        def put(key: str, value: object) -> None:
            object.__setattr__(self, key, value)

        for key, kind, what in (
            ("name", str, "text"),
            ("unit", str, "text"),
            ("series", str, "text"),
            ("features", Mapping, "name -> column"),
        ):
            if not isinstance(given := getattr(self, key), kind):
                raise SpecimenError(f"the {key} of a specimen is {given!r}; give {what}")
        count = len(self.ids)
        put("ids", _locked(self.ids, np.int64, (count,), "ids", self.name))
        put("centroids", _locked(self.centroids, np.float64, (count, 3), "centroids", self.name))
        put("radii", _locked(self.radii, np.float64, (count, 3), "radii", self.name))
        if self.axes is not None:
            put("axes", _locked(self.axes, np.float64, (count, 3, 3), "axes", self.name))
        put(
            "features",
            MappingProxyType(
                {
                    key: _locked(column, np.float64, (count,), f"feature '{key}'", self.name)
                    for key, column in self.features.items()
                }
            ),
        )
        if self.names is not None:
            put("names", tuple(map(_word, self.names)))
        put("name", " ".join(self.name.split()))
        put("unit", unit_word(self.unit))
        put("series", " ".join(self.series.split()))
        self._check()
        if not any(self.names or ()):
            put("names", None)  # only one representation of "nothing is named"

    def _check(self) -> None:
        if not self.name:
            raise SpecimenError("a specimen has an empty name; give it a name")
        if self.names is not None and len(self.names) != len(self):
            raise SpecimenError(
                f"{self.name}: {len(self.names)} names for {len(self)} nuclei; give one per nucleus"
            )
        check_texts(
            (self.name, self.series, *(self.names or ()), *self.features), "a name", SpecimenError
        )
        bad = ~np.isfinite(self.centroids).all(axis=1)
        if bad.any():
            raise SpecimenError(
                f"{self.name}: NaN or infinite coordinates at id {self.ids[bad][0]} "
                f"({bad.sum()} of {len(self)} nuclei); remove or repair these nuclei"
            )
        far = (np.abs(self.centroids) > LARGEST).any(axis=1) | (self.radii > LARGEST).any(axis=1)
        if far.any():
            raise SpecimenError(
                f"{self.name}: coordinates or radii above {LARGEST:g} at id {self.ids[far][0]}; "
                "check the unit"
            )
        values, counts = np.unique(self.ids, return_counts=True)
        if (counts > 1).any():
            raise SpecimenError(
                f"{self.name}: id {values[counts > 1][0]} occurs {counts.max()} times; "
                "ids must be unique within a specimen"
            )
        if (self.radii < 0).any():
            raise SpecimenError(
                f"{self.name}: negative radii; use an empty field for unknown radii"
            )
        if np.isinf(self.radii).any():
            raise SpecimenError(
                f"{self.name}: infinite radii; use an empty field for unknown radii"
            )

    @classmethod
    def from_arrays(
        cls,
        name: str,
        centroids: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        radii: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        **further: Any,
    ) -> Specimen:
        """Build a specimen from the data available.

        Parameters
        ----------
        name
            of the individual.
        centroids
            (n, 3), x, y, z.
        ids
            (n,), or None for 0 .. n - 1.
        radii
            (n, 3) semi-axes in any order, (n,) one radius per nucleus, or None.
        names
            n cell names, or None.
        further
            ``axes``, ``features``, ``unit``, ``series``: see the class.
        """
        points = _numbers(centroids, "centroids", name)
        if points.ndim != 2 or points.shape[1] != 3:
            raise SpecimenError(f"{name}: centroids have shape {points.shape}, expected (n, 3)")
        count = len(points)
        if radii is None:
            lengths = np.full((count, 3), np.nan)
        else:
            lengths = _numbers(radii, "radii", name)
            if lengths.ndim == 1:
                lengths = np.repeat(lengths[:, None], 3, axis=1)
            elif "axes" not in further and lengths.shape == (count, 3):
                lengths = -np.sort(-lengths, axis=1)
        if isinstance(names, str) or not isinstance(names, Iterable | None):
            raise SpecimenError(f"{name}: names are {names!r}; give one per nucleus")
        number = np.arange(count) if ids is None else np.asarray(ids)
        return cls(
            name=name,
            ids=number,
            centroids=points,
            radii=lengths,
            names=None if names is None else tuple(names),
            **further,
        )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, name: str | None = None) -> Specimen:
        """Build a specimen from a pandas table with one row per nucleus.

        Parameters
        ----------
        frame
            columns as in a file: x, y, z; where known id, name, r1, r2, r3 or r, unit, series; all
            other numeric columns are features. `eutely.read` takes tables of several specimens.
        name
            of the individual; by default that in a column ``specimen``, or ``table``.
        """
        from eutely.io import read  # reading is no business of a noun

        if not hasattr(frame, "columns"):
            raise SpecimenError(f"expected a pandas table, found {frame!r:.40}")
        found = read(frame)
        if len(found) != 1:
            several = f"the table holds {len(found)} specimens"
            raise SpecimenError(f"{several}; eutely.read(table) returns all of them")
        return found[0] if name is None else replace(found[0], name=name)

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        """Return whether all fields agree; NaN equals NaN, features may be in any order."""
        if not isinstance(other, Specimen):
            return NotImplemented
        return (
            (self.name, self.names) == (other.name, other.names)
            and (self.unit, self.series) == (other.unit, other.series)
            and len(self) == len(other)
            and set(self.features) == set(other.features)
            and (self.axes is None) == (other.axes is None)
            and all(
                np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")
                for mine, theirs in zip(self._arrays(), other._arrays(), strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value, so not hashable

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle field by field, since a mapping proxy cannot be pickled."""
        features = dict(self.features)
        fields = (self.name, self.ids, self.centroids, self.radii, self.axes, features)
        return Specimen, (*fields, self.names, self.unit, self.series)

    def __repr__(self) -> str:
        named = 0 if self.names is None else sum(map(bool, self.names))
        return f"<Specimen {self.name}: {len(self)} nuclei, {named} named, in {self.unit}>"

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        extent = " x ".join(f"{side:.4g}" for side in np.ptp(self.centroids, axis=0))
        rows = {
            "nuclei": len(self),
            "named": sum(map(bool, self.names or ())),
            "extent": f"{extent} {self.unit}",
            "features": ", ".join(self.features) or "none",
        }
        return html_table(self.name, rows)

    def _arrays(self) -> list[NDArray[Any]]:
        axes = [] if self.axes is None else [self.axes]
        features = [self.features[key] for key in sorted(self.features)]
        return [self.ids, self.centroids, self.radii, *axes, *features]

    def take(self, index: ArrayLike) -> Specimen:
        """Return the specimen with only the nuclei at ``index``, in that order.

        Parameters
        ----------
        index
            positions (m,) int, or a mask (n,) bool.
        """
        rows = np.arange(len(self))[np.asarray(index)]
        return replace(
            self,
            ids=self.ids[rows],
            centroids=self.centroids[rows],
            radii=self.radii[rows],
            axes=None if self.axes is None else self.axes[rows],
            features={key: column[rows] for key, column in self.features.items()},
            names=None if self.names is None else tuple(self.names[row] for row in rows),
        )

    def without_names(self) -> Specimen:
        """Return the specimen without names, for unsupervised use."""
        return replace(self, names=None)

    def renamed(self, features: Mapping[str, str]) -> Specimen:
        """Return the specimen with other names of features; columns that it lacks do not matter.

        Parameters
        ----------
        features
            old name -> new name, or "-" to leave the feature out.
        """
        kept = {key: features.get(key, key) for key in self.features}
        kept = {key: new for key, new in kept.items() if new != "-"}
        twice = sorted(new for new in set(kept.values()) if list(kept.values()).count(new) > 1)
        if twice:
            both = [key for key, new in kept.items() if new == twice[0]]
            raise SpecimenError(
                f"{self.name}: two features would be called {twice[0]} ({' and '.join(both)}); "
                f"leave one out: {twice[0] if twice[0] in both else both[-1]}=-"
            )
        return replace(self, features={new: self.features[key] for key, new in kept.items()})

    def moved(self, rotation: ArrayLike, shift: ArrayLike) -> Specimen:
        """Return the specimen after ``rotation @ x + shift``; radii stay, axes rotate.

        Parameters
        ----------
        rotation
            (3, 3), orthogonal.
        shift
            (3,), in the specimen's unit.
        """
        turn = np.asarray(rotation, dtype=np.float64)
        return replace(
            self,
            centroids=self.centroids @ turn.T + np.asarray(shift, dtype=np.float64),
            axes=None if self.axes is None else self.axes @ turn.T,
        )

    def mapped(self, matrix: ArrayLike, shift: ArrayLike) -> Specimen:
        """Return the specimen after the affine map ``matrix @ x + shift``.

        Ellipsoids are mapped to ellipsoids; where directions are unknown, the radii are scaled by
        a common factor that gives the right volume.

        Parameters
        ----------
        matrix
            (3, 3), not singular.
        shift
            (3,), in the specimen's unit.
        """
        linear = np.asarray(matrix, dtype=np.float64)
        radii = self.radii * abs(np.linalg.det(linear)) ** (1 / 3)
        axes = None
        if self.axes is not None:
            axes = np.full_like(self.axes, np.nan)
            known = np.isfinite(self.axes).all(axis=(1, 2)) & np.isfinite(self.radii).all(axis=1)
            semi = linear @ (self.axes[known].swapaxes(1, 2) * self.radii[known, None, :])
            turned, radii[known], _ = np.linalg.svd(semi)
            axes[known] = turned.swapaxes(1, 2)
        return replace(
            self,
            centroids=self.centroids @ linear.T + np.asarray(shift, dtype=np.float64),
            radii=radii,
            axes=axes,
        )


def _locked(
    values: ArrayLike, dtype: type[Any], shape: tuple[int, ...], what: str, name: str
) -> NDArray[Any]:
    """Return a read-only copy of ``values``; raise if shape or type are not as expected."""
    given = np.asarray(values)
    if given.shape != shape:
        raise SpecimenError(f"{name}: {what} have shape {given.shape}, expected {shape}")
    if dtype is np.int64 and given.dtype.kind not in "iu":
        raise SpecimenError(f"{name}: {what} are {given.dtype}, expected whole numbers")
    copy = np.array(_numbers(given, what, name) if given.dtype.kind in "OSU" else given, dtype)
    copy.setflags(write=False)
    return copy


def _numbers(values: ArrayLike, what: str, name: str) -> NDArray[np.float64]:
    """Return ``values`` as float64; raise if they are no numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SpecimenError(f"{name}: {what} are no table of numbers ({error})") from error


def _word(name: object) -> str:
    """Return the name of a cell; None and NaN, as in tables of pandas, are no name."""
    return "" if name is None or name != name else " ".join(str(name).split())


def html_table(caption: str, rows: Mapping[str, object]) -> str:
    """Return a small table for notebooks; all texts are escaped."""
    from html import escape  # for notebooks only

    cells = (f"<tr><th>{escape(key)}</th><td>{escape(str(rows[key]))}</td></tr>" for key in rows)
    return f"<table><caption>{escape(caption)}</caption>{''.join(cells)}</table>"


def unit_word(text: str) -> str:
    """Return the package's word for a unit, however a file spells it."""
    word = text.strip()
    if not word:
        return UNKNOWN
    if re.fullmatch(r"[uµμ]m|microns?|micromet(er|re)s?", word.lower()):
        return MICROMETRE
    return VOXEL if word.lower() in {"voxel", "voxels", "pixel", "pixels"} else word
