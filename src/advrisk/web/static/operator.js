// The operator's page: asks for the state every two seconds and shows it.
"use strict";

const home = location.pathname.replace(/\/$/, "");
const message = document.getElementById("message");
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const size = (value) => (value === null ? "∞" : Number(value.toPrecision(2)).toString());

document.getElementById("download").href = `${home}/evasion.json`;

function row(body, ...cells) {
  const made = document.createElement("tr");
  cells.forEach((cell, place) => {
    const made_cell = document.createElement(place === 0 ? "th" : "td");
    if (cell instanceof Node) made_cell.appendChild(cell);
    else { made_cell.textContent = cell; if (place > 0) made_cell.className = "number"; }
    made.appendChild(made_cell);
  });
  body.appendChild(made);
}

function fill(id, rows) {
  const body = document.querySelector(`#${id} tbody`);
  body.replaceChildren();
  rows.forEach((cells) => row(body, ...cells));
}

// The interval as a bar from 0 to 1, with the value as a line.
function bar(estimate) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "bar");
  element(svg, "rect", { class: "whole", x: 0, y: 0, width: 100, height: 10 });
  element(svg, "rect", { class: "part", x: 100 * estimate.low, y: 1, width: Math.max(100 * (estimate.high - estimate.low), 0.5), height: 8 });
  element(svg, "line", { class: "value", x1: 100 * estimate.value, x2: 100 * estimate.value, y1: 0, y2: 10 });
  return svg;
}

const interval = (estimate) => `${(100 * estimate.low).toFixed(1)} – ${percent(estimate.high)}`;

function show(state) {
  const half = state.half_size;
  document.getElementById("half").textContent = state.fitted && half !== null
    ? `Half of all changes of size ${size(half.value)} go unnoticed (95 % between ${size(half.low)} and ${size(half.high)}), by ${state.n_answers} answers.`
    : `${state.n_answers} answers so far. Until some changes were noticed and some not, the curve is what was assumed.`;
  document.getElementById("warnings").textContent = state.warnings.map((text) => `Note: ${text}`).join(" ");
  drawCurve(document.getElementById("curve"), state.figure);
  fill("damage", Object.entries(state.damage).map(([model, found]) => [model, percent(found.value), interval(found), bar(found)]));
  document.getElementById("no-damage").hidden = state.fitted;
  document.getElementById("damage").hidden = !state.fitted;
  const walked = Object.entries(state.monte_carlo);
  document.getElementById("walk").hidden = walked.length === 0;
  fill("monte-carlo", walked.map(([model, found]) => [model, percent(found.value), interval(found), found.n]));
  fill("labellers", state.labellers.map((who) => [
    who.name, who.n_answers, who.n_catch ? `${who.n_catch_right} of ${who.n_catch}` : "–",
    who.median_s === null ? "–" : `${who.median_s.toFixed(1)} s`,
  ]));
  const { alpha, n_units: units } = state.agreement;
  document.getElementById("agreement").textContent = alpha === null
    ? "Agreement (Krippendorff’s α) is not defined yet: too few pictures were answered alike by two labellers or more."
    : `Agreement: Krippendorff’s α = ${alpha.toFixed(2)} on ${units} pictures that two labellers or more answered (1: always, 0: as by chance).`;
  document.body.dataset.answers = state.n_answers;
}

async function poll() {
  try {
    const reply = await fetch(`${home}/state`);
    if (!reply.ok) throw new Error(reply.status === 404 ? "This link is no longer valid: the server was started anew." : "The server has a problem.");
    const state = await reply.json();
    if (!state.pending) show(state);
    message.textContent = state.behind ? "These numbers are not up to date: the last calculation failed. Answers are kept; the server says why." : "";
  } catch (error) {
    message.textContent = error instanceof TypeError ? "No connection to the server." : error.message;
  }
  setTimeout(poll, 2000);
}

document.getElementById("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = document.getElementById("name"), place = document.getElementById("invited");
  place.hidden = false;
  try {
    const reply = await fetch(`${home}/invite`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name: field.value }),
    });
    const content = await reply.json();
    if (!reply.ok) throw new Error(content.error);
    showLink(place, content);
    field.value = "";
  } catch (error) {
    place.textContent = error.message;
  }
});

function showLink(place, { name, link }) {
  const text = document.createElement("p");
  text.textContent = `Link for ${name}. It is shown once; inviting the same name again makes a new one and ends the old.`;
  const shown = document.createElement("input");
  shown.readOnly = true;
  shown.value = link;
  shown.setAttribute("aria-label", `link for ${name}`);
  shown.addEventListener("focus", () => shown.select());
  const open = document.createElement("a");
  open.href = link;
  open.target = "_blank";
  open.rel = "noopener noreferrer";
  open.className = "button";
  open.textContent = "Open";
  const copy = document.createElement("button");
  copy.type = "button";
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    shown.select();
    try { await navigator.clipboard.writeText(link); copy.textContent = "Copied"; } catch { copy.textContent = "Press Ctrl+C"; }
  });
  place.replaceChildren(text, shown, copy, open);
}

poll();
