"use strict";
// Shows one group at a time. Without a script all of them are there, one below the other.
const select = document.getElementById("group");
if (select) {
  const lists = [...document.querySelectorAll("section[data-group]")];
  const nameOf = list => list.querySelector("h2").textContent;
  const show = () => {
    for (const list of lists) list.hidden = select.value !== "" && list.dataset.group !== select.value;
    const chosen = lists.find(list => list.dataset.group === select.value);
    const mark = chosen ? "#" + encodeURIComponent(nameOf(chosen)) : "#all";
    // The choice stays when another period is opened, and in a link that is copied.
    history.replaceState(null, "", mark);
    for (const link of document.querySelectorAll(".periods a")) link.hash = mark;
  };
  const decode = text => {
    // Anybody can write a fragment: one that is not well-formed names no group.
    try { return decodeURIComponent(text); } catch { return ""; }
  };
  const read = () => {
    const wanted = decode(location.hash.slice(1));
    const found = lists.find(list => nameOf(list) === wanted);
    select.value = wanted === "all" ? "" : (found || lists[0]).dataset.group;
  };
  select.addEventListener("change", show);
  window.addEventListener("hashchange", () => {
    // The link that skips to the content is no choice.
    if (location.hash !== "#main") { read(); show(); }
  });
  document.querySelector(".choice").hidden = false;
  read();
  show();
}
