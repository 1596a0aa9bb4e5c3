"""One head, however it comes: names by its colours as R, G, B; by other names; by image; as NWB.

The 21 heads of EY (``heads.csv`` of the shared data), which the built-in atlas has seen: figures
compare with each other only. For images each nucleus is drawn as a ball of 1.2 um in voxels of
0.27 x 0.27 x 0.75 um with its colours as brightness, and noise.

    python benchmarks/routes.py routes [heads]
    python benchmarks/routes.py channels [heads]

The second says how often exchanged channels are found: the heads of all laboratories, each alone by
the atlas of other folds, as they are and with their channels in an order drawn at random.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import tifffile

import eutely
from eutely.evaluation import score
from eutely.io.sources import Files
from eutely.io.volumes import write_volume
from eutely.simulation.volume import draw
from eutely.tasks.export import Results, export
from figures import keep
from neuropal import atlas_of, splits
from neuropal import heads as all_heads
from worms import DATA

RESULTS = Path(__file__).resolve().parent / "results" / "routes.json"

KINDS = ("taken as called", "put right", "not clear", "put wrong")
SIZE = (0.27, 0.27, 0.75)
NOISE = 0.01
"""Standard deviation of the noise, relative to the brightest nucleus."""


EXCHANGES = {
    "R and B exchanged": {"R": "B", "B": "R"},
    "R and G exchanged": {"R": "G", "G": "R"},
    "R called G, G called B, B called R": {"R": "G", "G": "B", "B": "R"},
}
"""Wrong names of channels."""


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


def routes(count: int | None) -> None:
    """Measure and keep the accuracies of heads by route, and their means."""
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
            **{key: head.renamed(names) for key, names in EXCHANGES.items()},
            "labels without image": replace(volume, features={}),
        }
        rows.append(
            {"head": head.name} | {key: accuracy(atlas, one) for key, one in routes.items()}
        )
        print(json.dumps(rows[-1]), flush=True)
    means = {
        key: round(float(np.mean([row[key] for row in rows])), 4)
        for key in rows[0]
        if key != "head"
    }
    keep(RESULTS, "routes", {"heads": len(rows), "mean": means, "rows": rows})


def exchanges(count: int | None) -> None:
    """Count in how many heads, each alone, exchanged channels are found, missed, or not clear."""
    listener = Listener()
    logging.getLogger("eutely").addHandler(listener)
    rng = np.random.default_rng(0)
    orders = list(permutations("RGB"))[1:]
    counts = {kind: dict.fromkeys(("as they are", "in another order"), 0) for kind in KINDS}
    right: dict[str, list[float]] = {"as they are": [], "in another order": []}
    seconds = [0.0, 0.0]
    atlases: dict[tuple[str, ...], eutely.Atlas] = {}
    done = 0
    for train, tests in splits(all_heads("raw"), "retrain"):
        key = tuple(head.specimen.name for head in train)
        for head in tests[: None if count is None else max(count - done, 0)]:
            atlas = atlases.get(key) or atlases.setdefault(key, atlas_of(train, "retrain"))
            order = orders[int(rng.integers(len(orders)))]
            wrong = dict(zip("RGB", order, strict=True))
            for case, names in (("as they are", {}), ("in another order", wrong)):
                listener.lines.clear()
                begin = time.process_time()
                given = head.specimen.renamed(names)
                [found] = eutely.annotate(atlas, [given.without_names()], adapt=False, workers=1)
                seconds[bool(names)] += time.process_time() - begin
                undone = {new: old for old, new in names.items() if old != new}
                unclear = any("may be exchanged" in line for line in listener.lines)
                kind = (
                    "not clear" if unclear
                    else "taken as called" if not found.exchanged
                    else "put right" if dict(found.exchanged) == undone
                    else "put wrong"
                )  # fmt: skip
                counts[kind][case] += 1
                right[case].append(score(head.specimen, found.names).accuracy)
            done += 1
            print(head.specimen.name, kind, flush=True)
    accuracy = {case: round(float(np.mean(values)), 4) for case, values in right.items()}
    ratio = round(seconds[1] / seconds[0], 2)
    content = {"heads": done, **counts, "accuracy": accuracy, "seconds, ratio": ratio}
    print(json.dumps(content))
    keep(RESULTS, "channels", content)


class Listener(logging.Handler):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(record.getMessage())


def main() -> None:
    """Measure, print and write ``results/routes.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["routes", "channels"])
    parser.add_argument("heads", type=int, nargs="?", help="how many; all by default")
    given = parser.parse_args()
    {"routes": routes, "channels": exchanges}[given.what](given.heads)


if __name__ == "__main__":
    main()
