import numpy as np
import pytest

from eutely import read
from eutely.io.apo import read_apo
from eutely.io.tables import write_table


@pytest.mark.parametrize(
    ("part", "specimens", "fewest", "most", "unit"),
    [
        ("rapcat/train100", 100, 558, 558, "voxel"),
        ("rapcat/test2", 100, 558, 558, "voxel"),
        ("epic/epic_350cell.csv", 116, 350, 356, "unit"),
        ("neuropal/heads_np_ey.csv", 31, 160, 200, "unit"),
    ],
)
def test_real_cohorts_are_read_and_survive_a_table(
    data, tmp_path, part, specimens, fewest, most, unit
):
    cohort = read(data / part)
    assert len(cohort) == specimens
    assert fewest <= min(map(len, cohort)) <= max(map(len, cohort)) <= most
    assert {one.unit for one in cohort} == {unit}
    write_table(cohort, tmp_path / "cohort.parquet")
    assert read(tmp_path / "cohort.parquet") == cohort


def test_names_and_missing_radii_of_the_worms(data):
    train, test = read(data / "rapcat/train100"), read(data / "rapcat/test2")
    cells = set(train[0].names)
    assert len(cells) == 558
    assert all(set(worm.names) == cells for worm in train)
    assert sorted(len(cells & set(worm.names)) for worm in test)[:5] == [554, 554, 557, 557, 558]
    assert sum(np.isnan(worm.radii[:, 0]).sum() for worm in test) == 1925
    assert all(np.ptp(worm.centroids, axis=0).argmax() == 0 for worm in train + test)


def test_rejected_segments_of_a_worm(data):
    path = sorted((data / "rapcat/test2").iterdir())[0]
    worm = read_apo(path, "worm", keep_rejected=True)
    rejected = worm.features["rejected"] == 1
    assert (~rejected).sum() == 558
    assert rejected.sum() > 100
    assert not any(np.array(worm.names)[rejected])
