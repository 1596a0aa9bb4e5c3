// Requests to the server, keys, and what happens when something changes.
"use strict";

const FAST = 80, SLOW = 1500;
const which = document.getElementById("which"), savedNote = document.getElementById("saved");
let waiting = 0;

async function get(path) {
  const answer = await fetch(path, { cache: "no-store" }), told = await answer.json();
  if (!answer.ok) throw new Error(told.problem || `error ${answer.status}`);
  return told;
}

async function post(path, content) {
  const answer = await fetch(path, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content),
  });
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.problem || `error ${answer.status}`), { told, status: answer.status });
  return told;
}

// Changes are sent one after the other, each with the revision that the person has seen and what this window has made of
// it since. If another window has changed the specimen, the change is refused, and so are those that wait behind it.
let sending = Promise.resolve(), refusals = 0, refusal;
const since = new Map();  // specimen and revision -> a later revision that only this window has changed the specimen for
function send(kind, content) {
  const { number, revision } = desk.open, before = refusals;
  const sent = sending.then(async () => {
    if (before !== refusals) throw refusal;
    for (let seen = revision, left = 9; ; left--) {
      while (since.has(`${number} ${seen}`)) seen = since.get(`${number} ${seen}`);
      try {
        const told = await post(`specimens/${number}/${kind}`, { ...content, seen });
        if (told.revision > seen) since.set(`${number} ${seen}`, told.revision);
        if (desk.open.number === number) desk.open.revision = Math.max(desk.open.revision, told.revision);
        return;
      } catch (error) {
        const { revision: now, specimens = [number] } = error.told || {};
        if (error.status === 409 && left && !specimens.includes(number)) {
          since.set(`${number} ${seen}`, now);
          continue;
        }
        refusals++;
        refusal = error;
        throw error;
      }
    }
  });
  sending = sent.catch(() => {});
  return sent;
}

async function showAgain(number, error) {
  say(error.message, true);
  try {
    const told = await get(`specimens/${number}`);
    if (desk.open.number === number) { take(told); drawAll(); }
  } catch { /* asked for again soon */ }
}

function say(words, bad = false) {
  savedNote.textContent = words;
  savedNote.className = bad ? "bad" : "";
}

function drawAll() {
  drawScene();
  drawCard();
  drawQueue();
  drawChanges();
  drawSlices();
  drawHeader();
}

function drawHeader() {
  const { open, overview } = desk;
  const right = 1 - open.wrong / open.ids.length, reached = open.reached;
  document.getElementById("goal").textContent =
    `${open.wrong.toFixed(1)} of ${open.ids.length} names expected wrong · ${percent(right)} right · goal ${percent(overview.until)}${reached ? " ✓" : ""}`;
  document.getElementById("meter-done").style.width = `${100 * Math.max(0, right)}%`;
  document.getElementById("meter-goal").style.left = `${100 * overview.until}%`;
  document.getElementById("undo").disabled = overview.readOnly || !open.undo;
  document.getElementById("redo").disabled = overview.readOnly || !open.redo;
  document.getElementById("facts").textContent = [`${desk.pinned.size} settled${overview.author && !overview.readOnly ? `, written as ${overview.author}` : ""}`, open.note].filter(Boolean).join(" · ");
  document.getElementById("warning").textContent = open.outlier ? `Check: ${open.outlier}` : "";
  document.title = `${open.name} · eutely curate`;
}

function drawOverview() {
  const { specimens, readOnly } = desk.overview;
  const options = specimens.map(({ name, right, pins }, number) => {
    const option = element("option", `${name} · ${percent(right)}${pins ? ` · ${pins} settled` : ""}`);
    option.value = number;
    return option;
  });
  which.replaceChildren(...options);
  if (desk.open) which.value = desk.open.number;
  document.body.classList.toggle("read-only", readOnly);
}

function take(told) {
  desk.open = told;
  desk.places = unpack(told.places, Float32Array);
  desk.own = unpack(told.own, Uint8Array);
  document.querySelector("#paint [value=own]").hidden = !desk.own.length;
  if (!desk.own.length && paint.value === "own") paint.value = "doubt";
  desk.pinned = new Map(told.pins);
  if (desk.row >= told.ids.length) desk.row = -1;
}

