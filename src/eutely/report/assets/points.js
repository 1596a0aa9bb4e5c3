// Each animal's value of one cell, by group; choices of contrast and test; links between all views.
"use strict";

function valueOf(stored, animal, cell, axis, width) {
  const whole = stored.values[width * (animal * cells.count + cell) + axis];
  return whole === 65535 ? NaN : stored.low + stored.step * whole;
}

// Rows of dots: one per group, or one per group and axis for places.
function pointRows(cell) {
  const test = testNow(), place = !compare.values[test.test] || test.test === "place-relative";
  const stored = place ? compare.values["place-relative"] : compare.values[test.test];
  const rows = [];
  for (const [axis, name] of (place ? ["x", "y", "z"] : [""]).entries())
    for (const label of contrastNow().labels) {
      const group = compare.labels.indexOf(label), dots = [];
      compare.animals.forEach((one, animal) => {
        const value = valueOf(stored, animal, cell, axis, place ? 3 : 1);
        if (one === group && Number.isFinite(value)) dots.push([animal, value, compare.weights[animal * cells.count + cell] / 250]);
      });
      rows.push({ name: place ? `${name}, ${label}` : label, second: label !== contrastNow().labels[0], dots });
    }
  return { rows, words: place ? "place relative to neighbours (spacings)" : `${test.test}${test.unit === "ratio" ? " (logarithm, relative to the animal)" : ""}` };
}

function drawPoints(cell) {
  const place = document.getElementById("points");
  document.getElementById("points-title").textContent = cell < 0 ? "One cell" : title(cell);
  const lines = cell < 0 ? [] : contrastNow().tests.filter((test) => Number.isFinite(test.p[cell]))
    .map((test) => `${test.test} ${amount(test, test.effect[cell])} (q ${probability(test.q[cell])}${test.doubtful[cell] && isFinding(test, cell) ? ", doubtful" : ""})`);
  document.getElementById("points-words").textContent = cell < 0 ? "Click a cell to see each animal of the groups." : lines.join("; ");
  if (cell < 0) { place.replaceChildren(); return; }
  const { rows, words } = pointRows(cell), values = rows.flatMap(({ dots }) => dots.map((dot) => dot[1]));
  if (!values.length) { place.replaceChildren(element("p", "No animal has a value.", "absent")); return; }
  const low = Math.min(...values), high = Math.max(...values), margin = 0.05 * (high - low) || 0.1;
  const figure = axesOf(place, [low - margin, high + margin], [0, rows.length], { x: words, y: "", ticks: false, title: `animals, ${title(cell)}` }, 60 + 40 * rows.length);
  rows.forEach((row, at) => {
    const middle = rows.length - at - 0.5;
    mark("text", { class: "tick", x: 2, y: figure.up(middle + 0.28) }, figure.svg, row.name);
    let total = 0, sum = 0;
    row.dots.forEach(([animal, value, sure], k) => {
      const jitter = 0.5 * (((k * 0.618034) % 1) - 0.5);
      const dot = mark("circle", { class: `dot small${row.second ? " odd" : ""}`, r: 3, "fill-opacity": 0.25 + 0.7 * sure, style: `fill-opacity:${0.25 + 0.7 * sure}`, cx: figure.across(value), cy: figure.up(middle + jitter) }, figure.svg);
      mark("title", {}, dot, `${compare.specimens[animal]}: ${value.toFixed(2)}, confidence ${percent(sure)}`);
      total += sure; sum += sure * value;
    });
    if (total) mark("line", { class: "median", x1: figure.across(sum / total), x2: figure.across(sum / total), y1: figure.up(middle - 0.4), y2: figure.up(middle + 0.4) }, figure.svg);
  });
}

function chooseTest() {
  const tests = document.getElementById("test");
  chosen.contrast = +document.getElementById("contrast").value;
  chosen.test = Math.max(0, +tests.value);
  const test = testNow();
  document.getElementById("summary").textContent = `${test.found} ${test.found === 1 ? "finding" : "findings"} at 5% FDR`;
  drawAtlas();
  drawArrows();
  drawVolcano();
  drawTable();
  drawPoints(state.cell);
}

function listTests() {
  const tests = document.getElementById("test"), before = tests.value;
  tests.replaceChildren(...compare.contrasts[+document.getElementById("contrast").value].tests.map((test, at) => {
    const option = element("option", `${test.test} (${test.found})`);
    option.value = at;
    return option;
  }));
  tests.value = before || String(mostTelling());
}

// The test to open with: relative places if they have findings, else the test with the most.
function mostTelling() {
  const found = contrastNow().tests.map((test) => test.found + (test.found && test.test === "place-relative" ? 1e6 : 0));
  const best = found.indexOf(Math.max(...found));
  return found[best] ? best : Math.max(0, contrastNow().tests.findIndex((test) => test.test === "place-relative"));
}

// The most significant finding of the chosen test, or -1.
function firstFinding() {
  const test = testNow();
  const order = cells.names.map((_, cell) => cell).filter((cell) => isFinding(test, cell));
  order.sort((a, b) => test.q[a] - test.q[b] || test.p[a] - test.p[b] || Math.abs(test.effect[b]) - Math.abs(test.effect[a]));
  return order[0] ?? -1;
}

// Show a test of a contrast, as its choices above the atlas would.
function show(contrast, name) {
  if (contrast !== undefined && contrast !== document.getElementById("contrast").value) {
    document.getElementById("contrast").value = contrast;
    listTests();
  }
  const at = compare.contrasts[+document.getElementById("contrast").value].tests.findIndex(({ test }) => test === name);
  if (at < 0 || at === chosen.test && chosen.contrast === +document.getElementById("contrast").value) return;
  document.getElementById("test").value = String(at);
  chooseTest();
}

document.getElementById("contrast").append(...compare.contrasts.map((contrast, at) => {
  const option = element("option", contrast.name);
  option.value = at;
  return option;
}));
for (const id of ["contrast", "test"]) document.getElementById(id).addEventListener("change", () => { if (id === "contrast") listTests(); chooseTest(); });
document.getElementById("arrows").addEventListener("change", drawArrows);
for (const [id, event] of [["filter", "input"], ["only", "change"]]) document.getElementById(id).addEventListener(event, drawTable);
document.addEventListener("click", (event) => {
  const source = event.target.closest("[data-pick]");
  if (!source) return;
  if (source.dataset.test) show(source.dataset.contrast, source.dataset.test);
  select(+source.dataset.pick, true);
  if (source.dataset.contrast) document.getElementById("atlas").scrollIntoView({ behavior: "smooth" });
});
followers.push((cell) => { drawVolcano(); drawPoints(cell); });
let wideBefore = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === wideBefore) return;
  wideBefore = window.innerWidth;
  drawVolcano();
  drawPoints(state.cell);
});
paint.value = "effect";
chosen.contrast = Math.max(0, compare.contrasts.findIndex(({ tests }) => tests.some(({ found }) => found)));
document.getElementById("contrast").value = String(chosen.contrast);
listTests();
chooseTest();
if (firstFinding() >= 0) select(firstFinding());
Object.assign(window.eutely, { compare, chosen, testNow });
