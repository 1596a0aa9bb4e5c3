// The data of the page, and the text and marks that both views share.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}

const cells = {
  count: data.names.length,
  names: data.names,
  groups: data.groups,
  means: unpack(data.means, Float32Array),
  forms: unpack(data.covariances, Float32Array),
  spread: unpack(data.spread, Float32Array),
  seen: unpack(data.seen, Int32Array),
  rare: unpack(data.rare, Uint8Array),
  colours: data.colours && unpack(data.colours, Uint8Array),
  accuracy: data.accuracy && unpack(data.accuracy, Float32Array),
  confidence: data.confidence && unpack(data.confidence, Float32Array),
};
const unit = data.unit;

// Groups of cells (ganglia, for instance), each with its colour.
const groupList = [...new Set(cells.groups)].filter(Boolean).sort();
const groupColour = Object.fromEntries(groupList.map((group, at) => [group, fromHex(GROUPS[at % GROUPS.length])]));
const groupItems = [...groupList.map((group) => [group, groupColour[group]]), ["other", GREY]];
const groupHue = (cell) => groupColour[cells.groups[cell]] || GREY;

// Colour of a nucleus or a cell among packed ones.
function rgb(colours, at) { return [0, 1, 2].map((k) => colours[3 * at + k] / 255); }
const tip = document.getElementById("tip");
const state = { cell: -1, nucleus: -1, specimen: 0 };

const title = (cell) => cells.names[cell] || `cell ${cell}`;
const percent = (share) => `${(100 * share).toFixed(share > 0.995 && share < 1 ? 1 : 0)}%`;
const round = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function element(kind, text, className) {
  const node = document.createElement(kind);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function showTip(stage, left, top, head, lines) {
  tip.replaceChildren(element("b", head), ...lines.filter(Boolean).map((line) => element("div", line)));
  tip.hidden = false;
  const box = stage.getBoundingClientRect();
  const x = Math.min(box.left + left + 16, window.innerWidth - tip.offsetWidth - 8);
  const y = Math.min(box.top + top + 14, window.innerHeight - tip.offsetHeight - 8);
  tip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}

function cellLines(cell) {
  return [
    cells.groups[cell] && `group: ${cells.groups[cell]}`,
    `seen in ${cells.seen[cell]} of ${data.of} specimens${cells.rare[cell] ? " (rare)" : ""}`,
    `spread ${round(cells.spread[cell])} ${unit}`,
    cells.confidence && Number.isFinite(cells.confidence[cell]) && `mean confidence ${percent(cells.confidence[cell])}`,
    cells.accuracy && Number.isFinite(cells.accuracy[cell]) && `named right in ${percent(cells.accuracy[cell])} of nuclei`,
  ];
}

// A scale bar of a round length, with its unit.
function scaleBar(ink, view, height) {
  const raw = 130 / view.scale, power = 10 ** Math.floor(Math.log10(raw));
  const length = [5, 2, 1].map((nice) => nice * power).find((value) => value <= raw) || power;
  const y = height - 22, end = 24 + length * view.scale;
  ink.strokeStyle = ink.fillStyle = "rgba(220,230,245,.8)";
  ink.lineWidth = 1.5;
  ink.beginPath();
  ink.moveTo(24, y - 4); ink.lineTo(24, y); ink.lineTo(end, y); ink.lineTo(end, y - 4);
  ink.stroke();
  ink.font = "12px system-ui, sans-serif";
  ink.textAlign = "left";
  ink.fillText(`${+length.toPrecision(2)} ${unit}`, 24, y - 8);
}

function ring(ink, view, body, words) {
  const { x, y, half } = view.where(body);
  ink.strokeStyle = "#fff";
  ink.lineWidth = 2;
  ink.beginPath();
  ink.arc(x, y, Math.max(half, 5) + 4, 0, 2 * Math.PI);
  ink.stroke();
  if (!words || x < 0 || y < 0 || x > view.stage.clientWidth || y > view.stage.clientHeight) return;
  const wide = 4.2 * words.length + 3, left = Math.min(Math.max(x, wide), view.stage.clientWidth - wide);
  write(ink, words, left, Math.max(y - Math.max(half, 5) - 10, 15), "600 13px system-ui, sans-serif", "#fff");
}

function write(ink, words, x, y, font, colour) {
  ink.font = font;
  ink.textAlign = "center";
  ink.lineWidth = 3;
  ink.strokeStyle = "rgba(9,11,19,.85)";
  ink.strokeText(words, x, y);
  ink.fillStyle = colour;
  ink.fillText(words, x, y);
}

// Names of the bodies, foremost first, as long as there is room.
function labels(ink, view, bodies, nameOf, ringed = []) {
  const places = bodies.map((body) => ({ body, ...view.where(body) })).sort((a, b) => b.depth - a.depth);
  const taken = ringed.map((body) => { const { x, y, half } = view.where(body); return [x, y - Math.max(half, 5) - 6, 40]; });
  ink.font = "11px system-ui, sans-serif";
  const edge = view.apart > 0 && !view.round ? 32 : 0;  // captions stand at the left edge
  for (const { body, x, y } of places) {
    const words = nameOf(body);
    if (!words || x < 0 || y < 0 || x > view.stage.clientWidth || y > view.stage.clientHeight) continue;
    const half = 3.4 * words.length + 3;
    const left = Math.min(Math.max(x, half + edge), view.stage.clientWidth - half), top = Math.min(Math.max(y, 9), view.stage.clientHeight - 9);
    if (taken.some(([u, v, other]) => Math.abs(u - left) < half + other && Math.abs(v - top) < 13)) continue;
    taken.push([left, top, half]);
    write(ink, words, left, top + 4, "11px system-ui, sans-serif", "rgba(240,245,255,.92)");
  }
}

function legend(place, spec) {
  place.replaceChildren();
  if (spec.scale) {
    const stops = SCALES[spec.scale].map((colour) => css(colour)).join(",");
    const bar = element("i");
    bar.style.background = `linear-gradient(90deg,${stops})`;
    place.append(element("span", spec.low), bar, element("span", spec.high));
  }
  for (const [name, colour] of spec.items || []) {
    const item = element("span", name, "item");
    item.style.setProperty("--dot", css(colour));
    place.append(item);
  }
}

// Centres and lift of bodies: n x 4.
function placesOf(means, count, lift) {
  const places = new Float32Array(4 * count);
  for (let i = 0; i < count; i++) {
    places.set(means.subarray(3 * i, 3 * i + 3), 4 * i);
    places[4 * i + 3] = lift;
  }
  return places;
}

// Captions of two bodies that are drawn apart, those of the upper (or left) one first.
function captions(ink, view, names, width, height) {
  names.forEach((words, which) => {
    const lift = which ? -0.5 : 0.5;
    const [x, y] = view.onStage([lift * view.gap[0], lift * view.gap[1]]);
    ink.save();
    if (view.round) ink.translate(Math.min(Math.max(x, 90), width - 90), 66);
    else {
      ink.translate(18, Math.min(Math.max(y, 90), height - 60));
      ink.rotate(-Math.PI / 2);
    }
    write(ink, words, 0, 0, "600 12px system-ui, sans-serif", "rgba(220,230,245,.75)");
    ink.restore();
  });
}
