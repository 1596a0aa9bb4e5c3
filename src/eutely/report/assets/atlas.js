// The atlas: cells as ellipsoids; colours, search, selection.
"use strict";

const hues = bodyColours(cells.names, cells.means);

function ends(values) {
  const known = Array.from(values).filter(Number.isFinite).sort((a, b) => a - b);
  return [known[0] ?? 0, known[Math.floor(0.98 * (known.length - 1))] ?? 1];
}

function byValue(values, scale, words, [low, high] = ends(values)) {
  const colours = Array.from(values, (value) =>
    Number.isFinite(value) ? blend(scale, (value - low) / (high - low || 1)) : GREY);
  return { colours, legend: { scale, low: words(low), high: words(high) } };
}

const PAINTS = {
  name: () => ({ colours: hues, legend: { items: [] } }),
  group: () => ({
    colours: cells.names.map((_, cell) => groupHue(cell)),
    legend: { items: groupItems },
  }),
  own: () => ({ colours: cells.names.map((_, cell) => rgb(cells.colours, cell)), legend: { items: [] } }),
  spread: () => byValue(cells.spread, "amount", (value) => `${round(value)} ${unit}`),
  seen: () => byValue(cells.seen, "good", (value) => `in ${value}`, [Math.min(...cells.seen), data.of]),
  confidence: () => byValue(cells.confidence, "good", percent, [Math.min(0.5, ends(cells.confidence)[0]), 1]),
  accuracy: () => byValue(cells.accuracy, "good", percent, [Math.min(0.5, ends(cells.accuracy)[0]), 1]),
};

const atlas = new Viewer(document.getElementById("atlas-stage"));
const followers = [];  // called with the selected cell, or -1
if (!cells.colours) document.querySelector("#paint [value=own]")?.remove();
const paint = document.getElementById("paint"), size = document.getElementById("size");

function atlasForms(grow) {
  return cells.forms.map((value) => value * grow * grow);
}

// A long body (a worm) needs a low picture, a round body (an embryo) a high picture.
function fitStage() {
  const wide = [Infinity, -Infinity], tall = [Infinity, -Infinity];
  for (let i = 0; i < cells.count; i++)
    for (const [range, k] of [[wide, 0], [tall, 1], [tall, 2]]) {
      range[0] = Math.min(range[0], cells.means[3 * i + k]);
      range[1] = Math.max(range[1], cells.means[3 * i + k]);
    }
  const share = (tall[1] - tall[0]) / (wide[1] - wide[0] || 1);
  atlas.stage.style.height = `${Math.round(Math.min(Math.max(340, 250 + 1000 * share), 600))}px`;
}

function drawAtlas() {
  const { colours, legend: spec } = PAINTS[paint.value]();
  const tints = new Float32Array(4 * cells.count);
  colours.forEach((colour, cell) => tints.set([...colour, state.cell < 0 || state.cell === cell ? 1 : 0.45], 4 * cell));
  atlas.setBodies(placesOf(cells.means, cells.count, 0), atlasForms(+size.value), tints);
  legend(document.getElementById("atlas-legend"), spec);
}

const everyCell = cells.names.map((_, cell) => cell);
atlas.annotate = (ink, width, height) => {
  scaleBar(ink, atlas, height);
  if (atlas.scale * data.spacing > 30) labels(ink, atlas, everyCell, (cell) => (cell === state.cell ? "" : title(cell)),
    state.cell < 0 ? [] : [state.cell]);
  if (state.cell < 0) return;
  ring(ink, atlas, state.cell, title(state.cell));
  document.getElementById("card").classList.toggle("left", atlas.where(state.cell).x > width / 2);  // covers it not
};
atlas.onHover = (cell, left, top) => {
  if (cell < 0) tip.hidden = true;
  else showTip(atlas.stage, left, top, title(cell), cellLines(cell));
};
atlas.onPick = (cell) => select(cell);
paint.addEventListener("change", drawAtlas);
size.addEventListener("change", drawAtlas);

function select(cell, travel = false) {
  state.cell = cell;
  state.nucleus = -1;
  drawAtlas();
  if (travel && cell >= 0) atlas.goTo(cell, 5);
  const card = document.getElementById("card");
  card.hidden = cell < 0;
  if (cell >= 0) card.replaceChildren(element("b", title(cell)), ...cellLines(cell).filter(Boolean).map((line) => element("span", line)));
  if (data.specimens.length) drawSpecimen();
  for (const follow of followers) follow(cell);
}

const find = document.getElementById("find");
const known = new Map(cells.names.map((name, cell) => [(name || `cell ${cell}`).toUpperCase(), cell]));
document.getElementById("cell-names").append(
  ...everyCell.map(title).sort().map((name) => { const option = element("option"); option.value = name; return option; }));
// The cells that a text means: the one of that name or number, else those whose names begin with it, else hold it.
function meant(text) {
  const wanted = text.trim().toUpperCase(), number = /^(CELL )?(\d+)$/.exec(wanted);
  if (!wanted) return [];
  if (known.has(wanted)) return [known.get(wanted)];
  if (number && +number[2] < cells.count) return [+number[2]];
  const names = [...known.keys()].sort(), begin = names.filter((name) => name.startsWith(wanted));
  return (begin.length ? begin : names.filter((name) => name.includes(wanted))).map((name) => known.get(name));
}

function sayFound(text) { document.getElementById("found").textContent = text; }

find.addEventListener("input", () => {
  const several = meant(find.value), wanted = find.value.trim();
  if (several.length === 1 && title(several[0]).toUpperCase() === wanted.toUpperCase() || /^(cell )?\d+$/i.test(wanted) && several.length) {
    sayFound("");
    select(several[0], true);
    return;
  }
  const more = several.length > 4 ? `, … (${several.length})` : "";
  sayFound(!wanted ? "" : several.length ? `${several.slice(0, 4).map(title).join(", ")}${more}; Enter shows them` : "no such cell");
  if (state.cell >= 0) { select(-1); if (!wanted) atlas.reset(); }
});
find.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  const several = meant(find.value);
  if (!several.length) { sayFound(find.value.trim() ? "no such cell" : ""); return; }
  const at = (several.indexOf(state.cell) + 1) % several.length;  // the next one with each Enter
  sayFound(several.length > 1 ? `${title(several[at])}, ${at + 1} of ${several.length}` : "");
  select(several[at], true);
});
document.getElementById("atlas-reset").addEventListener("click", () => { find.value = ""; sayFound(""); select(-1); atlas.reset(); });