async function openSpecimen(number) {
  desk.row = -1;
  desk.passed = [];
  desk.planes = null;
  const told = await get(`specimens/${number}`);
  take(told);
  scene.reset();
  which.value = number;
  nextQuestion();
  drawAll();
  again(FAST);
}

function pick(row, zoom = false) {
  if (desk.swapping && row >= 0 && row !== desk.row) { swapWith(row); return; }
  desk.row = row;
  desk.swapping = false;
  if (zoom) travel();
  drawAll();
  showSlices();
}

scene.onPick = (body) => pick(body < cells.count ? holder(body) : body - cells.count);

// The next question of the list, or the one before: what was passed over comes again at the end.
function nextQuestion(step = 1) {
  if (step < 0) {
    const before = desk.passed.pop();
    if (before !== undefined) pick(before, scene.magnify > 1.01);
    return;
  }
  const asked = openQuestions().some(({ row }) => row === desk.row);
  const next = listed().find(({ row }) => row !== desk.row);
  if (!next) return;
  if (asked) desk.passed = [...desk.passed.filter((row) => row !== desk.row && row !== next.row), desk.row];
  pick(next.row, scene.magnify > 1.01);
}

// The next question while the server still works: not about nuclei that the answer itself may change.
function questionAfter(answered) {
  const follow = new Set(desk.open.queue.filter(({ row }) => answered.includes(row)).flatMap((question) => question.follow));
  const list = listed().filter(({ row }) => row !== desk.row), next = list.find(({ row }) => !follow.has(row)) || list[0];
  if (next) pick(next.row, scene.magnify > 1.01); else drawAll();
}

// A correction: the nuclei are marked at once, "saved" is said when the server has it on disk.
async function settle(wanted, onwards = true) {
  if (desk.overview.readOnly) { say("read-only", true); return; }
  const { number } = desk.open;
  for (const [row, cell] of wanted) if (cell === null) desk.pinned.delete(row); else desk.pinned.set(row, cell);
  desk.swapping = false;
  say("saving …");
  waiting++;
  const sent = send("correct", { cells: wanted });
  if (onwards) questionAfter(wanted.map(([row]) => row)); else drawAll();
  try {
    await sent;
    say("saved");
  } catch (error) { await showAgain(number, error); } finally { waiting--; }
  again(FAST);
}

async function step(kind) {
  if (desk.overview.readOnly) return;
  const { number } = desk.open;
  waiting++;
  try {
    await send(kind, {});
    say(kind === "undo" ? "undone" : "done again");
  } catch (error) { await showAgain(number, error); } finally { waiting--; }
  again(FAST);
}

// Asks whether anything is new, often while the server works, seldom otherwise.
let timer = 0, lost = false;
function again(delay) {
  clearTimeout(timer);
  timer = setTimeout(look, delay);
}

async function look() {
  let delay = SLOW;
  try {
    if (!desk.open) { await begin(); return; }
    const { number } = desk.open, news = await get(`specimens/${number}/news`);
    if (desk.open.number === number && !waiting) {
      const known = desk.open, answered = news.solved > known.solved || news.solved < known.solved;
      if (news.revision !== known.revision || answered || news.asked !== known.asked) {
        const told = await get(`specimens/${number}?seen=${known.revision}`);
        if (desk.open === known && !waiting) {
          const first = desk.row < 0;
          take(told);
          if (first) nextQuestion();
          drawAll();
          if (told.meanwhile) say(`in another window, ${told.meanwhile}`);
          desk.overview = await get("specimens");
          drawOverview();
        }
      }
      if (desk.open.solved < desk.open.revision || desk.open.asked < desk.open.solved) delay = FAST;
    } else delay = FAST;
    if (lost) say("connected again");
    lost = false;
  } catch (error) {
    lost = true;
    say(error instanceof TypeError ? "the server does not answer; corrections made so far are on disk" : error.message, true);
  }
  again(delay);
}

