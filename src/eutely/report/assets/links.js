// Clicks outside the 3D views: they lead to a cell or a specimen, or copy text.
"use strict";

document.addEventListener("click", (event) => {
  const source = event.target.closest("[data-specimen], [data-cell]");
  if (!source) return;
  if (source.dataset.specimen !== undefined) {
    showSpecimen(+source.dataset.specimen);
    document.getElementById("specimens").scrollIntoView({ behavior: "smooth" });
  } else {
    select(+source.dataset.cell, true);
    document.getElementById("atlas").scrollIntoView({ behavior: "smooth" });
  }
});
for (const button of document.querySelectorAll("[data-copy]"))
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try { await navigator.clipboard.writeText(text); button.textContent = "copied"; }
    catch { button.textContent = "select and copy"; }
  });
for (const [name, values] of [["accuracy", cells.accuracy], ["confidence", cells.confidence]])
  if (!values) paint.querySelector(`[value=${name}]`).remove();
if (!groupList.length) paint.querySelector("[value=group]").remove();
if (!atlas.gl) document.body.classList.add("flat");
fitStage();
drawAtlas();
window.eutely = { atlas, specimen, state, select, showSpecimen };
