// The labeller's page: show one question, take one answer, show the next.
"use strict";

const home = location.pathname.replace(/\/$/, "");
const { curve } = document.body.dataset;
const buttons = [...document.querySelectorAll("button[data-said]")];
const undoButton = document.getElementById("undo");
const stage = document.getElementById("stage");
const message = document.getElementById("message");
const heading = document.getElementById("ask");
const asked = heading.textContent;
const keys = { ArrowLeft: 0, ArrowRight: 1, 1: 0, 2: 1 };
const LARGEST = 480; // CSS pixels: more does not help to see

let question = null;
let busy = true;
let timer = null;

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const reply = await fetch(home + path, options);
  const content = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(content.error), { status: reply.status });
  return content;
}

function enable(on) {
  buttons.forEach((button) => { button.disabled = !on; });
  undoButton.disabled = !on && !(question && question.done) || !question || !question.can_undo;
}

function cover(on) {
  stage.querySelectorAll(".cover").forEach((cover) => {
    cover.hidden = !on;
    cover.previousElementSibling.classList.toggle("hidden", on);
  });
}

// Whole device pixels for each pixel of the picture, as many as fit, beside or below each other.
function fit() {
  const images = [...stage.querySelectorAll("img")].filter((image) => image.naturalWidth);
  if (!images.length) return;
  const ratio = window.devicePixelRatio || 1;
  const { naturalWidth: width, naturalHeight: height } = images[0];
  const n = images.length;
  const room = { width: stage.clientWidth, height: Math.max(stage.clientHeight, 160) };
  const gap = 24, caption = n > 1 ? 28 : 0;
  const factor = (across, down) => Math.floor(ratio * Math.min(
    (room.width - gap * (across - 1)) / across / width,
    (room.height - gap * (down - 1)) / down / height - caption / height,
    LARGEST / Math.max(width, height),
  ));
  const beside = factor(n, 1), below = factor(1, n);
  stage.classList.toggle("below", below > beside);
  const whole = Math.max(1, beside, below);
  images.forEach((image) => {
    image.style.width = `${(whole * width) / ratio}px`;
    image.style.height = `${(whole * height) / ratio}px`;
  });
  stage.dataset.scale = whole;
}

async function show(next) {
  clearTimeout(timer);
  question = next;
  document.getElementById("n").textContent = next.n_answers;
  const progress = document.getElementById("progress");
  progress.max = Math.max(next.goal, 1);
  progress.value = Math.min(next.n_done, next.goal);
  stage.hidden = next.done;
  heading.textContent = next.done ? "That was the last picture. Thank you! You can close this page." : asked;
  document.body.dataset.done = next.done ? "yes" : "";
  if (next.done) {
    busy = false;
    enable(false);
    return;
  }
  if (next.left_s === 0) {
    await Promise.all(next.pictures.filter((name) => name === "original").map(load));
    cover(true);
  } else {
    await Promise.all(next.pictures.map(load));
    cover(false);
    if (next.left_s !== null) timer = setTimeout(() => cover(true), next.left_s * 1000);
  }
  fit();
  busy = false;
  enable(true);
  stage.dataset.nonce = next.nonce;
}

async function load(name) {
  const image = document.getElementById(name);
  image.src = `${home}/picture/${question.nonce}/${name}.png`;
  await image.decode();
}

async function turn(action) {
  if (busy) return;
  busy = true;
  enable(false);
  try {
    const next = await action();
    message.textContent = "";
    await show(next);
  } catch (error) {
    await recover(error);
  }
}

// An answer that was refused may have been stored before: the server knows which question is open now.
async function recover(error) {
  if (error.status === 403) {
    message.textContent = error.message;
    return;
  }
  if (error.status === 404) {
    message.textContent = "This link is no longer valid. Ask for a new one.";
    return;
  }
  const waiting = error.status === 429 ? "That was too fast. One moment …" : "No connection. Trying again …";
  message.textContent = error.status === 409 ? "" : waiting;
  await new Promise((done) => setTimeout(done, error.status === 409 ? 0 : 1500));
  try {
    const next = await ask("/question");
    message.textContent = "";
    await show(next);
  } catch (again) {
    if (again.status === 409) again.status = 503;
    await recover(again);
  }
}

const answer = (place) => {
  if (!question || question.done) return;
  const said = { nonce: question.nonce, said: buttons[place].dataset.said };
  turn(() => ask("/answer", said));
};
const undo = () => { if (question && question.can_undo) turn(() => ask("/undo", {})); };

buttons.forEach((button, place) => button.addEventListener("click", () => answer(place)));
undoButton.addEventListener("click", undo);
document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in keys) { event.preventDefault(); answer(keys[event.key]); }
  if (event.key === "u" || event.key === "U") { event.preventDefault(); undo(); }
});
window.addEventListener("resize", fit);

if (curve) {
  const draw = async () => {
    try {
      const figure = await ask("/curve");
      if (!figure.pending) drawCurve(document.getElementById("curve"), figure);
    } catch { /* next time */ }
  };
  draw();
  setInterval(draw, 2000);
}

ask("/question").then(show).catch(recover);
