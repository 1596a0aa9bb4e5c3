"""Which part of an atlas a specimen shows, and whether it is a mirror image, in words."""

from __future__ import annotations

import numpy as np

from eutely.annotation import Annotation
from eutely.atlas import Atlas

SHOWN = 0.5
"""Probability, relative to the highest one, from which a cell counts as in view."""

END = 0.05
"""Share of the length of the atlas within which a view reaches an end."""


def view_note(annotation: Annotation, atlas: Atlas) -> str:
    """Return such as "mirrored; shows the front 58% of the atlas, 312 of 558 cells".

    "" for a whole specimen that is no mirror image.
    """
    parts = ["mirrored"] if annotation.mirrored else []
    if annotation.view is not None and annotation.view.max(initial=0.0) > 0:
        shown = annotation.view >= SHOWN * annotation.view.max()
        parts += [f"shows {_part(atlas, shown)}, {int(shown.sum())} of {len(atlas)} cells"]
    return "; ".join(parts)


def _part(atlas: Atlas, shown: np.ndarray) -> str:
    """Return which part of the atlas has the cells in view (m,); the head is in front."""
    along = atlas.means[:, 0]
    length = max(float(np.ptp(along)), 1e-12)
    behind = float(along[shown].min() - along.min()) / length
    ahead = float(along.max() - along[shown].max()) / length
    share = f"{1 - behind - ahead:.0%} of the atlas"
    if behind <= END and ahead <= END:
        return "the whole length of the atlas"
    if ahead <= END:
        return f"the front {share}"
    return f"the back {share}" if behind <= END else f"a middle {share}"
