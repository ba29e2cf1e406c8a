"use strict";
// Hides what a search does not find: groups, or the items of one long list. Without a script all of them are there.
const box = document.getElementById("search");
if (box) {
  const parts = [...document.querySelectorAll("[data-find]")];
  const status = document.getElementById("found");
  const fold = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim();
  const texts = parts.map(part => fold(part.dataset.find));
  const show = () => {
    const wanted = fold(box.value);
    const found = texts.map(text => text.includes(wanted));
    parts.forEach((part, place) => { part.hidden = !found[place]; });
    const shown = found.filter(Boolean).length;
    status.textContent = status.dataset.text.replace("{shown}", shown).replace("{all}", parts.length);
  };
  const keep = () => {
    // The search stays when another period is opened, and in a link that is copied.
    const mark = box.value ? "#q=" + encodeURIComponent(box.value) : "#";
    history.replaceState(null, "", mark);
    for (const link of document.querySelectorAll(".periods a")) link.hash = mark;
  };
  const read = () => {
    // Anybody can write a fragment: one that is not well-formed searches nothing.
    let text = "";
    try { text = decodeURIComponent(location.hash); } catch { text = ""; }
    if (text.startsWith("#q=")) box.value = text.slice(3);
    for (const link of document.querySelectorAll(".periods a")) link.hash = box.value ? "#q=" + encodeURIComponent(box.value) : "";
    show();
  };
  box.addEventListener("input", () => { show(); keep(); });
  window.addEventListener("hashchange", read);
  document.querySelector(".search").hidden = false;
  read();
}
