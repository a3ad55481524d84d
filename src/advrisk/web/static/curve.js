// The evasion curve with its band and one mark per answer, as plain SVG.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function element(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function short(value) {
  return Number(value.toPrecision(2)).toString();
}

// 1, 2, 5 times powers of ten between two sizes; fewer where many would fit.
function ticks(low, high, most) {
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of [1, 2, 5]) all.push(step * 10 ** power);
  }
  const inside = all.filter((size) => size >= low * 0.999 && size <= high * 1.001);
  return inside.length <= most ? inside : inside.filter((size) => Number.isInteger(Math.round(Math.log10(size) * 1e6) / 1e6));
}

function drawCurve(svg, figure) {
  const width = Math.max(svg.clientWidth || 600, 280), height = Math.min(340, Math.max(220, width * 0.55));
  const margin = { left: 46, right: 14, top: 18, bottom: 44 };
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const low = figure.sizes[0], high = figure.sizes[figure.sizes.length - 1];
  const zero = margin.left + 12; // where answers about unchanged pictures stand
  const begin = zero + 22;
  const x = (size) => (size <= 0 ? zero
    : begin + (Math.log(size / low) / Math.log(high / low)) * (width - margin.right - begin));
  const y = (share) => height - margin.bottom - share * (height - margin.top - margin.bottom);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    element(svg, "line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(share), y2: y(share) });
    element(svg, "text", { class: "tick", x: margin.left - 6, y: y(share) + 4, "text-anchor": "end" }, share);
  }
  element(svg, "text", { class: "tick", x: zero, y: height - margin.bottom + 16, "text-anchor": "middle" }, "0");
  for (const size of ticks(low, high, width / 70)) {
    element(svg, "line", { class: "grid", x1: x(size), x2: x(size), y1: y(0), y2: y(0) + 4 });
    element(svg, "text", { class: "tick", x: x(size), y: height - margin.bottom + 16, "text-anchor": "middle" }, short(size));
  }
  element(svg, "text", { class: "tick", x: (begin + width - margin.right) / 2, y: height - 6, "text-anchor": "middle" },
    `size of the change (${figure.norm})`);
  const line = (values) => figure.sizes.map((size, i) => `${x(size).toFixed(1)},${y(values[i]).toFixed(1)}`);
  element(svg, "polygon", { class: "band", points: [...line(figure.high), ...line(figure.low).reverse()].join(" ") });
  element(svg, "polyline", { class: "line", points: line(figure.middle).join(" ") });
  for (const [size, undetected] of figure.marks) {
    const at = x(Math.max(size, 0)), from = undetected ? y(1) - 9 : y(0) - 3;
    const kind = undetected ? "mark unnoticed" : "mark noticed";
    element(svg, "line", { class: kind, x1: at, x2: at, y1: from, y2: from + 8 });
  }
}
