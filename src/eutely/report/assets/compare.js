// A comparison: colours and arrows of effects in the atlas, the volcano plot, the table of cells.
"use strict";

const compare = data.compare;
const NUMBERS = ["effect", "low", "high", "p", "q", "family", "pooled", "detectable"];
for (const contrast of compare.contrasts)
  for (const test of contrast.tests) {
    for (const key of NUMBERS) test[key] = unpack(test[key], Float32Array);
    test.doubtful = unpack(test.doubtful, Uint8Array);
    test.shifts = test.shifts && unpack(test.shifts, Float32Array);
  }
compare.weights = unpack(compare.weights, Uint8Array);
for (const values of Object.values(compare.values)) values.values = unpack(values.values, Uint16Array);

const FINDING = 0.05, MOST_ROWS = 300, SVG = "http://www.w3.org/2000/svg";
const chosen = { contrast: 0, test: 0 };
const contrastNow = () => compare.contrasts[chosen.contrast];
const testNow = () => contrastNow().tests[chosen.test];
const isFinding = (test, cell) => test.q[cell] <= FINDING;

SCALES.change = [[0.23, 0.55, 0.95], [0.60, 0.75, 0.92], [0.62, 0.64, 0.68], [0.95, 0.70, 0.55], [0.95, 0.38, 0.25]];

function amount(test, value) {
  if (!Number.isFinite(value)) return "–";
  if (test.unit === "ratio") return `${value >= 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(Math.abs(value) < 0.1 ? 1 : 0)}%`;
  if (test.unit === "spacings") return value.toFixed(2);
  return `${value >= 0 ? "+" : "−"}${Math.abs(value).toPrecision(3)}`;
}
const probability = (value) => (!Number.isFinite(value) ? "–" : value >= 0.001 ? value.toFixed(3) : value.toExponential(0));

// Signed effects from blue to red around 0, shifts from dark to bright.
function byEffect(values, test, shown) {
  const signed = test.unit !== "spacings", known = Array.from(values).filter((_, cell) => shown(cell)).map(Math.abs);
  if (!known.length) return { colours: Array.from(values, () => GREY), legend: { items: [["no finding in this test", GREY]] } };
  const most = Math.max(...known, 1e-9), low = signed ? -most : 0;
  const scale = signed ? "change" : "amount";
  const colours = Array.from(values, (value, cell) =>
    shown(cell) && Number.isFinite(value) ? blend(scale, (value - low) / (most - low)) : [0.30, 0.33, 0.38]);
  return { colours, legend: { scale, low: amount(test, low), high: `${amount(test, most)}${signed ? "" : " spacings"}` } };
}

PAINTS.effect = () => byEffect(testNow().effect, testNow(), (cell) => isFinding(testNow(), cell));
PAINTS.significance = () => {
  const strength = Array.from(testNow().pooled, (p) => -Math.log10(Math.max(p, 1e-12)));
  return byValue(strength, "amount", (value) => `p ${probability(10 ** -value)}`, [0, Math.max(...strength.filter(Number.isFinite), 1)]);
};
PAINTS.detectable = () => byValue(testNow().detectable, "amount", (value) => amount(testNow(), value));

function arrowLines(times) {
  const test = testNow(), ends = [], inks = [];
  if (!test.shifts || !times) return [ends, inks];
  for (let cell = 0; cell < cells.count; cell++) {
    if (!isFinding(test, cell) || !Number.isFinite(test.shifts[3 * cell])) continue;
    const from = Array.from(cells.means.subarray(3 * cell, 3 * cell + 3));
    const way = Array.from(test.shifts.subarray(3 * cell, 3 * cell + 3), (value) => value * times);
    const to = from.map((value, k) => value + way[k]);
    const length = Math.hypot(...way) || 1, across = Math.abs(way[2]) < 0.9 * length ? [-way[1], way[0], 0] : [0, -way[2], way[1]];
    const wide = Math.hypot(...across) || 1;
    const ink = test.doubtful[cell] ? [0.98, 0.60, 0.25, 1] : [0.95, 0.97, 1, 1];
    const line = (a, b) => { ends.push(...a, 0, ...b, 0); inks.push(...ink, ...ink); };
    line(from, to);
    for (const side of [-1, 1])
      line(to, to.map((value, k) => value - 0.28 * way[k] + side * 0.14 * length * across[k] / wide));
  }
  return [ends, inks];
}

function drawArrows() {
  const [ends, inks] = arrowLines(+document.getElementById("arrows").value);
  atlas.setLines(new Float32Array(ends), new Float32Array(inks));
}

function mark(kind, attributes, parent, text) {
  const node = document.createElementNS(SVG, kind);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// Round numbers between two values.
function roundTicks(low, high, about = 5) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((nice) => nice * power).find((value) => value >= raw) || raw;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step) ticks.push(Math.abs(tick) < 1e-9 * step ? 0 : tick);
  return ticks;
}

