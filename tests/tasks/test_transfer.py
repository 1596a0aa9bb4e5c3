"""Names between two segmentations: small worlds in which the answer is plain."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.errors import EutelyError
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume
from eutely.specimen import Specimen
from eutely.tasks.transfer import by_distance


def row(*centres: float, names: list[str] | None = None, name: str = "a") -> Specimen:
    """Nuclei of radius 2 along a line."""
    points = [(x, 0.0, float(at % 2)) for at, x in enumerate(centres)]
    return Specimen.from_arrays(name, points, radii=[2.0] * len(points), names=names)


def test_the_nearest_pairs_first_and_each_nucleus_once() -> None:
    truth = row(0, 10, 20, 30, names=["A", "B", "C", "D"])
    #   A at 0.5;  B wanted by 10.2 and 11.4, the nearer gets it;  C not found;  99 spurious
    predicted = Specimen.from_arrays(
        "b", [(0.5, 0, 0), (11.4, 0, 1), (10.2, 0, 1), (30, 0, 1), (99, 0, 0)]
    )
    transfer = by_distance(truth, predicted)
    assert transfer.limit == pytest.approx(2.0)
    assert transfer.predicted.names == ("A", "", "B", "D", "")
    assert transfer.missed.tolist() == [2]
    assert (transfer.found, transfer.spurious) == (3, 2)


def test_the_limit_is_needed_without_radii_and_kept() -> None:
    truth = Specimen.from_arrays("a", np.eye(4)[:, :3] * 10, names=list("ABCD"))
    with pytest.raises(EutelyError, match="--limit"):
        by_distance(truth, truth)
    moved = Specimen.from_arrays("b", truth.centroids + [0, 0, 3])
    assert by_distance(truth, moved, limit=2).found == 0
    assert by_distance(truth, moved, limit=4).predicted.names == ("A", "B", "C", "D")


def boxes(*spans: tuple[int, int, int]) -> NDArray[np.uint16]:
    """Return (4, 8, 40) labels: for each (label, from, to) a box along x."""
    labels = np.zeros((4, 8, 40), np.uint16)
    for label, low, high in spans:
        labels[1:3, 2:6, low:high] = label
    return labels


@pytest.mark.parametrize("ending", ["tif", "zarr"])
def test_voxels_decide_between_volumes(tmp_path: Path, ending: str) -> None:
    truth = boxes((1, 0, 8), (2, 10, 18), (3, 20, 28), (4, 30, 38))
    # 11 and 12 share 5 and 3 columns with 1; 13 lies half on 2; 4 and 3 are as they were, 14 is new
    found = boxes((11, 0, 5), (12, 5, 8), (13, 14, 20), (7, 20, 28), (9, 30, 38), (14, 38, 40))
    write_volume(truth, tmp_path / f"truth.{ending}", 1.0)
    write_volume(found, tmp_path / f"found.{ending}", 1.0)
    (tmp_path / "names.csv").write_text("id,cell,name\n1,0,A\n2,1,B\n3,2,C\n4,3,D\n")
    result = CliRunner().invoke(
        app,
        [
            "transfer", str(tmp_path / f"truth.{ending}"), str(tmp_path / f"found.{ending}"),
            "--names", str(tmp_path / "names.csv"), "-o", str(tmp_path / "out.csv"),
            "--json", str(tmp_path / "out.json"),
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    with (tmp_path / "out.csv").open() as file:
        names = {int(line["id"]): line["name"] for line in csv.DictReader(file)}
    assert names == {7: "C", 9: "D", 11: "A", 12: "", 13: "B", 14: ""}
    figures = json.loads((tmp_path / "out.json").read_text())
    assert (figures["found"], figures["missed"], figures["spurious"]) == (4, 0, 2)
    # columns in both: 8 + 4 + 8 + 8, in either: 8 + 8 + 2 + 8 + 8 + 2
    assert figures["iou"] == pytest.approx(28 / 36)
    assert figures["iou_of_found"] == pytest.approx(np.mean([5 / 8, 4 / 10, 1, 1]))


def test_volumes_of_different_shape_are_refused(tmp_path: Path) -> None:
    write_volume(boxes((1, 0, 8), (2, 9, 12), (3, 14, 20), (4, 22, 30)), tmp_path / "a.tif", 1.0)
    other = boxes((1, 0, 8), (2, 9, 12), (3, 14, 20), (4, 22, 30))[:, :, :35]
    write_volume(other, tmp_path / "b.tif", 1.0)
    result = CliRunner().invoke(
        app,
        [
            "transfer",
            str(tmp_path / "a.tif"),
            str(tmp_path / "b.tif"),
            "-o",
            str(tmp_path / "o.csv"),
        ],
    )
    assert isinstance(result.exception, EutelyError)
    assert "of the same image" in str(result.exception)
    assert not (tmp_path / "o.csv").exists()


def test_simulated_errors_are_counted(tmp_path: Path) -> None:
    truth = eutely.simulate(specimens=1, cells=80, pose="none")[0]
    write_table(truth, tmp_path / "truth.csv")
    kept = truth.take(np.arange(5, 80)).without_names()
    write_table(kept, tmp_path / "kept.csv")
    result = CliRunner().invoke(
        app,
        ["transfer", str(tmp_path / "truth.csv"), str(tmp_path / "kept.csv"), "-o",
         str(tmp_path / "out.csv")],
    )  # fmt: skip
    assert "75 of 80 true nuclei found" in result.output
    assert "5 missed, 0 spurious" in result.output
