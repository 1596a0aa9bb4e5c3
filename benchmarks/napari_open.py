"""How long napari takes to open a label volume of 24 MB with its names, beside the volume alone.

Run ``python benchmarks/napari_open.py``; it needs the extra ``napari`` and no screen. Prints
processor seconds of each part in one process: the reader of eutely, the layers, and what napari
itself takes for the same array without colours and names.
"""

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np

from eutely.io.volumes import write_volume
from figures import table, timed

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
SHAPE, NUCLEI = (60, 400, 500), 558


def volume() -> np.ndarray:
    """Return labels of ellipsoids in random places, (z, y, x)."""
    random = np.random.default_rng(0)
    labels = np.zeros(SHAPE, np.uint16)
    z, y, x = np.mgrid[-5:6, -8:9, -8:9]
    ball = (z / 5) ** 2 + (y / 8) ** 2 + (x / 8) ** 2 <= 1
    for label in range(1, NUCLEI + 1):
        a, b, c = random.integers([6, 9, 9], np.array(SHAPE) - [6, 9, 9])
        part = labels[a - 5 : a + 6, b - 8 : b + 9, c - 8 : c + 9]
        part[ball & (part == 0)] = label
    return labels


def main() -> None:
    """Open the volume both ways."""
    warnings.simplefilter("ignore")
    import napari

    from eutely.napari.reader import read_layers

    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "worm.tif")
        labels = volume()
        write_volume(labels, path, (0.2, 0.2, 0.5))
        rows = [f"{label},{label - 1},N{label},0.9" for label in range(1, NUCLEI + 1)]
        path.with_suffix(".csv").write_text("\n".join(["id,cell,name,confidence", *rows]) + "\n")
        viewer = napari.Viewer(show=False)
        _, alone = timed(lambda: viewer.add_labels(labels))
        layers, reading = timed(lambda: read_layers(str(path)))
        adding = [
            timed(lambda layer=layer: viewer._add_layer_from_data(*layer))[1] for layer in layers
        ]
        viewer.close()
    table(
        f"a volume of {labels.nbytes / 1e6:.0f} MB, processor seconds",
        [
            {"what": "napari, the array alone (its first layer)", "seconds": round(alone, 2)},
            {"what": "eutely: reading", "seconds": round(reading, 2)},
            {"what": "labels in colours", "seconds": round(adding[0], 2)},
            {"what": "names", "seconds": round(adding[1], 2)},
        ],
    )


if __name__ == "__main__":
    main()
