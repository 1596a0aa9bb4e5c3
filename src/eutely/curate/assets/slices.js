// Three slices of the label volume and of the image's channels through the nucleus in question.
"use strict";

const slicePlace = document.getElementById("slices");
let sliceAsked = 0;

async function showSlices() {
  const asked = ++sliceAsked, note = document.getElementById("no-slices");
  if (!desk.open || desk.row < 0) return;
  let told = { planes: [] };
  try { told = await get(`specimens/${desk.open.number}/slices/${desk.row}`); }
  catch (error) { told.problem = error.message; }
  if (asked !== sliceAsked) return;
  slicePlace.hidden = !told.planes.length;
  note.hidden = !!told.planes.length;
  note.textContent = told.problem || "";
  desk.planes = told.planes.map((plane) => ({
    ...plane,
    nuclei: plane.nuclei && unpack(plane.nuclei, Uint32Array),
    images: plane.images.map((image) => unpack(image, Uint16Array)),
  }));
  desk.channels = told.channels || [];
  drawLights();
  drawSlices();
}

// Which channels are shown, and between which levels; kept for the specimens to come.
const lights = new Map();
const lightPlace = document.getElementById("lights");

function lightOf({ name, colour }) {
  if (!lights.has(name)) {
    const coloured = desk.channels.some((one) => Math.min(...one.colour) < 0.5 && Math.max(...one.colour) > 0.9);
    const white = Math.min(...colour) > 0.7;
    lights.set(name, { shown: !(coloured && white), dark: 0, bright: 0.6 });
  }
  return lights.get(name);
}

function drawLights() {
  lightPlace.hidden = !desk.channels.length;
  const known = desk.channels.map(({ name }) => name).join(" ");
  if (lightPlace.dataset.names === known) return;
  lightPlace.dataset.names = known;
  lightPlace.replaceChildren(...desk.channels.map((channel) => {
    const light = lightOf(channel), box = element("div", undefined, "light"), name = element("label"), tick = element("input");
    tick.type = "checkbox";
    tick.checked = light.shown;
    tick.addEventListener("change", () => { light.shown = tick.checked; drawSlices(); });
    const dot = element("i");
    dot.style.background = css(channel.colour);
    name.append(tick, dot, element("span", channel.name));
    box.append(name);
    for (const end of ["dark", "bright"]) {
      const range = element("input");
      range.type = "range";
      range.min = 0; range.max = 1; range.step = 0.005;
      range.value = Math.sqrt(light[end]);  // dim nuclei need the finer steps
      range.title = end === "dark" ? "drawn black up to here" : "drawn brightest from here";
      range.setAttribute("aria-label", `${channel.name}: ${range.title}`);
      range.addEventListener("input", () => { light[end] = range.value ** 2; drawSlices(); });
      box.append(range);
    }
    return box;
  }));
}

function levels(plane, at) {
  const colour = [0, 0, 0];
  desk.channels.forEach((channel, number) => {
    const { shown, dark, bright } = lightOf(channel);
    if (!shown) return;
    const level = Math.min(1, Math.max(0, (plane.images[number][at] / 65535 - dark) / Math.max(bright - dark, 1e-4)));
    for (let k = 0; k < 3; k++) colour[k] = Math.min(1, colour[k] + channel.colour[k] * level);
  });
  return colour;
}

// Where the nucleus lies that has no outline: four short lines around its centre.
function drawCross(ink, { width, height }) {
  const near = Math.round(width / 12), long = Math.round(width / 16);
  ink.fillStyle = "#fff";
  for (const side of [-near - long, near]) {
    ink.fillRect(Math.floor(width / 2) + side, Math.floor(height / 2), long, 1);
    ink.fillRect(Math.floor(width / 2), Math.floor(height / 2) + side, 1, long);
  }
}

function drawSlices() {
  if (!desk.planes || !desk.open) return;
  slicePlace.replaceChildren(...desk.planes.map((plane) => {
    const figure = element("figure"), canvas = element("canvas");
    canvas.width = plane.width;
    canvas.height = plane.height;
    canvas.title = "click a nucleus";
    const ink = canvas.getContext("2d"), pixels = ink.createImageData(plane.width, plane.height);
    const fill = plane.images.length > 1 ? 0 : 0.25;  // the image's own colours stay what they are
    for (let at = 0; at < plane.width * plane.height; at++) {
      const row = plane.nuclei ? plane.nuclei[at] - 1 : -1;
      let colour = levels(plane, at);
      if (row >= 0) {
        const cell = desk.open.cells[row], hue = cell < 0 ? GREY : hues[cell];
        const edge = [1, -1, plane.width, -plane.width].some((step) => plane.nuclei[at + step] !== row + 1);
        const inside = plane.images.length ? fill : 0.5, line = plane.images.length ? 0.8 : 0.5;
        const share = row === desk.row ? (edge ? 1 : fill || !plane.images.length ? 0.75 : 0) : edge ? line : inside;
        const ground = row === desk.row && edge ? [1, 1, 1] : hue;
        colour = colour.map((value, k) => (1 - share) * value + share * ground[k]);
      }
      pixels.data.set([...colour.map((value) => Math.round(255 * value)), 255], 4 * at);
    }
    ink.putImageData(pixels, 0, 0);
    if (!plane.nuclei) drawCross(ink, plane);
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      const x = Math.floor((event.clientX - box.left) / box.width * plane.width);
      const y = Math.floor((event.clientY - box.top) / box.height * plane.height);
      const row = plane.nuclei ? plane.nuclei[y * plane.width + x] - 1 : -1;
      if (row >= 0) pick(row);
    });
    figure.append(canvas, element("figcaption", `${plane.across} ${plane.down}, ${round(plane.width * plane.pixel)} µm wide`));
    return figure;
  }));
}
