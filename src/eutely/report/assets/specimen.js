// A specimen beside the atlas: matches, confidence, uncertain nuclei.
"use strict";

let specimen, nuclei;
if (data.specimens.length) {
  nuclei = {
    places: unpack(data.places, Uint16Array),
    cells: unpack(data.cells, Int32Array),
    sure: unpack(data.sure, Uint8Array),
    ids: unpack(data.ids, Float64Array),
    truth: data.truth && unpack(data.truth, Int32Array),
    own: data.own && unpack(data.own, Uint8Array),
  };
  specimen = new Viewer(document.getElementById("specimen-stage"));
  prepareSpecimen();
}

// Confidence of a nucleus, NaN where not known; packed as in data.py.
function sureness(at) { return nuclei.sure[at] === 255 ? NaN : nuclei.sure[at] / 250; }

// Names that differ in case only are the same.
function plain(name) { return name.trim().toUpperCase(); }

// True name of a nucleus and whether it was given; null where not known.
function verdict(at) {
  if (!nuclei.truth || nuclei.truth[at] < 0) return null;
  const name = data.lexicon[nuclei.truth[at]], cell = nuclei.cells[at];
  return { name, right: cell >= 0 && plain(cells.names[cell]) === plain(name) };
}

function drawSpecimen() {
  const first = data.starts[state.specimen], count = data.starts[state.specimen + 1] - first;
  const how = document.getElementById("nuclei-paint").value, lines = document.getElementById("lines").value;
  const apart = document.getElementById("apart").value === "beside";
  const all = cells.count + count, places = new Float32Array(4 * all), forms = new Float32Array(6 * all);
  const tints = new Float32Array(4 * all), ends = [], inks = [];
  places.set(placesOf(cells.means, cells.count, apart ? 0.5 : 0));
  forms.set(atlasForms(1.5));
  const dim = state.cell >= 0 || state.nucleus >= 0;
  const radius = (0.24 * data.spacing) ** 2;
  for (let cell = 0; cell < cells.count; cell++)
    tints.set([...(how === "own" && cells.colours ? rgb(cells.colours, cell) : how === "group" ? groupHue(cell) : hues[cell]), cell === state.cell ? 1 : dim || !apart ? 0.25 : 0.7], 4 * cell);
  for (let i = 0; i < count; i++) {
    const at = first + i, body = cells.count + i, cell = nuclei.cells[at], sure = sureness(at), truth = verdict(at);
    const place = [0, 1, 2].map((k) => data.low[k] + data.step[k] * nuclei.places[3 * at + k]);
    places.set([...place, apart ? -0.5 : 0], 4 * body);
    forms.set([radius, 0, 0, radius, 0, radius], 6 * body);
    let colour = cell < 0 ? GREY : hues[cell];
    if (how === "own") colour = rgb(nuclei.own, at);
    if (how === "group") colour = cell < 0 ? GREY : groupHue(cell);
    if (how === "confidence") colour = Number.isFinite(sure) ? blend("good", (sure - 0.3) / 0.7) : GREY;
    if (how === "truth") colour = !truth ? GREY : truth.right ? SCALES.good[4] : SCALES.good[0];
    const selected = cell >= 0 && cell === state.cell || at === state.nucleus;
    tints.set([...colour, selected || !dim ? 1 : 0.35], 4 * body);
    const wanted = cell >= 0 && (lines === "all" || selected || lines === "unsure" && (sure < 0.5 || truth && !truth.right));
    if (wanted) {
      const ink = Number.isFinite(sure) ? blend("good", (sure - 0.3) / 0.7) : [0.6, 0.7, 0.8];
      const alpha = selected ? 1 : dim ? 0.08 : lines === "unsure" ? 0.9 : 0.3;
      ends.push(...places.subarray(4 * cell, 4 * cell + 4), ...places.subarray(4 * body, 4 * body + 4));
      inks.push(...ink, alpha, ...ink, alpha);
    }
  }
  specimen.apart = apart ? 1 : 0;
  specimen.setBodies(places, forms, tints);
  specimen.setLines(new Float32Array(ends), new Float32Array(inks));
}

function nucleusLines(at) {
  const cell = nuclei.cells[at], sure = sureness(at), truth = verdict(at);
  return [
    cell < 0 ? "matches no cell of the atlas" : `nucleus ${nuclei.ids[at]} of ${data.specimens[state.specimen].name}`,
    Number.isFinite(sure) && `confidence ${percent(sure)}`,
    data.others[at] && `or ${data.others[at].map(([other, share]) => `${title(other)} (${share}%)`).join(", ")}`,
    truth && (truth.right ? "named right" : `but known to be ${truth.name}`),
  ];
}

function nucleusTitle(at) {
  return nuclei.cells[at] < 0 ? `nucleus ${nuclei.ids[at]}` : title(nuclei.cells[at]);
}

