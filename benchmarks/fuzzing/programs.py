"""Good files of other programs, written as these programs write them."""

import zipfile
from pathlib import Path

COUNT = 12
"""Nuclei of each file."""


def acetree(path: Path) -> None:
    lines = [
        f"{i}, 1, -1, {i}, -1, {20 * i}, {i * i}, {i}.5, 20, AB{i}, 5000, 0, 0, 0, , 0, 0, 0, 0, 0,"
        for i in range(1, COUNT + 1)
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("nuclei/t001-nuclei", "\n".join(lines) + "\n")
    path.with_suffix(".xml").write_text(
        '<?xml version="1.0"?><embryo><resolution xyRes="0.1" zRes="0.5"/></embryo>'
    )


def trackmate_xml(path: Path) -> None:
    spots = "".join(
        f'<Spot ID="{i}" name="ID{i}" POSITION_X="{i}" POSITION_Y="{i * i}" POSITION_Z="{-i}.5" '
        f'FRAME="0" RADIUS="2" VISIBILITY="1"/>'
        for i in range(COUNT)
    )
    model = f'<Model spatialunits="micron">{spots}</Model>'
    path.write_text(f'<?xml version="1.0"?><TrackMate version="7">{model}</TrackMate>')


def trackmate_csv(path: Path) -> None:
    head = "LABEL,ID,POSITION_X,POSITION_Y,POSITION_Z,FRAME,RADIUS,MEAN_INTENSITY_CH1\n"
    names = "Label,Spot ID,X,Y,Z,Frame,Radius,Mean ch1\n" * 2
    units = ",,(micron),(micron),(micron),,(micron),(counts)\n"
    rows = "".join(f"c{i},{i},{i},{i * i},{-i}.5,0,2.5,{70 + i}\n" for i in range(COUNT))
    path.write_text(head + names + units + rows)


def mastodon(path: Path) -> None:
    head = (
        '"Label","ID","Spot frame","Spot position","Spot position","Spot position"\n'
        '"","","","X","Y","Z"\n"","","","(um)","(um)","(um)"\n'
    )
    rows = "".join(f'"{i}","{i}","3","{i}","{i * i}","-{i}.5"\n' for i in range(COUNT))
    path.write_text(head + rows)


def imaris(path: Path) -> None:
    head = (
        "\n Position \n ==================== \n \nPosition X,Position Y,Position Z,Unit,Time,ID,\n"
    )
    path.write_text(head + "".join(f"{i},{i * i},-{i}.5,um,1,{i},\n" for i in range(COUNT)))


def neuropal(path: Path) -> None:
    head = (
        "Atlas Version,,Background Threshold\n1.0,,0.1\n\n"
        "User ID,User Confidence,,Real X (um),Real Y (um),Real Z (um),,Real Red,Real Green\n"
    )
    rows = "".join(f"N{i},1.0,,{i},{i * i},-{i}.5,,{i},{9 * i}\n" for i in range(COUNT))
    path.write_text(head + rows)


def epic(path: Path) -> None:
    head = "cellTime,cell,time,none,global,local,blot,cross,z,x,y,size,gweight\n"
    rows = "".join(f"AB{i}:5,AB{i},5,1,2,3,4,5,{i}.5,{i * i},{i},20,8\n" for i in range(COUNT))
    path.write_text(head + rows)


def marker(path: Path) -> None:
    head = "##x,y,z,radius,shape,name,comment, color_r,color_g,color_b\n"
    rows = "".join(f"{i}, {i * i}, {i}.5, 2, 1, N{i}, , 255,0,0\n" for i in range(COUNT))
    path.write_text(head + rows)


def geff(path: Path) -> None:
    """Write the nodes of a graph; the layout is that of the package geff."""
    import numpy as np
    import zarr

    axes = [{"name": "t", "type": "time"}]
    axes += [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    group = zarr.create_group(path, zarr_format=2, attributes={"geff": {"axes": axes}})
    nodes = group.create_group("nodes")
    nodes.create_array("ids", data=np.arange(COUNT))
    props = nodes.create_group("props")
    numbers = np.arange(COUNT, dtype=np.float64)
    columns = {"t": numbers * 0, "x": numbers, "y": numbers**2, "z": -numbers, "gfp": numbers}
    for name, column in columns.items():
        props.create_group(name).create_array("values", data=column)


FILES = {
    "embryo.zip": acetree, "tracks.xml": trackmate_xml, "spots.csv": trackmate_csv,
    "mastodon.csv": mastodon, "Spots_Position.csv": imaris, "head.csv": neuropal, "CD1.csv": epic,
    "head.marker": marker, "tracks.geff": geff,
}  # fmt: skip
"""Files by their name."""