// An empty figure as wide as its place; returns the drawing and its two axes.
function axesOf(place, [left, right], [low, high], names, height = 320) {
  const width = Math.max(280, place.clientWidth - 20), edge = { left: 58, right: 14, top: 12, bottom: 42 };
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", names.title);
  place.replaceChildren(svg);
  const across = (value) => edge.left + (value - left) / (right - left || 1) * (width - edge.left - edge.right);
  const up = (value) => height - edge.bottom - (value - low) / (high - low || 1) * (height - edge.top - edge.bottom);
  for (const tick of roundTicks(low, high)) {
    mark("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: up(tick), y2: up(tick) }, svg);
    if (names.ticks !== false) mark("text", { class: "tick end", x: edge.left - 8, y: up(tick) + 4 }, svg, String(+tick.toPrecision(3)));
  }
  for (const tick of roundTicks(left, right))
    mark("text", { class: "tick middle", x: across(tick), y: height - edge.bottom + 18 }, svg, names.across ? names.across(tick) : String(+tick.toPrecision(3)));
  mark("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: up(low), y2: up(low) }, svg);
  mark("text", { class: "name middle", x: (edge.left + width - edge.right) / 2, y: height - 6 }, svg, names.x);
  mark("text", { class: "name middle", x: 13, y: height / 2, transform: `rotate(-90 13 ${height / 2})` }, svg, names.y);
  return { svg, across, up, width, height };
}

function unitWords(test) {
  return test.unit === "ratio" ? "change" : test.unit === "spacings" ? "shift (spacings)" : test.unit === "nuclei" ? "difference (nuclei)" : "difference";
}

function drawVolcano() {
  const test = testNow(), cellsKnown = [...cells.names.keys()].filter((cell) => Number.isFinite(test.p[cell]) && Number.isFinite(test.effect[cell]));
  const place = document.getElementById("volcano");
  if (!cellsKnown.length) { place.replaceChildren(element("p", "No cell varies in this test.", "absent")); return; }
  const most = Math.max(...cellsKnown.map((cell) => Math.abs(test.effect[cell])), 1e-6), signed = test.unit !== "spacings";
  const top = Math.max(...cellsKnown.map((cell) => -Math.log10(test.pooled[cell])), 1);
  const figure = axesOf(place, [signed ? -1.05 * most : 0, 1.05 * most], [0, 1.05 * top],
    { x: unitWords(test), y: "−log10 p", title: `volcano plot of ${test.test}`, across: test.unit === "ratio" ? (tick) => `${Math.round(100 * tick)}%` : null });
  for (const cell of cellsKnown.sort((a, b) => test.p[b] - test.p[a])) {
    const finding = isFinding(test, cell);
    const kind = `dot${finding ? (test.doubtful[cell] ? " odd" : "") : " small faint"}${state.cell === cell ? " picked" : ""}`;
    const dot = mark("circle", { class: kind, r: 4, cx: figure.across(test.effect[cell]), cy: figure.up(-Math.log10(test.pooled[cell])), "data-pick": cell }, figure.svg);
    mark("title", {}, dot, `${title(cell)}: ${amount(test, test.effect[cell])}, p ${probability(test.p[cell])}, q ${probability(test.q[cell])}`);
  }
  const taken = [];
  for (const cell of cellsKnown.filter((one) => isFinding(test, one)).sort((a, b) => Math.abs(test.effect[b]) - Math.abs(test.effect[a]))) {
    const x = figure.across(test.effect[cell]), y = figure.up(-Math.log10(test.pooled[cell])), right = x > figure.width - 90;
    if (taken.length >= 12 || taken.some(([u, v]) => Math.abs(u - x) < 62 && Math.abs(v - y) < 13)) continue;
    taken.push([x, y]);
    mark("text", { class: `tick${right ? " end" : ""}`, x: x + (right ? -7 : 7), y: y + 4 }, figure.svg, title(cell));
  }
}

function drawTable() {
  const wanted = document.getElementById("filter").value.trim().toUpperCase(), only = document.getElementById("only").checked;
  const rows = [];
  for (const test of wanted ? contrastNow().tests : [testNow()])
    for (let cell = 0; cell < cells.count; cell++)
      if (Number.isFinite(test.p[cell]) && (!only || isFinding(test, cell)) && title(cell).toUpperCase().includes(wanted)) rows.push([test, cell]);
  rows.sort(([a, i], [b, j]) => a.q[i] - b.q[j] || a.p[i] - b.p[j] || Math.abs(b.effect[j]) - Math.abs(a.effect[i]));
  const body = document.querySelector("#cell-table tbody");
  body.replaceChildren(...rows.slice(0, MOST_ROWS).map(([test, cell]) => {
    const row = element("tr", undefined, isFinding(test, cell) ? "finding" : "");
    const button = element("button", title(cell));
    button.dataset.pick = cell;
    button.dataset.test = test.test;
    const first = element("td");
    first.append(button);
    row.append(first, ...[test.test, amount(test, test.effect[cell]), `${amount(test, test.low[cell])} to ${amount(test, test.high[cell])}`,
      probability(test.p[cell]), probability(test.q[cell]), probability(test.family[cell]),
      test.doubtful[cell] ? "doubtful" : ""].map((text) => element("td", text)));
    return row;
  }));
  const shown = Math.min(rows.length, MOST_ROWS);
  document.getElementById("rows-shown").textContent = `${shown} of ${rows.length} rows${rows.length > shown ? ", the most significant" : ""}`;
}
