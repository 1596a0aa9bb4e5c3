"""Files as other programs write them: what is read, what must be chosen, what is refused."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eutely import read
from eutely.errors import EutelyError
from eutely.io.programs.recording import time_range

FILES = Path(__file__).parent / "files"

ACETREE = [
    "1, 1, -1, 1, -1, 100, 50, 10.5, 20, ABa, 5000, 0, 0, 0, , 0, 0, 0, 0, 0,",
    "2, 1, -1, 2, -1, 140, 60, 12.0, 22, ABp, 5100, 0, 0, 0, EMS, 0, 0, 0, 0, 0,",
    "3, 1, -1, 3, -1, 180, 70, 14.0, 24, Nuc3, 5200, 0, 0, 0, , 0, 0, 0, 0, 0,",
    "4, 1, -1, 4, -1, 220, 90, 16.0, 26, P2, 5300, 0, 0, 0, , 0, 0, 0, 0, 0,",
    "5, 0, -1, 5, -1, 999, 99, 99.0, 26, dead, 1, 0, 0, 0, , 0, 0, 0, 0, 0,",
]
RESOLUTION = (
    '<?xml version="1.0"?><embryo><resolution xyRes="0.1" zRes="0.5" planeEnd="30"/></embryo>'
)

CD = "cellTime,cell,time,none,global,local,blot,cross,z,x,y,size,gweight\n" + "".join(
    f"{cell}:{time},{cell},{time},22000,-2000,{time},1{k},-2278,"
    f"{10 + k},{100 + 9 * k},{50 + k},20,8154\n"
    for time in (24, 25)
    for k, cell in enumerate(["ABal", "ABar", "ABpl", "ABpr", "E"])
)

TRACKMATE = (
    "LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME,RADIUS,VISIBILITY,"
    "MANUAL_SPOT_COLOR,MEAN_INTENSITY_CH1\n"
    "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,Radius,Visibility,Manual spot color,Mean ch1\n"
    "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,R,Visibility,Spot color,Mean ch1\n"
    ",,,(quality),(micron),(micron),(micron),(sec),,(micron),,,(counts)\n"
    "AVAL,10,0,1.0,1.5,2.5,3.5,0.0,0,2.5,1,,700.5\n"
    "ID11,11,1,1.0,2.5,2.0,4.5,0.0,0,2.5,1,,710.5\n"
    "ID12,12,2,1.0,3.5,1.0,5.5,0.0,0,2.5,1,,720.5\n"
    "ID13,13,3,1.0,4.5,9.0,7.5,0.0,0,2.5,1,,730.5\n"
    "ID14,14,3,1.0,4.5,9.0,8.5,5.0,1,2.5,1,,730.5\n"
)

MASTODON = (
    '"Label","ID","Spot frame","Spot position","Spot position","Spot position",'
    '"Spot radius","Mean"\n'
    '"","","","X","Y","Z","","ch1"\n'
    '"","","","(µm)","(µm)","(µm)","(µm)","Counts"\n'
    '"AVA","0","3","1.0","2.0","3.0","1.5","9.0"\n'
    '"1","1","3","2.0","2.5","4.0","1.5","8.0"\n'
    '"2","2","3","3.0","0.0","5.0","1.5","7.0"\n'
    '"3","3","3","4.0","5.0","9.0","1.5","6.0"\n'
)

IMARIS = (
    "\n Position \n ==================== \n \n"
    "Position X,Position Y,Position Z,Unit,Category,Collection,Time,TrackID,ID,\n"
    "161.5,101.2,70.1,um,Spot,Position,1,,0,\n"
    "140.8,115.5,87.2,um,Spot,Position,1,,1,\n"
    "158.4,97.2,101.8,um,Spot,Position,1,,2,\n"
    "120.4,87.2,91.8,um,Spot,Position,1,,3,\n"
)

NEUROPAL = (
    "Atlas Version,,Background Threshold,,Otsu Threshold,Otsu Score,,Linear Change Point,"
    "Change Residual\n"
    "1.000000,,0.1,,0.2,0.3,,0.4,0.5\n\n"
    "User ID,User Confidence,Auto ID,Auto Confidence,,Real X (um),Real Y (um),Real Z (um),,"
    "Real Red,Real Green,Real Blue,Real White,,Aligned X (um),Aligned Y (um),Aligned Z (um),,GFP\n"
    "AVAL,1.0,AVAR,0.4,,1.0,2.0,3.0,,10,20,30,40,,5,5,5,,0\n"
    ",0.0,AVBL,0.4,,2.0,4.0,3.5,,11,21,31,41,,5,5,6,,1\n"
    "RID,0.9,RID,0.4,,3.0,5.0,5.0,,12,22,32,42,,5,5,7,,2\n"
    "AVER,0.9,AVER,0.4,,4.0,1.0,6.0,,13,23,33,43,,5,5,8,,3\n"
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def acetree(path: Path, times: range = range(1, 4)) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for time in times:
            archive.writestr(f"nuclei/t{time:03d}-nuclei", "\n".join(ACETREE) + "\n")
    return path


def test_lineage_of_acetree_by_time_point(tmp_path: Path) -> None:
    path = acetree(tmp_path / "embryo.zip")
    [specimen] = read(f"{path}:2", voxel_size=(0.1, 0.1, 0.5))
    assert specimen.name == "embryo_t2"
    assert specimen.ids.tolist() == [1, 2, 3, 4]  # the dead nucleus is left out
    assert specimen.names == ("ABa", "EMS", "", "P2")  # an assigned name counts, a number is none
    assert_allclose(specimen.centroids[0], [10.0, 5.0, 5.25])
    assert_allclose(specimen.radii[0], 1.0)
    assert specimen.unit == "um"


def test_range_of_time_points_is_a_cohort(tmp_path: Path) -> None:
    path = acetree(tmp_path / "embryo.zip")
    cohort = read(f"{path}:2-9", voxel_size=0.1)
    assert [specimen.name for specimen in cohort] == ["embryo_t2", "embryo_t3"]


def test_voxel_size_of_acetree_file_beside_it(tmp_path: Path) -> None:
    path = acetree(tmp_path / "embryo.zip", range(1, 2))
    with pytest.raises(EutelyError, match=r"--voxel-size X,Y,Z"):
        read(path)
    write(tmp_path / "embryo.xml", RESOLUTION)
    [specimen] = read(tmp_path)  # the folder: the XML is no specimen
    assert_allclose(specimen.centroids[0], [10.0, 5.0, 5.25])


def test_time_point_must_be_chosen(tmp_path: Path) -> None:
    path = acetree(tmp_path / "embryo.zip")
    with pytest.raises(EutelyError, match=r"3 time points \(1 to 3\); choose one.*embryo.zip:2"):
        read(path, voxel_size=1)
    with pytest.raises(EutelyError, match="no nuclei at time point 7; there are 1 to 3"):
        read(f"{path}:7", voxel_size=1)
    with pytest.raises(EutelyError, match="the last one is before the first"):
        time_range("9-3")
    table = write(tmp_path / "plain.csv", "x,y,z\n" + "1,2,3\n4,5,6\n7,8,8\n1,0,0\n")
    with pytest.raises(EutelyError, match="a table without time points"):
        read(f"{table}:3")


def test_cd_table_of_epic(tmp_path: Path) -> None:
    path = write(tmp_path / "CD1.csv", CD)
    [specimen] = read(f"{path}:25", voxel_size=(0.09, 0.09, 1))
    assert specimen.names == ("ABal", "ABar", "ABpl", "ABpr", "E")
    assert_allclose(specimen.centroids[1], [109 * 0.09, 51 * 0.09, 11])
    assert_allclose(specimen.features["blot"], [10, 11, 12, 13, 14])


def test_spots_of_trackmate(tmp_path: Path) -> None:
    path = write(tmp_path / "spots.csv", TRACKMATE)
    [specimen] = read(f"{path}:0")
    assert specimen.unit == "um"
    assert specimen.ids.tolist() == [10, 11, 12, 13]
    assert specimen.names == ("AVAL", "", "", "")
    assert set(specimen.features) == {"MEAN_INTENSITY_CH1"}
    assert_allclose(specimen.radii, 2.5)


def test_xml_of_trackmate(tmp_path: Path) -> None:
    spots = "".join(
        f'<Spot ID="{k}" name="ID{k}" POSITION_X="{k}" POSITION_Y="{k * k}" POSITION_Z="{-k}" '
        f'FRAME="0" RADIUS="2" VISIBILITY="{int(k != 4)}" QUALITY="1"/>'
        for k in range(6)
    )
    model = f'<Model spatialunits="pixel">{spots}</Model>'
    text = f'<?xml version="1.0"?><TrackMate version="7">{model}</TrackMate>'
    path = write(tmp_path / "tracks.xml", text)
    [specimen] = read(path)
    assert specimen.unit == "voxel"
    assert specimen.ids.tolist() == [0, 1, 2, 3, 5]
    bomb = '<!DOCTYPE x [<!ENTITY a "b">]>' + text.partition("?>")[2]
    with pytest.raises(EutelyError, match="entities"):
        read(write(tmp_path / "bomb.xml", bomb))


def test_flat_recording_is_refused(tmp_path: Path) -> None:
    rows = TRACKMATE.replace("3.5,0.0,0", "0,0.0,0").splitlines()[:4]
    rows += [f"ID{k},{k},,1,{k},{k * k},0,0,0,1,1,,5" for k in range(5)]
    with pytest.raises(EutelyError, match="same z; expected a recording in 3D"):
        read(write(tmp_path / "flat.csv", "\n".join(rows) + "\n"))


def test_table_of_mastodon(tmp_path: Path) -> None:
    [specimen] = read(write(tmp_path / "spots.csv", MASTODON))
    assert specimen.name == "spots"  # only one time point: none was chosen
    assert specimen.unit == "um"
    assert specimen.names == ("AVA", "", "", "")
    assert_allclose(specimen.centroids[3], [4, 5, 9])
    assert_allclose(specimen.features["Mean ch1"], [9, 8, 7, 6])


def test_statistics_of_imaris(tmp_path: Path) -> None:
    [specimen] = read(write(tmp_path / "Spots_Position.csv", IMARIS))
    assert specimen.unit == "um"
    assert specimen.ids.tolist() == [0, 1, 2, 3]
    assert_allclose(specimen.centroids[0], [161.5, 101.2, 70.1])


def test_neurons_of_neuropal_id(tmp_path: Path) -> None:
    [specimen] = read(write(tmp_path / "head.csv", NEUROPAL))
    assert specimen.names == ("AVAL", "", "RID", "AVER")  # what the program proposes is no name
    assert list(specimen.features) == ["R", "G", "B", "W", "GFP"]
    assert_allclose(specimen.features["W"], [40, 41, 42, 43])


def test_names_in_column_id_and_aligned_columns(tmp_path: Path) -> None:
    text = "X,Y,Z,R,G,B,aligned_x,ID\n" + "".join(
        f"{k},{k * k},{-k},1{k},2,3,{k},{name}\n"
        for k, name in enumerate(["AVAL", "", "RID", "AVE"])
    )
    [specimen] = read(write(tmp_path / "head.csv", text))
    assert specimen.names == ("AVAL", "", "RID", "AVE")
    assert set(specimen.features) == {"R", "G", "B"}  # aligned by true names: would leak them


def test_markers_of_vaa3d(tmp_path: Path) -> None:
    text = "##x,y,z,radius,shape,name,comment, color_r,color_g,color_b\n" + "".join(
        f"{k + 1}.000, {k * k + 1}.000, {2 * k + 1}.000, {k}, 1, {name}, , 255,0,0\n"
        for k, name in enumerate(["AVAL", "", "RID", "AVE"])
    )
    [specimen] = read(write(tmp_path / "head.marker", text))
    assert_allclose(specimen.centroids[3], [3, 9, 6])  # counted from 1 in the file
    assert specimen.names == ("AVAL", "", "RID", "AVE")
    assert np.isnan(specimen.radii[0]).all()
    assert not specimen.features


@pytest.mark.parametrize("version", [2, 3])
def test_graph_written_by_geff(tmp_path: Path, version: int) -> None:
    with zipfile.ZipFile(FILES / f"geff_zarr{version}.zip") as archive:
        archive.extractall(tmp_path)
    path = tmp_path / "tracks.geff"
    with pytest.raises(EutelyError, match=r"3 time points \(0 to 2\)"):
        read(path)
    [specimen] = read(f"{path}:1")
    order = np.argsort(specimen.ids)
    assert specimen.ids[order].tolist() == [101, 102, 103, 104, 105, 106]
    assert specimen.unit == "um"
    assert [specimen.names[row] for row in order] == ["", *(f"cell{k}" for k in range(1, 6))]
    assert_allclose(specimen.radii[order, 0], 1.5 + 0.1 * np.arange(6))
    assert_allclose(specimen.features["intensity"][order], 1.0 + np.arange(6))
    cohort = read(f"{path}:0-2")
    rng = np.random.default_rng(0)  # the coordinates that were written
    assert_allclose(cohort[0].centroids[np.argsort(cohort[0].ids)][0], rng.normal(size=3) * 10)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cd.csv", CD[: len(CD) // 2]),
        ("cd.csv", CD.replace("22000", "x" * 40).replace(",25,", ",2.5,")),
        ("trackmate.csv", TRACKMATE.replace("POSITION_Z", "HEIGHT")),
        ("trackmate.csv", TRACKMATE.replace("3.5,0.0", "deep,0.0")),
        ("mastodon.csv", MASTODON.replace("Spot frame", "Spot time")),
        ("imaris.csv", IMARIS.replace("70.1,um", "70.1,mm")),
        ("head.csv", NEUROPAL.replace("Real Z", "Real Depth")),
        ("tracks.xml", "<TrackMate><Model><Spot ID='1'"),
    ],
)
def test_broken_files_are_one_line(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(EutelyError) as caught:
        read(write(tmp_path / name, text))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_other_zip_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(EutelyError, match="unknown kind of file"):
        read(path)
    cut = acetree(tmp_path / "cut.zip")
    cut.write_bytes(cut.read_bytes()[:-40])
    with pytest.raises(EutelyError, match="unknown kind of file"):
        read(cut)
