// The nucleus in question: its name, alternatives, a field to type in, and the buttons.
"use strict";

const card = document.getElementById("card");
const NO_CELL = "no cell";
const byName = new Map();
cells.names.forEach((_, cell) => byName.set(title(cell).toUpperCase(), cell));
let completions = [], chosenCompletion = -1;

function button(words, key, action, className) {
  const made = element("button", undefined, className);
  if (key) made.append(element("kbd", key));
  made.append(element("span", words));
  made.addEventListener("click", action);
  return made;
}

function where(cell, row) {
  const other = holder(cell);
  return other < 0 ? "free" : other === row ? "" : nucleus(other);
}

function drawCard() {
  if (!desk.open) return;
  const row = desk.row;
  if (row < 0) {
    card.replaceChildren(element("h2", "Click a nucleus"), element("p", "or take the first question below."));
    return;
  }
  const cell = desk.open.cells[row], pinned = desk.pinned.has(row);
  const head = element("h2", nameOf(row), "asked");
  const facts = element("p", pinned ? `${nucleus(row)} · settled` :
    `${nucleus(row)} · ${percent(desk.open.sure[row])} sure`, "facts");
  const parts = [head, facts];
  const question = desk.open.queue.find((one) => one.row === row);
  if (question && !pinned) {
    const known = Math.abs(question.doubt - (1 - desk.open.sure[row])) > 0.02;
    parts.push(element("p", `${percent(question.doubt)} likely to be wrong${known ? ", by answers in other specimens" : ""}` +
      (question.follow.length > 1 ? `; if it is, ${question.follow.length} names change` : ""), "why"));
  }
  if (desk.swapping) parts.push(element("p", "Swap: click the other nucleus, or type its name. Esc leaves.", "mode"));
  if (!desk.overview.readOnly) {
    const actions = element("div", undefined, "actions");
    actions.append(button(`${nameOf(row)} is right`, "Enter", confirmName, "main"));
    if (cell >= 0) actions.append(button(NO_CELL, "0", () => settle([[row, -1]])));
    actions.append(button("swap", "s", startSwap));
    if (pinned) actions.append(button("open again", "o", () => settle([[row, null]], false)));
    parts.push(actions);
  }
  if (desk.open.others[row].length) {
    const list = element("div", undefined, "others");
    desk.open.others[row].forEach(([other, share], at) => {
      const line = element("div", undefined, "other");
      const choose = button(title(other), String(at + 1), () => choose_(at), "choice");
      choose.append(element("em", percent(share)), element("small", where(other, row)));
      choose.style.setProperty("--sure", share);
      line.append(choose);
      if (holder(other) >= 0 && cell >= 0) {
        const swap = element("button", "⇄", "swap");
        swap.title = `swap with ${nucleus(holder(other))}`;
        swap.setAttribute("aria-label", swap.title);
        swap.addEventListener("click", () => swapWith(holder(other)));
        line.append(swap);
      }
      list.append(line);
    });
    parts.push(element("h3", "or"), list);
  }
  if (!desk.overview.readOnly) parts.push(typing());
  card.replaceChildren(...parts);
}

function choose_(at) {
  const other = desk.open.others[desk.row]?.[at];
  if (other) settle([[desk.row, other[0]]]);
}

function confirmName() {
  if (desk.row >= 0) settle([[desk.row, desk.open.cells[desk.row]]]);
}

function startSwap() {
  desk.swapping = desk.row >= 0;
  drawCard();
}

function swapWith(other) {
  const row = desk.row;
  desk.swapping = false;
  if (row < 0 || other < 0 || other === row) { drawCard(); return; }
  settle([[row, desk.open.cells[other]], [other, desk.open.cells[row]]]);
}

// The field keeps its text while the card is drawn again: typing never waits for the server.
let typed = "", focused = false;
function typing() {
  const box = element("div", undefined, "typing"), field = element("input"), list = element("ul");
  field.id = "name";
  field.placeholder = desk.swapping ? "Swap with …" : "Another name …";
  field.autocomplete = "off";
  field.spellcheck = false;
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-label", "Name of the nucleus");
  field.value = typed;
  list.id = "completions";
  const propose = () => {
    typed = field.value;
    completions = matching(typed);
    chosenCompletion = completions.length ? 0 : -1;
    show();
  };
  const nothing = () => (typed.trim() ? [element("li", `the atlas has no cell called ${typed.trim()}`, "nothing")] : []);
  const show = () => list.replaceChildren(...(completions.length ? [] : nothing()), ...completions.map((cell, at) => {
    const item = element("li", undefined, at === chosenCompletion ? "chosen" : "");
    item.append(element("span", cell < 0 ? NO_CELL : title(cell)), element("small", cell < 0 ? "" : where(cell, desk.row)));
    item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(cell); });
    return item;
  }));
  const take = (cell) => {
    typed = "";
    completions = [];
    focused = false;
    field.blur();
    if (desk.swapping) swapWith(holder(cell));
    else settle([[desk.row, cell]]);
  };
  field.addEventListener("input", propose);
  field.addEventListener("focus", () => { focused = true; });
  field.addEventListener("blur", () => { if (document.hasFocus() && field.isConnected) focused = false; });
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      chosenCompletion = completions.length ? (chosenCompletion + step + completions.length) % completions.length : -1;
      show();
    } else if (event.key === "Enter") {
      if (chosenCompletion >= 0) take(completions[chosenCompletion]);
      else if (field.value.trim()) say(`the atlas has no cell called ${field.value.trim()}`, true);
    } else if (event.key === "Escape") {
      typed = "";
      completions = [];
      focused = false;
      desk.swapping = false;
      field.blur();
      drawCard();
    } else return;
    event.preventDefault();
  });
  box.append(field, list);
  show();
  if (focused) queueMicrotask(() => { field.focus(); field.setSelectionRange(field.value.length, field.value.length); });
  return box;
}

// Cells whose name begins with a text, then those that contain it.
function matching(text) {
  const wanted = text.trim().toUpperCase();
  if (!wanted) return [];
  const found = [...byName].filter(([name]) => name.includes(wanted))
    .sort(([a], [b]) => b.startsWith(wanted) - a.startsWith(wanted) || a.length - b.length || (a < b ? -1 : 1));
  const list = found.slice(0, 8).map(([, cell]) => cell);
  return !desk.swapping && NO_CELL.toUpperCase().startsWith(wanted) ? [-1, ...list] : list;
}
