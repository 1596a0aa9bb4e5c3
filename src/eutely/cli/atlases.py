"""``eutely atlases``: the atlases that come with the package."""

from eutely.cli.common import out


def atlases() -> None:
    """List the atlases that come with eutely; their names stand for files in other commands.

    Example: eutely annotate celegans-l1 worm.tif -o named
    """
    from eutely.io.atlas import built_in, read_atlas

    for name, path in built_in().items():
        atlas = read_atlas(path)
        named = sum(map(bool, atlas.names))
        about = "; ".join(atlas.provenance.get(key, "") for key in ("organism", "source"))
        out.print(
            f"{name}  {len(atlas)} cells, {named} named, from {atlas.specimens} specimens: {about}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
