"""The dock widget "Check names": lists uncertain nuclei and writes corrections to pins.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Labels
from napari.utils import DirectLabelColormap
from qtpy.QtWidgets import (
    QComboBox,
    QCompleter,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from eutely.errors import EutelyError
from eutely.io.pins import add_pins
from eutely.napari.named import Named, as_pin, read_named
from eutely.napari.planes import cuts
from eutely.napari.reader import CENTRES, TABLE, colormap, names_layer, show_one_name_in_3d

NEAR = 8.0
"""Smallest zoom of the camera at a nucleus."""


class Check(QWidget):
    """Lists uncertain nuclei of an annotated label volume, shows them, collects corrections."""

    # napari recognises the parameter by its name.
    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = viewer = napari_viewer
        self.named: Named | None = None
        self.centres = np.zeros((0, 3))
        self.rows: list[int] = []
        self.pins: dict[tuple[str, int], str] = {}
        self._build()
        show_one_name_in_3d(viewer)
        viewer.layers.events.inserted.connect(self._layers_changed)
        viewer.layers.events.removed.connect(self._layers_changed)
        self._layers_changed()

    def _build(self) -> None:
        self.volumes = QComboBox()
        self.volumes.activated.connect(self._from_layer)
        self.open = QPushButton("Annotation table …")
        self.open.clicked.connect(self._ask_table)
        self.words = QLabel("Choose a label volume and the table of eutely annotate.")
        self.words.setWordWrap(True)
        self.list = QListWidget()
        self.list.currentRowChanged.connect(self.jump)
        self.right = QLineEdit()
        self.right.returnPressed.connect(self.pin)
        self.keep = QPushButton("Pin this name")
        self.keep.clicked.connect(self.pin)
        self.write = QPushButton("Write pins.csv …")
        self.write.clicked.connect(self._ask_pins)
        line = QHBoxLayout()
        line.addWidget(self.right)
        line.addWidget(self.keep)
        column = QVBoxLayout(self)
        for part in (self.volumes, self.open, self.words, self.list):
            column.addWidget(part)
        column.addLayout(line)
        column.addWidget(self.write)

    @property
    def layer(self) -> Any:
        """The chosen layer of labels, or None."""
        name = self.volumes.currentText()
        return next((layer for layer in self.viewer.layers if layer.name == name), None)

    @property
    def camera(self) -> Any:
        """The camera, whose place depends on the version of napari."""
        return getattr(self.viewer, "scene", self.viewer).camera

    def load(self, table: Path | str, *, names: bool = True) -> None:
        """Show the annotations of ``table`` on the chosen volume.

        Parameters
        ----------
        table
            of ``eutely annotate``.
        names
            also add a layer of names.
        """
        layer = self.layer
        if layer is None:
            self.words.setText("Open a label volume first.")
            return
        try:
            named = read_named(table)
        except EutelyError as error:
            self.words.setText(str(error))
            return
        self.named = named
        centres = layer.metadata.get(CENTRES)
        names = names or centres is None or len(centres) != len(named)
        if names:
            places = cuts((np.asarray(plane) for plane in layer.data), named.ids)
            centres = places.centroids()
        self.centres = centres * layer.scale
        if names:  # else the reader has given the layer its colours
            colours = colormap(named, places.top)
            is_table = not isinstance(colours, dict)
            layer.colormap = colours if is_table else DirectLabelColormap(color_dict=colours)
            points, options, _ = names_layer(places, tuple(layer.scale), named)
            if options["name"] in self.viewer.layers:
                self.viewer.layers.remove(options["name"])
            self.viewer.add_points(points, **options)
        self.volumes.setCurrentText(layer.name)
        self.right.setCompleter(QCompleter(sorted({name for name in named.names if name})))
        self.rows = named.uncertain().tolist()
        self.list.clear()
        self.list.addItems([self._line(row) for row in self.rows])
        self.words.setText(
            f"{named.specimen}: {len(named)} nuclei, {len(self.rows)} of them uncertain, the least "
            "certain first."
        )

    def jump(self, place: int) -> None:
        """Move the camera to the nucleus at ``place`` of the list."""
        if self.named is None or not 0 <= place < len(self.rows):
            return
        row = self.rows[place]
        centre = self.centres[row]
        self.right.setText(self.pins.get(self._key(row), self.named.names[row]))
        self.right.setToolTip(f"may also be: {self.named.alternatives[row] or 'nothing else'}")
        self.layer.selected_label = int(self.named.ids[row])
        if np.isfinite(centre).all():
            self.viewer.dims.set_point(range(3), centre)
            self.camera.center = tuple(centre)
            self.camera.zoom = max(self.camera.zoom, NEAR)

    def pin(self) -> None:
        """Take the name in the text field for the current nucleus, and go to the next nucleus."""
        place = self.list.currentRow()
        name = self.right.text().strip()
        if self.named is None or place < 0 or not name:
            return
        row = self.rows[place]
        self.pins[self._key(row)] = name
        self.list.item(place).setText(f"✓ {name}   (nucleus {self.named.ids[row]})")
        self.write.setText(f"Write {len(self.pins)} to pins.csv …")
        self.list.setCurrentRow(min(place + 1, self.list.count() - 1))

    def write_to(self, path: Path | str) -> None:
        """Write the pins to ``path``; pins that are there already stay."""
        try:
            add_pins({key: as_pin(name) for key, name in self.pins.items()}, Path(path))
        except EutelyError as error:
            self.words.setText(str(error))
        else:
            self.words.setText(f"{len(self.pins)} pins in {path}; use it with the option --pins.")

    def _line(self, row: int) -> str:
        assert self.named is not None
        confidence, label = self.named.confidence[row], self.named.ids[row]
        if not np.isfinite(confidence):
            return f"no cell   (nucleus {label})"
        return f"{self.named.names[row]}   {confidence:.0%}   (nucleus {label})"

    def _key(self, row: int) -> tuple[str, int]:
        assert self.named is not None
        return self.named.specimen, int(self.named.ids[row])

    def _layers_changed(self, _: object = None) -> None:
        chosen = self.volumes.currentText()
        names = [layer.name for layer in self.viewer.layers if isinstance(layer, Labels)]
        self.volumes.clear()
        self.volumes.addItems(names)
        if chosen in names:
            self.volumes.setCurrentText(chosen)
        elif names:
            self._from_layer()

    def _from_layer(self, _: object = None) -> None:
        """Load the table with which the chosen volume was opened, if any."""
        table = self.layer.metadata.get(TABLE) if self.layer is not None else None
        if table and (self.named is None or self.named.specimen != Path(table).stem):
            self.load(table, names=False)  # the reader has added the layer of names

    def _ask_table(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Annotation table", filter="CSV (*.csv)")
        if path:
            self.load(path)

    def _ask_pins(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Write pins", "pins.csv", "CSV (*.csv)")
        if path:
            self.write_to(path)
