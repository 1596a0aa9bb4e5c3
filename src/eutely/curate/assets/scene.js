// The specimen beside the atlas in 3D.
"use strict";

// What the page knows: all specimens, the one that is open, the nucleus in question.
const desk = { overview: null, open: null, row: -1, passed: [], swapping: false, pinned: new Map(), places: null };

const hues = bodyColours(cells.names, cells.means);
const scene = new Viewer(document.getElementById("specimen-stage"));
const paint = document.getElementById("paint"), apart = document.getElementById("apart");
if (!scene.gl) document.body.classList.add("flat");

const nameOf = (row) => (desk.open.cells[row] < 0 ? "no cell" : title(desk.open.cells[row]));
const nucleus = (row) => `nucleus ${desk.open.ids[row]}`;

// Row of the nucleus that has a cell now, or -1.
const holder = (cell) => (cell < 0 ? -1 : desk.open.cells.indexOf(cell));

function tint(row) {
  const { cells: now, doubt } = desk.open;
  if (paint.value === "own") return desk.own.length ? rgb(desk.own, row) : GREY;
  if (paint.value === "group") return now[row] < 0 ? GREY : groupHue(now[row]);
  if (desk.pinned.has(row)) return [0.45, 0.85, 0.55];
  if (paint.value === "name") return now[row] < 0 ? GREY : hues[now[row]];
  return blend("good", (1 - doubt[row] - 0.3) / 0.7);
}

function drawScene() {
  if (!desk.open) return;
  const count = desk.open.ids.length, all = cells.count + count, beside = apart.value === "beside";
  const places = new Float32Array(4 * all), forms = new Float32Array(6 * all), tints = new Float32Array(4 * all);
  const chosen = desk.row < 0 ? -1 : desk.open.cells[desk.row];
  const others = desk.row < 0 ? [] : desk.open.others[desk.row].map(([cell]) => cell);
  places.set(placesOf(cells.means, cells.count, beside ? 0.5 : 0));
  forms.set(cells.forms.map((value) => 2.25 * value));
  for (let cell = 0; cell < cells.count; cell++) {
    const near = cell === chosen || others.includes(cell);
    const own = paint.value === "own" && cells.colours, group = paint.value === "group";
    tints.set([...(own ? rgb(cells.colours, cell) : group ? groupHue(cell) : hues[cell]), near ? 1 : own || group ? 0.6 : desk.row >= 0 || !beside ? 0.25 : 0.7], 4 * cell);
  }
  const size = (0.24 * data.spacing) ** 2;
  for (let row = 0; row < count; row++) {
    const body = cells.count + row;
    places.set([...desk.places.subarray(3 * row, 3 * row + 3), beside ? -0.5 : 0], 4 * body);
    forms.set([size, 0, 0, size, 0, size], 6 * body);
    const clear = desk.row < 0 || row === desk.row || ["own", "group"].includes(paint.value);  // colours are to be compared
    tints.set([...tint(row), clear ? 1 : 0.55], 4 * body);
  }
  const ends = [], inks = [];
  const line = (row, cell, colour, alpha) => {
    const body = cells.count + row;
    ends.push(...places.subarray(4 * cell, 4 * cell + 4), ...places.subarray(4 * body, 4 * body + 4));
    inks.push(...colour, alpha, ...colour, alpha);
  };
  if (desk.row >= 0) {
    if (chosen >= 0) line(desk.row, chosen, [1, 1, 1], 1);
    for (const cell of others) line(desk.row, cell, [0.96, 0.72, 0.36], 0.7);
  }
  scene.apart = beside ? 1 : 0;
  scene.setBodies(places, forms, tints);
  scene.setLines(new Float32Array(ends), new Float32Array(inks));
}

scene.annotate = (ink, width, height) => {
  if (!desk.open) return;
  scaleBar(ink, scene, height);
  if (scene.apart > 0) captions(ink, scene, ["atlas", desk.open.name], width, height);
  const rows = desk.open.ids.map((_, row) => cells.count + row);
  if (scene.scale * data.spacing > 30)
    labels(ink, scene, rows, (body) => (body === cells.count + desk.row ? "" : nameOf(body - cells.count)), desk.row < 0 ? [] : [cells.count + desk.row]);
  if (desk.row < 0) return;
  if (desk.open.cells[desk.row] >= 0) ring(ink, scene, desk.open.cells[desk.row], nameOf(desk.row));
  const roomy = scene.scale * data.spacing > 24;
  const taken = [];
  // A name where there is room for it, else the digit that chooses it, else nothing.
  const words = (cell, at) => {
    const { x, y, half } = scene.where(cell), top = y - Math.max(half, 5) - 10;
    for (const text of roomy ? [`${at + 1} ${title(cell)}`, `${at + 1}`] : []) {
      const wide = 4.2 * text.length + 3;
      if (taken.some(([u, v, other]) => Math.abs(u - x) < wide + other && Math.abs(v - top) < 14)) continue;
      taken.push([x, top, wide]);
      return text;
    }
    return "";
  };
  desk.open.others[desk.row].forEach(([cell], at) => ring(ink, scene, cell, words(cell, at)));
  ring(ink, scene, cells.count + desk.row, desk.open.cells[desk.row] < 0 ? nucleus(desk.row) : nameOf(desk.row));
};

scene.onHover = (body, left, top) => {
  if (body < 0) tip.hidden = true;
  else if (body < cells.count) showTip(scene.stage, left, top, `${title(body)} in the atlas`, cellLines(body));
  else {
    const row = body - cells.count, doubt = desk.open.doubt[row];
    showTip(scene.stage, left, top, nameOf(row), [nucleus(row),
      desk.pinned.has(row) ? "settled by a person" : `${percent(1 - doubt)} expected right`]);
  }
};

// Zoom in on the nucleus and its cell.
function travel() {
  if (desk.row < 0) return;
  const cell = desk.open.cells[desk.row];
  scene.goTo(cells.count + desk.row, scene.round ? 1.25 : 4, cell);
}

function legendOf() {
  const good = { scale: "good", low: "≤ 30% sure", high: "sure" };
  const items = paint.value === "group" ? groupItems : paint.value === "own" ? [] : [["settled", [0.45, 0.85, 0.55]]];
  legend(document.getElementById("legend"), { ...(paint.value === "doubt" ? good : {}), items });
}
if (!groupList.length) paint.querySelector("[value=group]").remove();
for (const choice of [paint, apart]) choice.addEventListener("change", () => { drawScene(); legendOf(); });
document.getElementById("reset").addEventListener("click", () => scene.reset());
legendOf();
