"""What learning finds: the parameters of the costs of a pair, and the trials behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ProblemError

Triple = tuple[float, float, float]

UNLEARNED_K_MIN = 14
"""k_min where nothing was learned; the paper learned this value from worms."""

UNLEARNED_TAU = (1.95, 0.15)
"""tau of centroids and radii where nothing was learned; from the paper."""


@dataclass(frozen=True)
class Parameters:
    """The twelve parameters of the costs (section 3.2 of the paper); variances share one frame.

    Attributes
    ----------
    centroids, radii, offsets
        three positive variances each, along x, y, z of the common frame (of the semi-axes,
        descending, for radii), in squared units.
    k_min
        number of cheapest assignments of every nucleus that are allowed in any case.
    tau_centroid, tau_radius
        squared Mahalanobis distances up to which other assignments are allowed.
    """

    centroids: Triple
    radii: Triple
    offsets: Triple
    k_min: int = UNLEARNED_K_MIN
    tau_centroid: float = UNLEARNED_TAU[0]
    tau_radius: float = UNLEARNED_TAU[1]

    def __repr__(self) -> str:
        k, near, size = self.k_min, self.tau_centroid, self.tau_radius
        return f"<Parameters: k_min={k}, tau_centroid={near:.4g}, tau_radius={size:.4g}>"

    def __post_init__(self) -> None:
        for key in ("centroids", "radii", "offsets"):
            values = tuple(float(value) for value in getattr(self, key))
            if len(values) != 3 or not all(0 < value < np.inf for value in values):
                raise ProblemError(f"parameters: '{key}' is {values}; expected 3 positive numbers")
            object.__setattr__(self, key, values)
        if isinstance(self.k_min, bool) or int(self.k_min) != self.k_min or self.k_min < 1:
            raise ProblemError(f"parameters: 'k_min' is {self.k_min}; expected a number >= 1")
        object.__setattr__(self, "k_min", int(self.k_min))
        for key in ("tau_centroid", "tau_radius"):
            value = float(getattr(self, key))
            if not 0 <= value < np.inf:
                raise ProblemError(f"parameters: '{key}' is {value}; expected 0 or more")
            object.__setattr__(self, key, value)

    @classmethod
    def unlearned(cls, spacing: float = 1.0) -> Parameters:
        """Return equal variances: identities, in units of the typical distance of neighbours.

        A common factor changes no dense linear matching, but the unit of a file should not
        decide what counts as far.

        Parameters
        ----------
        spacing
            typical distance of neighbouring nuclei.
        """
        variance = (spacing**2,) * 3
        return cls(variance, variance, variance)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Parameters:
        """Return what `as_dict` described."""
        try:
            return cls(**values)
        except TypeError as error:
            raise ProblemError(f"parameters: not understood ({error})") from error

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    def scaled(self, factor: float) -> Parameters:
        """Return parameters whose costs are ``1 / factor`` times these; the same are allowed."""

        def times(values: Triple) -> Triple:
            return values[0] * factor, values[1] * factor, values[2] * factor

        return Parameters(
            times(self.centroids),
            times(self.radii),
            times(self.offsets),
            self.k_min,
            self.tau_centroid / factor,
            self.tau_radius / factor,
        )

    def weights(self) -> NDArray[np.float64]:
        """Return the atlas's weights (3,) of centroids, radii and offsets (section 3.3).

        The norms of the three diagonals, scaled to the length of (1, 1, 1).
        """
        norms = np.linalg.norm([self.centroids, self.radii, self.offsets], axis=1)
        scaled: NDArray[np.float64] = norms * np.sqrt(3) / np.linalg.norm(norms)
        return scaled


@dataclass(frozen=True)
class Trial:
    """One trial of learning.

    Attributes
    ----------
    stage
        of learning: ``linear``, ``sparsity``, ``offsets`` or ``weights``.
    number
        of the trial within its stage, from 0.
    parameters
        that were tried: name -> value.
    losses
        one for each objective of the stage; lower is better.
    """

    stage: str
    number: int
    parameters: dict[str, Any]
    losses: tuple[float, ...]


@dataclass(frozen=True)
class Learned:
    """What learning found, and how.

    Attributes
    ----------
    parameters
        of the costs.
    specimens
        numbers of the specimens that they were learned on.
    trials
        of all stages, in order.
    chosen
        stage -> number of the trial whose parameters were taken.
    """

    parameters: Parameters
    specimens: tuple[int, ...]
    trials: tuple[Trial, ...]
    chosen: dict[str, int]

    def __repr__(self) -> str:
        return f"<Learned: {len(self.trials)} trials on {len(self.specimens)} specimens>"
