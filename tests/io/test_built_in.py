"""The atlases that come with the package."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from eutely.cli import app
from eutely.errors import ReadError
from eutely.io.atlas import built_in, open_atlas


def test_the_worm_is_there_small_and_named() -> None:
    assert built_in()["celegans-l1"].stat().st_size < 2_000_000
    atlas = open_atlas("celegans-l1")
    assert len(atlas) == 558
    assert len(set(atlas.names)) == 558
    assert "zenodo" in atlas.provenance["source"]
    listed = CliRunner().invoke(app, ["atlases"]).output
    assert "celegans-l1  C. elegans, L1 larva" in listed
    assert "558 cells, 558 named" in listed


def test_the_head_is_there_small_named_and_with_colours() -> None:
    assert built_in()["celegans-adult-head"].stat().st_size < 1_000_000
    atlas = open_atlas("celegans-adult-head")
    assert len(set(atlas.names)) == len(atlas) > 180
    assert {"AVAL", "AVAR", "AQR", "RID"} <= set(atlas.names)
    assert set(atlas.features) == {"R", "G", "B"}
    assert atlas.unit == "um"
    assert "focolab/WormND" in atlas.provenance["source"]
    assert "celegans-adult-head" in CliRunner().invoke(app, ["atlases"]).output


def test_the_embryo_is_there_small_and_named() -> None:
    assert built_in()["celegans-embryo-350"].stat().st_size < 1_200_000
    atlas = open_atlas("celegans-embryo-350")
    assert len(set(atlas.names)) == len(atlas) >= 350
    assert (atlas.seen >= 12).all()
    assert "EPIC" in atlas.provenance["source"]
    listed = CliRunner().invoke(app, ["atlases"]).output
    assert "celegans-embryo-350  C. elegans, embryo, 350 cells" in listed


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("celegans-l1").write_text("no atlas")
    with pytest.raises(ReadError, match="celegans-l1: not an atlas"):
        open_atlas("celegans-l1")


def test_an_unknown_name_lists_the_known_ones() -> None:
    known = "celegans-adult-head, celegans-embryo-350, celegans-l1"
    with pytest.raises(ReadError, match=f"one of: {known}"):
        open_atlas("no-such-atlas")
