"""The plugin in napari itself, without a screen."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eutely.io.relabel import colour_of
from eutely.io.volumes import write_volume

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
with warnings.catch_warnings(action="ignore"):  # warnings of napari and Qt are not ours
    if os.environ.get("EUTELY_NAPARI") == "required":  # on CI a skip is a failure
        import napari
        import npe2
        import qtpy.QtWidgets  # noqa: F401
    else:
        reason = "no napari: pip install 'eutely[napari]'"
        napari = pytest.importorskip("napari", reason=reason)
        npe2 = pytest.importorskip("npe2", reason=reason)
        pytest.importorskip("qtpy.QtWidgets", reason=reason, exc_type=ImportError)
pytestmark = pytest.mark.filterwarnings("default")

ROWS = ["id,cell,name,confidence", "7,0,AVAL,0.99", "3,1,AVAR,0.4", "5,2,AVBL,0.2"]


@pytest.fixture
def viewer() -> Iterator[Any]:
    viewer = napari.Viewer(show=False)
    yield viewer
    viewer.close()


@pytest.fixture
def worm(tmp_path: Path) -> Path:
    labels = np.zeros((6, 8, 10), np.uint16)
    for number, corner in ((7, (1, 1, 1)), (3, (3, 4, 5)), (5, (4, 6, 8))):
        z, y, x = corner
        labels[z : z + 2, y : y + 2, x : x + 2] = number
    write_volume(labels, tmp_path / "worm.tif", (0.5, 0.5, 1.0))
    (tmp_path / "worm.csv").write_text("\n".join(ROWS) + "\n")
    return tmp_path / "worm.tif"


def test_the_manifest_is_right() -> None:
    manifest = npe2.PluginManifest.from_file(
        Path(__file__).parents[2] / "src" / "eutely" / "napari" / "napari.yaml"
    )
    manifest.validate_imports()
    assert manifest.contributions.readers[0].accepts_directories


def test_check_names(viewer: Any, worm: Path, tmp_path: Path) -> None:
    from eutely.napari.reader import read_layers
    from eutely.napari.widget import Check

    widget = Check(viewer)
    for data, options, kind in read_layers(str(worm)):
        viewer._add_layer_from_data(data, options, kind)
    labels = viewer.layers["worm"]
    np.testing.assert_allclose(labels.get_color(7), colour_of("AVAL"), atol=0.01)
    assert widget.list.count() == 2
    assert "AVBL   20%" in widget.list.item(0).text()
    assert [layer.name for layer in viewer.layers] == ["worm", "names of worm"]
    names = viewer.layers["names of worm"]
    assert list(names.features["name"]) == [
        "AVAL", "AVAL", "AVAR", "AVAR", "AVBL", "AVBL",
    ]  # fmt: skip
    for z, shown in enumerate(([], ["AVAL"], ["AVAL"], ["AVAR"], ["AVAR", "AVBL"], ["AVBL"])):
        assert list(names.features["name"][names.data[:, 0] == z]) == shown
    viewer.dims.ndisplay = 3
    assert list(names.features["name"][names.shown]) == ["AVAL", "AVAR", "AVBL"]
    viewer.dims.ndisplay = 2
    assert names.shown.all()

    widget.list.setCurrentRow(0)
    assert labels.selected_label == 5
    np.testing.assert_allclose(widget.camera.center, (4.5, 3.25, 4.25))
    widget.right.setText("AVBR")
    widget.pin()
    assert widget.list.currentRow() == 1
    assert "✓ AVBR" in widget.list.item(0).text()
    widget.write_to(tmp_path / "pins.csv")
    assert (tmp_path / "pins.csv").read_text() == "specimen,id,name\nworm,5,AVBR\n"


def test_a_wrong_table_is_reported(viewer: Any, tmp_path: Path) -> None:
    from eutely.napari.widget import Check

    widget = Check(viewer)
    widget.load(tmp_path / "nothing.csv")
    assert widget.words.text() == "Open a label volume first."
    viewer.add_labels(np.ones((3, 4, 5), int), name="worm")
    widget.load(tmp_path / "nothing.csv")
    assert "not a table of eutely annotate" in widget.words.text()


def test_the_menu_command_opens_the_widget(viewer: Any, worm: Path) -> None:
    """As a user does: Plugins > eutely > Check names, with a volume opened by napari itself."""
    from napari._app_model import get_app_model

    from eutely.napari.widget import Check

    npe2.PluginManager.instance().enable("eutely")
    viewer.open(str(worm), plugin="eutely")
    assert [layer.name for layer in viewer.layers] == ["worm", "names of worm"]
    get_app_model().commands.execute_command("eutely.check").result()
    (dock,) = [
        dock for name, dock in viewer.window._wrapped_dock_widgets.items() if "Check names" in name
    ]
    check = dock.widget() if isinstance(dock.widget(), Check) else dock.findChild(Check)
    assert check.list.count() == 2
    assert "worm: 3 nuclei, 2 of them uncertain" in check.words.text()