async function begin() {
  desk.overview = await get("specimens");
  if (!desk.overview.specimens.length) {
    const { working, problem } = desk.overview;
    document.getElementById("goal").textContent = problem || `${working} …`;
    again(400);
    return;
  }
  drawOverview();
  await openSpecimen(Math.min(+location.hash.slice(1) || 0, desk.overview.specimens.length - 1));
}

function otherSpecimen(stepBy) {
  const number = desk.open.number + stepBy;
  if (number < 0 || number >= desk.overview.specimens.length) return;
  location.hash = number;
}
window.addEventListener("hashchange", () => {
  const number = +location.hash.slice(1) || 0;
  if (desk.overview && number < desk.overview.specimens.length) openSpecimen(number).catch((error) => say(error.message, true));
});
which.addEventListener("change", () => { location.hash = which.value; });

const help = document.getElementById("keys");
// The focus may stay inside the closed dialog, where keys would be lost.
help.addEventListener("close", () => document.activeElement?.blur());
const clicks = {
  "specimen-before": () => otherSpecimen(-1), "specimen-after": () => otherSpecimen(1),
  undo: () => step("undo"), redo: () => step("redo"), help: () => help.showModal(), "keys-close": () => help.close(),
};
for (const [id, action] of Object.entries(clicks)) document.getElementById(id).addEventListener("click", action);

// Results for other programs; the server says what is missing, an extra for instance.
const exports = document.getElementById("exports"), exportSaid = document.getElementById("export-said");
async function writeExport() {
  const kinds = [...document.querySelectorAll("#export-kinds input:checked")].map(({ value }) => value);
  const go = document.getElementById("export-go");
  if (!kinds.length) { exportSaid.textContent = "choose at least one"; return; }
  go.disabled = true;
  exportSaid.textContent = "writing …";
  try {
    const { folder, files } = await post("export", { kinds });
    exportSaid.textContent = `${files.join(", ")} written into ${folder}`;
  } catch (error) { exportSaid.textContent = error.message; }
  go.disabled = false;
}
document.getElementById("export").addEventListener("click", () => {
  document.getElementById("export-folder").textContent = `${desk.overview?.folder || ""}/export`;
  exportSaid.textContent = "";
  exports.showModal();
});
document.getElementById("export-go").addEventListener("click", writeExport);
document.getElementById("export-close").addEventListener("click", () => exports.close());
exports.addEventListener("close", () => document.activeElement?.blur());

const KEYS = {
  Enter: confirmName, y: confirmName, 0: () => desk.row >= 0 && settle([[desk.row, -1]]), s: startSwap,
  o: () => desk.row >= 0 && settle([[desk.row, null]], false),
  t: () => document.getElementById("name")?.focus(), "/": () => document.getElementById("name")?.focus(),
  j: () => nextQuestion(1), ArrowDown: () => nextQuestion(1), k: () => nextQuestion(-1), ArrowUp: () => nextQuestion(-1),
  u: () => step("undo"), r: () => step("redo"), "[": () => otherSpecimen(-1), "]": () => otherSpecimen(1),
  g: travel, w: () => scene.reset(), "?": () => help.showModal(), Escape: () => { desk.swapping = false; drawCard(); },
};
document.addEventListener("keydown", (event) => {
  if (!desk.open || help.open || exports.open || event.target.closest?.("input, select")) return;
  if (event.target === scene.over && event.key.startsWith("Arrow")) return;  // turns the picture
  if (event.key === "Enter" && event.target.closest?.("button")) return;
  const digit = /^Digit([1-8])$/.exec(event.code);
  if (event.ctrlKey || event.metaKey) {
    const kind = { z: event.shiftKey ? "redo" : "undo", y: "redo" }[event.key.toLowerCase()];
    if (!kind) return;
    step(kind);
  } else if (event.altKey) return;
  else if (digit && event.shiftKey) {
    const other = desk.open.others[desk.row]?.[digit[1] - 1];
    if (other && holder(other[0]) >= 0) swapWith(holder(other[0]));
  } else if (digit) choose_(digit[1] - 1);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});
window.eutely = { desk, scene, pick, settle, cells };
begin().catch((error) => { say(error.message, true); again(SLOW); });
