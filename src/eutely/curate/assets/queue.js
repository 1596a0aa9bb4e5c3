// What to ask next, and what the last correction changed.
"use strict";

const queuePlace = document.getElementById("queue"), changePlace = document.getElementById("changes");

function openQuestions() {
  return desk.open.queue.filter(({ row }) => !desk.pinned.has(row));
}

// Questions in the order in which they are asked: the one on the card, the others by value, those passed over last.
function listed() {
  const list = openQuestions(), passed = (one) => desk.passed.indexOf(one.row), now = list.filter(({ row }) => row === desk.row);
  const rest = list.filter(({ row }) => row !== desk.row);
  return [...now, ...rest.filter((one) => passed(one) < 0), ...rest.filter((one) => passed(one) >= 0).sort((a, b) => passed(a) - passed(b))];
}

function drawQueue() {
  const list = listed(), parts = [element("h3", "Ask these next")];
  if (desk.open.reached)
    parts.push(element("p", `${percent(desk.overview.until)} of the names are expected to be right: no more questions are needed. You may go on.`, "reached"));
  parts.push(...list.slice(0, 12).map(({ row, doubt, value, follow }) => {
    const line = element("button", undefined, row === desk.row ? "row now" : "row");
    const more = follow.length ? ` · ${follow.length} ${follow.length === 1 ? "name" : "names"}` : "";
    line.append(element("span", `${nameOf(row)}`), element("em", `${percent(doubt)} wrong${more}`));
    line.title = `${nucleus(row)}; an answer is expected to set ${value.toFixed(2)} names right`;
    line.style.setProperty("--sure", 1 - doubt);
    line.addEventListener("click", () => pick(row, true));
    return line;
  }));
  if (!list.length) parts.push(element("p", desk.open.asked < desk.open.solved ? "thinking …" : "Every nucleus is settled."));
  queuePlace.replaceChildren(...parts);
}

const WHY = {
  pinned: () => "you said so",
  opened: () => "its correction was taken back",
  taken: ({ before, by }) => `${title(before)} is ${nucleus(by)} now`,
  free: ({ after, by }) => `${title(after)} is free: ${nucleus(by)} is ${nameOf(by)} now`,
  neighbours: () => "its neighbours fit better so",
};

function drawChanges() {
  const { changes, changed, solved, revision } = desk.open;
  if (solved < revision) {
    changePlace.replaceChildren(element("h3", "Matching again …"));
    return;
  }
  if (!changes.length) {
    changePlace.replaceChildren(...(changed ? [element("h3", "Nothing else changed")] : []));
    return;
  }
  const table = element("table"), words = (cell) => (cell < 0 ? NO_CELL : title(cell));
  table.append(...changes.slice(0, 12).map((change) => {
    const line = element("tr");
    line.append(element("td", words(change.before), "before"), element("td", "→"), element("td", words(change.after), "after"),
      element("td", WHY[change.why](change), "why"));
    line.title = nucleus(change.row);
    line.addEventListener("click", () => pick(change.row, true));
    return line;
  }));
  const more = changes.length > 12 ? ` (12 of ${changes.length} are listed)` : "";
  changePlace.replaceChildren(element("h3", `${changes.length} ${changes.length === 1 ? "name" : "names"} changed${more}`), table);
}
