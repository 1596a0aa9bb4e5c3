"""OME-XML of strangers: only the attributes that are needed, no tree, no entities, no DTD."""

from xml.parsers import expat

from eutely.io.volumes.volume import VoxelSize, in_micrometres

DEEPEST = 64
"""Elements inside each other; OME-XML has about ten."""

MOST_PLANES = 10_000_000
"""Planes of an image, and largest number of a plane."""

COUNTS = ("SizeZ", "SizeC", "SizeT", "SizeX", "SizeY", "IFD", "PlaneCount", "NumPlanes",
          "FirstZ", "FirstC", "FirstT")  # fmt: skip
"""Attributes by which readers allocate lists of planes."""

Element = tuple[str, dict[str, str]]
"""Name of an element without its name space, and its attributes."""


def ome_elements(xml: str) -> list[Element]:
    """Return the elements ``Pixels``, ``Channel``, ``TiffData`` and ``UUID`` of OME-XML, in order.

    Raises
    ------
    ValueError
        if it is malformed, has a DTD, is nested too deeply, or counts too many planes.
    """
    elements: list[Element] = []
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"OME metadata nested more than {DEEPEST} deep")
        name = tag.rpartition(":")[2]
        if name in {"Pixels", "Channel", "TiffData", "UUID"}:
            elements.append((name, attributes))

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise ValueError("OME metadata with a DTD")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(xml.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise ValueError(f"malformed OME metadata, {error}") from error
    for name, attributes in elements:
        for key in COUNTS:
            if not 0 <= int(attributes.get(key, 0)) <= MOST_PLANES:
                raise ValueError(f"OME metadata: {name} {key} is {attributes[key][:20]}")
    return elements


def check_ome(xml: str) -> None:
    """Raise a ValueError if OME-XML is not safe to be read by others, or points elsewhere."""
    for name, attributes in ome_elements(xml):
        file = attributes.get("FileName", "")
        if name == "UUID" and ("/" in file or "\\" in file or "\0" in file):
            raise ValueError(f"OME metadata: the file {file[:80]} lies outside the folder")
        planes = [int(attributes.get(f"Size{axis}", 1)) for axis in "ZCT"]
        if planes[0] * planes[1] * planes[2] > MOST_PLANES:
            raise ValueError(f"OME metadata: {' x '.join(map(str, planes))} planes")


def ome_voxel_size(xml: str) -> tuple[VoxelSize | None, str]:
    """Return x, y, z in micrometres of the first image, or None and the reason."""
    pixels = next((found for name, found in ome_elements(xml) if name == "Pixels"), None)
    if pixels is None:
        return None, "OME metadata without an image"
    sides = []
    for axis in "XYZ":
        text = pixels.get(f"PhysicalSize{axis}")
        scale = in_micrometres(pixels.get(f"PhysicalSize{axis}Unit", "µm"))
        if text is None or scale is None:
            return None, f"OME metadata has no PhysicalSize{axis} in a unit of length"
        sides.append(float(text) * scale)
    x, y, z = sides
    if not min(sides) > 0:
        return None, f"metadata says {x} x {y} x {z}"
    return (x, y, z), ""


def ome_channels(xml: str) -> tuple[str, ...]:
    """Return the names of the channels of the first image; () unless all have one."""
    elements = ome_elements(xml)
    begins = [number for number, (name, _) in enumerate(elements) if name == "Pixels"]
    first = elements[slice(*begins[:2])] if begins[1:] else elements
    names = tuple(found.get("Name", "") for name, found in first if name == "Channel")
    return names if all(names) else ()