function showSpecimen(number) {
  state.specimen = number;
  state.nucleus = -1;
  const { consistency, outlier, note } = data.specimens[number], first = data.starts[number], last = data.starts[number + 1];
  document.getElementById("slider").value = number;
  document.getElementById("which").value = number;
  const rows = [];
  let matched = 0, wrong = 0, named = 0, unsure = 0;
  for (let at = first; at < last; at++) {
    const truth = verdict(at), sure = sureness(at);
    matched += nuclei.cells[at] >= 0;
    unsure += sure < 0.5;
    if (truth) { named++; wrong += !truth.right; }
    rows.push([Number.isFinite(sure) ? sure : nuclei.cells[at] < 0 ? -1 : 2, at]);
  }
  const facts = [`${last - first} nuclei, ${matched} with a cell`];
  if (consistency !== null) facts.push(`${percent(consistency)} confirmed by others`);
  if (rows.some(([sure]) => sure >= 0 && sure <= 1)) facts.push(`${unsure} uncertain`);
  if (named) facts.push(`${percent(1 - wrong / named)} named right`);
  if (note) facts.push(note);
  document.getElementById("facts").textContent = facts.join(" · ");
  document.getElementById("warning").textContent = outlier ? `Check: ${outlier}` : "";
  rows.sort((a, b) => a[0] - b[0]);
  document.getElementById("doubtful").replaceChildren(...rows.slice(0, 14).filter(([sure]) => sure < 1.5).map(([sure, at]) => {
    const row = element("button", undefined, "row");
    row.append(element("span", nucleusTitle(at)), element("em", sure < 0 ? "no cell" : percent(sure)));
    row.style.setProperty("--sure", Math.max(0, sure));
    row.addEventListener("click", () => {
      state.cell = nuclei.cells[at];
      state.nucleus = at;
      drawAtlas();
      drawSpecimen();
      specimen.goTo(cells.count + at - first, specimen.round ? 1.25 : 4, nuclei.cells[at]);
    });
    return row;
  }));
  drawSpecimen();
}

function prepareSpecimen() {
  const which = document.getElementById("which"), slider = document.getElementById("slider");
  which.append(...data.specimens.map(({ name, outlier }, number) => {
    const option = element("option", outlier ? `${name}  ⚠` : name);
    option.value = number;
    return option;
  }));
  slider.max = data.specimens.length - 1;
  slider.addEventListener("input", () => showSpecimen(+slider.value));
  which.addEventListener("change", () => showSpecimen(+which.value));
  for (const id of ["nuclei-paint", "lines", "apart"]) document.getElementById(id).addEventListener("change", drawSpecimen);
  document.getElementById("specimen-reset").addEventListener("click", () => { select(-1); specimen.reset(); });
  if (!groupList.length) document.querySelector("#nuclei-paint [value=group]")?.remove();
  if (!nuclei.own) document.querySelector("#nuclei-paint [value=own]")?.remove();
  if (!nuclei.truth) document.querySelector("#nuclei-paint [value=truth]").remove();
  const first = () => data.starts[state.specimen];
  const ringed = (at) => at === state.nucleus || state.cell >= 0 && nuclei.cells[at] === state.cell;
  specimen.annotate = (ink, width, height) => {
    scaleBar(ink, specimen, height);
    if (specimen.apart > 0) captions(ink, specimen, ["atlas", data.specimens[state.specimen].name], width, height);
    if (specimen.scale * data.spacing > 30)
      labels(ink, specimen, Array.from({ length: data.starts[state.specimen + 1] - first() }, (_, i) => cells.count + i),
        (body) => (ringed(first() + body - cells.count) ? "" : nucleusTitle(first() + body - cells.count)));
    if (state.cell >= 0) ring(ink, specimen, state.cell, title(state.cell));
    for (let at = first(); at < data.starts[state.specimen + 1]; at++)
      if (ringed(at)) ring(ink, specimen, cells.count + at - first(), nucleusTitle(at));
  };
  specimen.onHover = (body, left, top) => {
    if (body < 0) tip.hidden = true;
    else if (body < cells.count) showTip(specimen.stage, left, top, `${title(body)} in the atlas`, cellLines(body));
    else showTip(specimen.stage, left, top, nucleusTitle(first() + body - cells.count), nucleusLines(first() + body - cells.count));
  };
  specimen.onPick = (body) => {
    const at = first() + body - cells.count;
    select(body < 0 ? -1 : body < cells.count ? body : nuclei.cells[at]);
    if (body >= cells.count) { state.nucleus = at; drawSpecimen(); }
  };
  const odd = data.specimens.findIndex(({ outlier }) => outlier);
  showSpecimen(Math.max(0, odd < 0 ? 0 : odd));
}
