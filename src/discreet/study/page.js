"use strict";

const { plot: [LEFT, RIGHT, TOP, BOTTOM], panels } = JSON.parse(document.getElementById("data").textContent);
document.querySelectorAll("figure").forEach((figure, i) => { figure.panel = panels[i]; });
const isNarrow = matchMedia("(max-width: 640px)").matches;
document.querySelectorAll("main > section").forEach((section) => {
  // On a phone one goal at a time: the others are a choice away.
  if (isNarrow) section.querySelector('[data-choice="goal"] input:not([value=""])')?.click();
  section.addEventListener("change", () => choose(section));
  section.querySelectorAll(".legend button").forEach((button) => wireLegend(section, button));
  section.querySelectorAll("figure").forEach((figure) => wireFigure(section, figure));
  choose(section);
});

// Each row of buttons narrows down what is shown, and offers only what the rows before it leave.
function choose(section) {
  const all = [...section.querySelectorAll(".part")];
  let left = all;
  for (const row of section.querySelectorAll("fieldset")) {
    const key = row.dataset.choice, inputs = [...row.querySelectorAll("input")];
    for (const input of inputs) {
      input.disabled = input.value && !left.some((part) => part.dataset[key] === input.value);
    }
    const open = inputs.filter((input) => !input.disabled);
    const chosen = open.find((input) => input.checked) || open[0];
    chosen.checked = true;
    if (chosen.value) left = left.filter((part) => part.dataset[key] === chosen.value);
  }
  for (const part of all) part.hidden = !left.includes(part);
  section.querySelector(".panels")?.classList.toggle("alone", left.length === 1);
  section.querySelector(".panels")?.classList.toggle("thirds", left.length % 3 === 0);
  for (const button of section.querySelectorAll(".legend button")) {
    button.disabled = !left.some((figure) => button.dataset.m in figure.panel.curves);
  }
  if (section.querySelector(".tip")) leave(section);
}

function wireLegend(section, button) {
  const curves = section.querySelectorAll(`figure [data-m="${button.dataset.m}"]`);
  const light = (on) => {
    section.classList.toggle("lit", on && button.ariaPressed === "true");
    curves.forEach((curve) => curve.classList.toggle("lit", on));
  };
  button.addEventListener("click", () => {
    const on = button.ariaPressed !== "true";
    button.ariaPressed = String(on);
    curves.forEach((curve) => curve.classList.toggle("off", !on));
    light(on);
  });
  for (const [event, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) {
    button.addEventListener(event, () => light(on));
  }
}

function wireFigure(section, figure) {
  const svg = figure.querySelector("svg");
  const follow = (event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    const places = stops(section, figure.panel);
    if (places.length) point(section, figure, places.reduce((a, b) => (gap(a) <= gap(b) ? a : b)));
    function gap(value) { return Math.abs(across(figure.panel, value) - x); }
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(section); });
  svg.addEventListener("blur", () => leave(section));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], places = stops(section, figure.panel);
    if (event.key === "Escape") leave(section);
    if (!step || !places.length) return;
    event.preventDefault();
    const at = "at" in section ? places.indexOf(section.at) : (places.length >> 1) - step;
    point(section, figure, places[Math.min(places.length - 1, Math.max(0, at + step))]);
  });
}

function shownMethods(section) {
  return [...section.querySelectorAll('.legend button[aria-pressed="true"]')].filter((button) => !button.disabled);
}

// The places where any curve that can be seen has a point.
function stops(section, panel) {
  const places = shownMethods(section).flatMap((button) => (panel.curves[button.dataset.m] || []).flat().map((row) => row[0]));
  return [...new Set(places)].sort((a, b) => a - b);
}

function point(section, figure, x) {
  section.at = x;
  section.querySelectorAll("figure:not([hidden])").forEach((each) => mark(section, each, x));
  tell(section, figure, x);
}

function leave(section) {
  delete section.at;
  section.querySelectorAll(".mark").forEach((mark) => mark.remove());
  section.querySelector(".tip").hidden = true;
}

// A line at x, and a dot on each curve.
function mark(section, figure, x) {
  figure.querySelector(".mark")?.remove();
  const at = across(figure.panel, x).toFixed(1);
  const dots = values(section, figure.panel, x).map(({ tone, value }) =>
    `<circle class="dot ${tone}" cx="${at}" cy="${(BOTTOM - (BOTTOM - TOP) * value[0]).toFixed(1)}" r="3.5"/>`);
  const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
  group.setAttribute("class", "mark");
  group.innerHTML = `<line class="axis" x1="${at}" x2="${at}" y1="${TOP}" y2="${BOTTOM}"/>${dots.join("")}`;
  figure.querySelector("svg").append(group);
}

function tell(section, figure, x) {
  const tip = section.querySelector(".tip"), frame = tip.parentElement.getBoundingClientRect();
  const head = document.createElement("b"), box = figure.querySelector("svg").getBoundingClientRect();
  head.textContent = `${figure.panel.label} = ${Number(x.toPrecision(3))}`;
  const rows = values(section, figure.panel, x).sort((a, b) => b.value[0] - a.value[0]).map(({ button, value }) => {
    const row = document.createElement("div"), number = document.createElement("span");
    row.append(button.firstElementChild.cloneNode(true), button.textContent);
    number.textContent = percent(value[0]) + (value[1] ? ` ± ${(100 * value[1]).toFixed(1)}` : "");
    row.append(number);
    return row;
  });
  tip.replaceChildren(head, ...rows);
  tip.hidden = false;
  const at = box.left - frame.left + across(figure.panel, x) * box.width / figure.querySelector("svg").viewBox.baseVal.width;
  const left = at + 16 + tip.offsetWidth <= frame.width ? at + 16 : Math.max(0, at - 16 - tip.offsetWidth);
  tip.style.left = `${left}px`;
  tip.style.top = `${box.top - frame.top + box.height * 0.16}px`;
}

function values(section, panel, x) {
  return shownMethods(section).flatMap((button) => {
    const value = valueAt(panel, panel.curves[button.dataset.m] || [], x);
    return value ? [{ button, value, tone: button.querySelector("line").getAttribute("class").replace("line ", "") }] : [];
  });
}

// The probability and error of a curve at x: on the straight line that is drawn, where the curve has no point there.
function valueAt(panel, pieces, x) {
  const rows = pieces.find((piece) => piece[0][0] <= x && x <= piece[piece.length - 1][0]);
  if (!rows) return null;
  const after = rows.findIndex((row) => row[0] >= x);
  if (rows[after][0] === x) return rows[after].slice(1);
  const [a, b] = [rows[after - 1], rows[after]], from = across(panel, a[0]);
  const share = (across(panel, x) - from) / (across(panel, b[0]) - from);
  return [1, 2].map((i) => (a[i] || 0) * (1 - share) + (b[i] || 0) * share);
}

function across(panel, x) {
  const [low, high, here] = [panel.low, panel.high, x].map((value) => (panel.log ? Math.log(value) : value));
  return LEFT + (RIGHT - LEFT) * (high > low ? (here - low) / (high - low) : 0.5);
}

function percent(value) {
  if (value > 0 && value < 0.001) return "< 0.1%";
  if (value < 1 && value > 0.999) return "> 99.9%";
  return `${(100 * value).toFixed(1)}%`;
}
