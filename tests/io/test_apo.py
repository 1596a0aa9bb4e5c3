import numpy as np
import pytest

from eutely.errors import ReadError
from eutely.io.apo import read_apo

#      no, order, name, comment, z, x, y, max, mean, sd, size, mass
ROWS = """\
5,5,adal,,3,1,2,200.00,100.0,9.5,113,11300
6,6,*NOUSE*adar,x,3,1,2,1,1,1,8,8
7,7,pm1,*nouse*,9,9,9,1,1,1,8,8
8,8,F10,,0,0,0,0,0,0,0,0
9,9,*NOUSE*F2,,0,0,0,0,0,0,0,0
3,3,PM2,*MANUAL*, 34.000, 10.000, 20.000,1,1,1,0,0
"""


def test_columns_are_z_x_y_and_rejected_segments_and_landmarks_go(tmp_path):
    path = tmp_path / "worm.ano.txt"
    path.write_text(ROWS)
    worm = read_apo(path, "worm")
    assert worm.names == ("ADAL", "PM2")
    assert worm.ids.tolist() == [5, 3]
    assert worm.centroids.tolist() == [[1, 2, 3], [10, 20, 34]]
    assert worm.unit == "voxel"
    np.testing.assert_allclose(worm.radii[0], 3, atol=0.01)  # 113 voxels: a sphere of radius 3
    assert np.isnan(worm.radii[1]).all()
    assert {key: column[0] for key, column in worm.features.items()} == {
        "max": 200,
        "mean": 100,
        "sd": 9.5,
        "mass": 11300,
    }


def test_rejected_segments_are_there_on_demand_without_names(tmp_path):
    path = tmp_path / "worm.apo"
    path.write_text("#no, order_info, name, comment, z, x, y\n" + ROWS)
    worm = read_apo(path, "worm", keep_rejected=True)
    assert worm.names == ("ADAL", "", "", "PM2")
    assert worm.features["rejected"].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ROWS[:-20], "line 6 has 6 fields"),
        (ROWS.replace("5,5,adal", "5.5,5,adal"), "line 1: the number is '5.5'"),
        (ROWS.replace("34.000", "deep"), "line 6: z is 'deep'"),
    ],
)
def test_errors_name_what_is_wrong(tmp_path, text, words):
    path = tmp_path / "worm.apo"
    path.write_text(text)
    with pytest.raises(ReadError, match=words):
        read_apo(path, "worm")
