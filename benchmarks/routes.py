"""One head, however it comes: names by its colours as R, G, B; by other names; by image; as NWB.

The 21 heads of EY (``heads.csv`` of the shared data), which the built-in atlas has seen: figures
compare with each other only. For images each nucleus is drawn as a ball of 1.2 um in voxels of
0.27 x 0.27 x 0.75 um with its colours as brightness, and noise.

Run: python benchmarks/routes.py [heads]
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import tifffile

import eutely
from eutely.io.sources import Files
from eutely.io.volumes import write_volume
from eutely.simulation.volume import draw
from eutely.tasks.export import Results, export

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("EUTELY_DATA", ROOT.parent / "shared" / "data"))
SIZE = (0.27, 0.27, 0.75)
NOISE = 0.01
"""Standard deviation of the noise, relative to the brightest nucleus."""


def heads() -> list[eutely.Specimen]:
    """Return the heads with names and colours."""
    table = pd.read_csv(DATA / "neuropal" / "heads.csv")
    table = table[table["dataset"] == "EY"]
    return [
        eutely.Specimen.from_arrays(
            name,
            rows[["x", "y", "z"]],
            ids=np.arange(1, len(rows) + 1),
            names=rows["name"].fillna("").tolist(),
            features={key: rows[key].to_numpy() for key in "RGB"},
            unit="um",
        )
        for name, rows in table.groupby("individual")
    ]


def drawn(head: eutely.Specimen, folder: Path) -> eutely.Specimen:
    """Return a head as it is read from its label volume and its image, with names."""
    labels, _ = draw(replace(head, radii=np.full((len(head), 3), 1.2)), SIZE)
    volume = folder / f"{head.name}.tif"
    write_volume(labels, volume, SIZE)
    rng = np.random.default_rng(0)
    image = np.empty((3, *labels.shape), np.uint16)
    for number, key in enumerate("RGB"):
        values = head.features[key] - head.features[key].min()
        bright = 500 + 20000 * np.concatenate([[0.0], values / values.max()])[labels]
        image[number] = (bright + rng.normal(0, 20000 * NOISE, labels.shape)).clip(0, 65535)
    raw = folder / f"{head.name}_raw.ome.tif"
    tifffile.imwrite(raw, image, metadata={"axes": "CZYX"}, photometric="minisblack")
    (worm,) = eutely.read(volume, image=raw, channels=["R", "G", "B"])
    names = dict(zip(head.ids.tolist(), head.names or (), strict=True))
    return replace(worm, names=tuple(names[id_] for id_ in worm.ids.tolist()))


def accuracy(atlas: eutely.Atlas, head: eutely.Specimen) -> float:
    """Return the share of named nuclei that get their name."""
    return float(eutely.evaluate(atlas, [head], workers=1).scores[0].accuracy)


def main(count: int) -> None:
    """Measure, print and write ``results/routes.json``."""
    logging.getLogger("eutely").setLevel(logging.ERROR)
    atlas = eutely.Atlas.load("celegans-adult-head")
    rows: list[dict[str, str | float]] = []
    for head in heads()[:count]:
        with TemporaryDirectory() as place:
            volume = drawn(head, Path(place))
            (found,) = eutely.annotate(atlas, [head], workers=1)
            results = Results(atlas, [found], [head], Files())
            (written,) = export(results, Path(place) / "nwb", ["nwb"])
            (nwb,) = eutely.read(written)
        routes = {
            "R, G, B": head,
            "red, green, blue": head.renamed({"R": "red", "G": "green", "B": "blue"}),
            "labels and image": volume,
            "NWB": replace(nwb, names=head.names),
            "labels without image": replace(volume, features={}),
        }
        rows.append(
            {"head": head.name} | {key: accuracy(atlas, one) for key, one in routes.items()}
        )
        print(json.dumps(rows[-1]), flush=True)
        write(rows)


def write(rows: list[dict[str, str | float]]) -> None:
    """Write the accuracies of heads by route, and their means."""
    means = {
        key: round(float(np.mean([row[key] for row in rows])), 4)
        for key in rows[0]
        if key != "head"
    }
    content = {"heads": len(rows), "mean": means, "rows": rows}
    path = ROOT / "benchmarks" / "results" / "routes.json"
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
