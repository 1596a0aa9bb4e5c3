// The atlas alone, for notebooks: turn it, zoom, point at a cell.
"use strict";

const small = new Viewer(document.getElementById("stage"));
const places = new Float32Array(4 * cells.count), tints = new Float32Array(4 * cells.count);
bodyColours(cells.names, cells.means).forEach((colour, cell) => {
  places.set(cells.means.subarray(3 * cell, 3 * cell + 3), 4 * cell);
  tints.set([...colour, 1], 4 * cell);
});
small.annotate = (ink, width, height) => scaleBar(ink, small, height);
small.onHover = (cell, left, top) => {
  if (cell < 0) tip.hidden = true;
  else showTip(small.stage, left, top, title(cell), cellLines(cell));
};
small.setBodies(places, cells.forms, tints);
