// Three slices of the label volume and of the image through the nucleus in question.
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
    image: plane.image && unpack(plane.image, Uint8Array),
  }));
  drawSlices();
}

function drawSlices() {
  if (!desk.planes || !desk.open) return;
  slicePlace.replaceChildren(...desk.planes.map((plane) => {
    const figure = element("figure"), canvas = element("canvas");
    canvas.width = plane.width;
    canvas.height = plane.height;
    canvas.title = "click a nucleus";
    const ink = canvas.getContext("2d"), pixels = ink.createImageData(plane.width, plane.height);
    for (let at = 0; at < plane.width * plane.height; at++) {
      const row = plane.nuclei ? plane.nuclei[at] - 1 : -1, grey = plane.image ? plane.image[at] / 255 : 0;
      let colour = [grey, grey, grey];
      if (row >= 0) {
        const cell = desk.open.cells[row], hue = cell < 0 ? GREY : hues[cell];
        const edge = [1, -1, plane.width, -plane.width].some((step) => plane.nuclei[at + step] !== row + 1);
        const share = row === desk.row ? (edge ? 1 : 0.75) : plane.image ? (edge ? 0.8 : 0.25) : 0.5;
        const ground = row === desk.row && edge ? [1, 1, 1] : hue;
        colour = colour.map((value, k) => (1 - share) * value + share * ground[k]);
      }
      pixels.data.set([...colour.map((value) => Math.round(255 * value)), 255], 4 * at);
    }
    ink.putImageData(pixels, 0, 0);
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
