// Draws a figure, `{data, layout}` as plotly has it, as inline SVG: lines, marks, bars, heat maps and sunbursts.
// It knows nothing of the page: `drawChart(place, figure, {width, narrow})` fills an element, and draws it anew if called
// again. Names from outside reach the page as text nodes only.
const drawChart = (() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
  const DASHES = {dash: "9 6", dot: "2 4", dashdot: "9 4 2 4", longdash: "15 6", longdashdot: "15 5 2 5"};
  const SHAPES = {scatter: lines, bar: bars, heatmap: cells, sunburst: slices};
  const EDGE = 8; // pixels right of the plot
  const NEAR = 40; // pixels from which the pointer finds a point
  const canvas = document.createElement("canvas").getContext("2d");
  const states = new WeakMap(); // place -> what is drawn there, and what was switched off
  let serial = 0;

  // Elements and text

  function make(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === undefined || value === null) continue;
      if (key === "fill" || key === "stroke") made.style[key] = paint(value);
      else made.setAttribute(key, typeof value === "number" ? Math.round(value * 10) / 10 : value);
    }
    made.append(...children);
    return made;
  }
  function node(name, className, ...children) {
    const made = document.createElement(name);
    made.className = className;
    made.append(...children);
    return made;
  }
  const paint = colour => ({ink: "var(--ink)", paper: "var(--paper)"})[colour] ?? colour;
  const decoded = text => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&#37;", "%").replaceAll("&amp;", "&");
  const textLines = text => String(text ?? "").split("<br>").map(line => decoded(line.replace(/<\/?(sub|sup)>/g, "")));
  function widthOf(text, size) {
    canvas.font = `${size}px system-ui, sans-serif`;
    return canvas.measureText(text).width;
  }
  const widest = (lines, size) => Math.max(0, ...lines.map(line => widthOf(line, size)));
  function cut(text, room, size) {
    if (widthOf(text, size) <= room) return text;
    let kept = text.slice(0, Math.ceil(room));
    while (kept && widthOf(`${kept}…`, size) > room) kept = kept.slice(0, -1);
    return `${kept}…`;
  }
  function label(text, x, y, {size = 12, anchor = "middle", room = Infinity, turn = 0, middle = false, ...more} = {}) {
    const lines = textLines(text);
    const top = middle ? y - (lines.length - 1) * size * 0.6 : y;
    const spans = lines.map((line, n) => make("tspan", {x, y: top + n * size * 1.2}, cut(line, room, size)));
    const made = make("text", {"font-size": size, "text-anchor": anchor, "dominant-baseline": middle ? "central" : undefined,
      transform: turn ? `rotate(${turn} ${Math.round(x)} ${Math.round(y)})` : undefined, ...more}, ...spans);
    if (lines.some(line => widthOf(line, size) > room)) made.append(make("title", {}, lines.join(" ")));
    return made;
  }
  function numberText(value, format = "") {
    if (typeof value !== "number") return decoded(String(value ?? ""));
    const [, digits, trim, kind] = /^(?:\.(\d+))?(~)?([fg%])$/.exec(format) ?? [];
    let text;
    if (kind === "%") return `${(100 * value).toFixed(Number(digits ?? 0))} %`;
    else if (kind === "f") text = value.toFixed(Number(digits));
    else if (kind === "g") text = value === 0 ? "0" : tidy(Number(value.toPrecision(Number(digits))));
    else text = tidy(Number(value.toPrecision(6)));
    return trim && text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }
  function tidy(value) {
    const size = Math.abs(value);
    return value && (size < 1e-4 || size >= 1e7) ? value.toExponential().replace("e+", "e") : value.toLocaleString("en-US", {maximumSignificantDigits: 6});
  }
  function filled(template, values) { // `%{x:.1%}`, `%{customdata[0]}`
    return template.replace(/%\{(\w+)(?:\[(\d+)\])?(?::([^}]*))?\}/g, (_, name, nth, format) => {
      const value = nth === undefined ? values[name] : values[name]?.[nth];
      return typeof value === "number" ? numberText(value, format) : String(value ?? "");
    });
  }
  function hoverLines(trace, values) {
    if (trace.hoverinfo === "skip") return null;
    const named = trace.name ? [`${trace.name}`] : [];
    const text = trace.hovertemplate ? filled(trace.hovertemplate.replace("<extra></extra>", ""), values)
      : trace.hoverinfo === "text" ? values.hovertext ?? values.text
      : [...named, `${numberText(values.x)}, ${numberText(values.y)}`].join("<br>");
    const [, said, beside] = /^(.*?)(?:<extra>(.*)<\/extra>)?$/s.exec(text);
    return textLines(beside ? `${beside}<br>${said}` : said);
  }
  const nth = (value, n) => (Array.isArray(value) ? value[n] : value);
  const valuesAt = (trace, n) => Object.fromEntries(["x", "y", "text", "hovertext", "customdata"].map(key => [key, nth(trace[key], n)]));

  // Axes

  function axisOf(own, traces, name, shapes = []) {
    const given = traces.flatMap(trace => trace[name] ?? []);
    const type = own.type ?? (given.some(value => typeof value === "string") ? "category" : "linear");
    const axis = {...own, type, reversed: own.autorange === "reversed"};
    if (type === "category") {
      axis.names = [...new Set([...(own.categoryarray ?? []), ...given])];
      axis.ends = [-0.5, axis.names.length - 0.5];
    } else {
      axis.ends = own.range ? [...own.range] : automatic(traces, name, type, own, shapes.filter(one => one[`${name}ref`] !== "paper").flatMap(one => [one[`${name}0`], one[`${name}1`]]));
    }
    if (axis.reversed) axis.ends.reverse();
    return axis;
  }
  function automatic(traces, name, type, own, beside) {
    const log = value => (type === "log" ? (value > 0 ? Math.log10(value) : NaN) : value);
    const error = `error_${name}`;
    const seen = traces.flatMap(trace => (trace[name] ?? []).flatMap((value, n) => [
      log(value), log(value + (trace[error]?.array?.[n] ?? 0)), log(value - (trace[error]?.arrayminus?.[n] ?? 0))]));
    const known = [...seen, ...beside.map(log)].filter(Number.isFinite);
    if (traces.some(trace => trace.type === "bar") && name === barsAlong(traces)) known.push(0);
    if (!known.length) return [0, 1];
    let [low, high] = [Math.min(...known), Math.max(...known)];
    if (traces.some(trace => trace.type === "heatmap")) {
      const step = (high - low) / Math.max(1, new Set(known).size - 1) || 1;
      return [low - step / 2, high + step / 2];
    }
    const marks = traces.some(trace => (trace.mode ?? "").includes("markers") || name === "y");
    const pad = (marks ? 0.05 : 0) * (high - low) || (high === low ? Math.abs(high) / 2 || 0.5 : 0);
    [low, high] = [low === 0 && known.includes(0) ? 0 : low - pad, high + pad];
    if (own.rangemode === "tozero" && type !== "log") [low, high] = [Math.min(0, low), Math.max(0, high)];
    return [low, high];
  }
  const barsAlong = traces => (traces.some(trace => trace.orientation === "h") ? "x" : "y");
  function scaled(axis, from, to) { // where a value stands, in pixels
    const [low, high] = axis.ends;
    const place = number => from + ((number - low) / (high - low || 1)) * (to - from);
    axis.step = Math.abs(to - from) / Math.abs(high - low || 1);
    axis.at = value => place(axis.type === "category" ? axis.names.indexOf(value) : axis.type === "log" ? Math.log10(Math.max(value, 1e-300)) : value);
    axis.clamped = value => Math.max(Math.min(from, to), Math.min(Math.max(from, to), axis.at(value)));
    return axis;
  }
  function ticksOf(axis, room) { // values and their labels
    const [low, high] = [Math.min(...axis.ends), Math.max(...axis.ends)];
    const inside = value => { const place = axis.type === "log" ? Math.log10(value) : value; return place >= low - 1e-9 && place <= high + 1e-9; };
    if (axis.type === "category") {
      const shown = new Map((axis.tickvals ?? []).map((value, n) => [value, axis.ticktext?.[n]]));
      return axis.names.map(name => [name, shown.get(name) ?? escaped(name)]);
    }
    if (axis.tickvals) return axis.tickvals.map((value, n) => [value, axis.ticktext?.[n] ?? numberText(value, axis.tickformat)]).filter(([value]) => inside(value));
    const most = Math.max(2, Math.min(axis.nticks ?? 8, Math.floor(room)));
    const values = axis.type === "log" ? decades(low, high, most) : rounds(low, high, most);
    return values.map(value => [value, numberText(value, axis.tickformat)]);
  }
  const escaped = text => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  function rounds(low, high, most) {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(one => one * power).find(one => one >= rough * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({length: Math.floor(high / step + 1e-9) - first + 1}, (_, n) => Number(((first + n) * step).toPrecision(12)));
  }
  function decades(low, high, most) {
    const powers = Array.from({length: Math.floor(high + 1e-9) - Math.ceil(low - 1e-9) + 1}, (_, n) => Math.ceil(low - 1e-9) + n);
    const fine = powers.length < 2 || (powers.length < 3 && most > 4) ? [1, 2, 5] : [1];
    const every = Math.ceil(powers.length / most);
    const from = Math.floor(low), values = [];
    for (let power = from; power <= Math.ceil(high); power += fine.length > 1 ? 1 : every) {
      for (const one of fine) {
        const value = Number(`${one}e${power}`);
        if (Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9) values.push(value);
      }
    }
    return values.length > 1 ? values : rounds(10 ** low, 10 ** high, most);
  }

  // A plot with two axes

  function plot(state, width, narrow) {
    const {data, layout} = state.figure;
    const traces = data.filter(trace => !state.hidden.has(groupOf(trace)));
    const shown = traces.length ? traces : data;
    const size = narrow ? 11 : 12.5;
    const x = axisOf(layout.xaxis ?? {}, shown, "x", layout.shapes), y = axisOf(layout.yaxis ?? {}, shown, "y", layout.shapes);
    const title = layout.title?.text;
    const map = shown[0]?.type === "heatmap" ? shown[0] : null;
    let height = Math.max(140, (layout.height ?? 400) - (map || layout.showlegend === false ? 10 : 60));
    if (map && narrow && map.meta?.narrow && y.type === "category") {
      Object.assign(y, {tickvals: map.y, ticktext: map.meta.narrow});
      height += 6 * map.y.length;
    }
    const scale = map && map.showscale !== false && !narrow ? 62 : 0;
    const yTicks = ticksOf(y, height / 42);
    const yLabels = yTicks.map(([, text]) => textLines(text));
    const most = width * (narrow ? 0.36 : 0.4);
    const beside = Math.min(most, Math.max(...yLabels.map(lines => widest(lines, size)), 8));
    const left = beside + 10 + (y.title?.text ? size * 1.7 : 4);
    const right = EDGE + scale + (x.type === "category" ? 0 : 10);
    scaled(x, left, width - right);
    const xTicks = ticksOf(x, (width - left - right) / (narrow ? 62 : 84));
    const xLabels = xTicks.map(([, text]) => textLines(text));
    const slot = x.type === "category" ? x.step : (width - left - right) / Math.max(1, xTicks.length);
    const aslant = x.type === "category" && Math.max(...xLabels.map(lines => widest(lines, size))) > slot - 6;
    const longest = aslant ? Math.min(110, Math.max(...xLabels.map(lines => widthOf(lines.join(" "), size)))) : 0;
    const below = aslant ? longest * 0.72 + 14 : Math.max(1, ...xLabels.map(lines => lines.length)) * size * 1.25 + 8;
    const upper = x.side === "top";
    const top = (title ? 26 : 10) + (upper ? below : 0);
    const bottom = (upper ? 6 : below) + (x.title?.text ? size * 1.8 : 0) + 4;
    if (upper || map) height += below;
    scaled(y, height - bottom, top);

    const svg = make("svg", {class: "chart", width, height, viewBox: `0 0 ${Math.round(width)} ${Math.round(height)}`, "aria-hidden": "true"});
    const frame = {left, right: width - right, top, bottom: height - bottom};
    if (title) svg.append(label(title, left, 14, {size: size + 1, anchor: "start", room: width - left, class: "charttitle"}));
    const grid = make("g", {class: "grid"});
    yTicks.forEach(([value, text]) => {
      const at = y.at(value);
      if (y.showgrid !== false && !map) grid.append(make("line", {x1: frame.left, x2: frame.right, y1: at, y2: at}));
      svg.append(make("g", {class: "ytick"}, label(text, left - 8, at, {size, anchor: "end", room: beside + 2, middle: true})));
    });
    xTicks.forEach(([value, text]) => {
      const at = x.at(value);
      if (x.showgrid !== false && !map && x.type !== "category") grid.append(make("line", {y1: frame.top, y2: frame.bottom, x1: at, x2: at}));
      const line = upper ? frame.top - 6 : frame.bottom + size + 6;
      const one = aslant
        ? label(textLines(text).map(escaped).join(" "), at, upper ? frame.top - 8 : frame.bottom + 12, {size, anchor: upper ? "start" : "end", room: longest, turn: -40})
        : label(text, at, upper ? line - (textLines(text).length - 1) * size * 1.2 : line, {size, room: x.type === "category" ? slot : Infinity});
      svg.append(make("g", {class: "xtick"}, one));
    });
    if (!map) {
      grid.append(make("line", {class: "base", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom}));
      if (x.type !== "category" && Math.min(...x.ends) < 0 && x.type !== "log") grid.append(make("line", {class: "base", x1: x.at(0), x2: x.at(0), y1: frame.top, y2: frame.bottom}));
    }
    svg.prepend(grid);
    if (x.title?.text) svg.append(label(x.title.text, (frame.left + frame.right) / 2, height - 6, {size, room: width - 8, class: "axistitle"}));
    if (y.title?.text) svg.append(label(y.title.text, size, (frame.top + frame.bottom) / 2, {size, turn: -90, room: frame.bottom - frame.top + 40, class: "axistitle"}));
    const clip = `clip-${++serial}`;
    svg.append(make("clipPath", {id: clip}, make("rect", {x: frame.left - 9, y: frame.top - 9, width: frame.right - frame.left + 18, height: frame.bottom - frame.top + 18})));
    const stage = {svg, frame, x, y, traces, size, narrow, layout, hits: [], clip, defs: svg.appendChild(make("defs")), scale};
    const drawn = make("g", {"clip-path": `url(#${clip})`});
    svg.append(drawn);
    traces.forEach((trace, n) => {
      const group = make("g", {class: "trace"});
      drawn.append(group);
      (SHAPES[trace.type ?? "scatter"] ?? lines)(stage, trace, group, n);
    });
    for (const shape of layout.shapes ?? []) {
      const across = shape.xref === "paper", up = shape.yref === "paper";
      if (!(across || (x.at(shape.x0) >= frame.left - 1 && x.at(shape.x0) <= frame.right + 1))) continue;
      svg.append(make("line", {
        x1: across ? frame.left + shape.x0 * (frame.right - frame.left) : x.clamped(shape.x0), x2: across ? frame.left + shape.x1 * (frame.right - frame.left) : x.clamped(shape.x1),
        y1: up ? frame.bottom - shape.y0 * (frame.bottom - frame.top) : y.clamped(shape.y0), y2: up ? frame.bottom - shape.y1 * (frame.bottom - frame.top) : y.clamped(shape.y1),
        stroke: shape.line?.color, "stroke-width": shape.line?.width ?? 1.5, "stroke-dasharray": DASHES[shape.line?.dash]}));
    }
    return {svg, hits: stage.hits};
  }

  // Lines and marks

  function lines(stage, trace, group, n) {
    const {x, y} = stage;
    const mode = trace.mode ?? "lines";
    const shift = mode.includes("markers") ? shiftOf(stage, n) : [0, 0];
    const points = (trace.x ?? []).map((value, i) => [x.at(value) + shift[0], y.at(trace.y[i]) + shift[1]]);
    const fine = points.map(point => point.every(Number.isFinite));
    const colour = trace.line?.color ?? nth(trace.marker?.color, 0) ?? "ink";
    if (trace.fill === "tonexty") {
      const below = stage.traces[stage.traces.indexOf(trace) - 1];
      const lower = below.x.map((value, i) => [x.at(value), y.at(below.y[i])]);
      const steps = trace.line?.shape === "hv";
      group.append(make("path", {class: "band", d: `${path(points, steps)}L${backwards(lower, steps)}Z`, fill: trace.fillcolor}));
      return;
    }
    if (mode.includes("lines") && trace.line?.width !== 0) {
      group.append(make("path", {d: path(points.filter((_, i) => fine[i]), trace.line?.shape === "hv"), fill: "none", stroke: colour,
        "stroke-width": trace.line?.width ?? 2, "stroke-dasharray": DASHES[trace.line?.dash], "stroke-linejoin": "round"}));
    }
    if (trace.error_x || trace.error_y) points.forEach((point, i) => fine[i] && whiskers(stage, trace, group, point, i, nth(trace.marker?.color, i) ?? colour));
    const every = Math.max(1, Math.ceil(points.length / (trace.marker?.maxdisplayed || points.length || 1)));
    const coloured = marksColours(trace);
    points.forEach((point, i) => {
      if (!fine[i]) return;
      if (mode.includes("markers") && i % every === 0) group.append(mark(trace.marker ?? {}, point, i, coloured(i) ?? colour));
      if (mode.includes("text")) group.append(make("g", {class: "textpoint"}, beside(stage, nth(trace.text, i), point)));
      const said = mode === "text" || trace.line?.width === 0 ? null : hoverLines(trace, valuesAt(trace, i));
      if (said) stage.hits.push({x: point[0], y: point[1], lines: said, trace: n, step: trace.line?.shape === "hv" || mode.includes("lines") ? points[i + 1] : null});
    });
  }
  function beside(stage, text, [px, py]) {
    const lines = stage.narrow ? textLines(text)[0].trim().split(/, (?=\D)/) : [textLines(text)[0].trim()];
    return label(lines.map(escaped).join("<br>"), px + 6, py, {size: stage.size, anchor: "start", room: stage.frame.right + EDGE - px - 2, middle: true});
  }
  const p = ([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`;
  function path(points, steps) {
    return points.map((point, n) => (n === 0 ? `M${p(point)}` : steps ? `H${point[0].toFixed(1)}V${point[1].toFixed(1)}` : `L${p(point)}`)).join("");
  }
  function backwards(points, steps) { // the lower edge of a band, from its end
    const all = steps ? points.flatMap((point, n) => (n ? [[point[0], points[n - 1][1]], point] : [point])) : points;
    return all.reverse().map(p).join("L");
  }
  function shiftOf(stage, n) { // marks of several traces stand side by side
    if (stage.layout.scattermode !== "group") return [0, 0];
    const part = (n - (stage.traces.length - 1) / 2) * Math.min(16, 0.7 / stage.traces.length * (stage.y.type === "category" ? stage.y.step : stage.x.step));
    return stage.y.type === "category" ? [0, part] : [part, 0];
  }
  function marksColours(trace) { // numbers among colours stand on the scale
    const {color, cmin} = trace.marker ?? {};
    if (!Array.isArray(color) || typeof color[0] !== "number") return n => nth(color, n);
    const high = Math.max(...color), low = cmin ?? Math.min(...color);
    return n => cividis((color[n] - low) / (high - low || 1));
  }
  function mark(own, point, n, colour) {
    const symbol = String(nth(own.symbol, n) ?? "circle"), size = (nth(own.size, n) ?? 8) / 2;
    const open = symbol.endsWith("-open");
    const outline = own.line?.color ?? (open ? colour : undefined);
    return make("path", {class: "mark", d: outlineOf(symbol.replace("-open", ""), point, size), fill: open ? "paper" : colour,
      stroke: outline ?? "paper", "stroke-width": outline ? own.line?.width ?? 2 : 1});
  }
  function outlineOf(symbol, [px, py], r) {
    const corners = (...pairs) => `M${pairs.map(([dx, dy]) => p([px + dx * r, py + dy * r])).join("L")}Z`;
    switch (symbol) {
      case "square": return corners([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]);
      case "diamond": return corners([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]);
      case "triangle-up": return corners([0, -1.15], [1.1, 0.85], [-1.1, 0.85]);
      case "cross": return corners([-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]);
      case "x": return corners([-1.1, -0.65], [-0.65, -1.1], [0, -0.45], [0.65, -1.1], [1.1, -0.65], [0.45, 0], [1.1, 0.65], [0.65, 1.1], [0, 0.45], [-0.65, 1.1], [-1.1, 0.65], [-0.45, 0]);
      case "star": return corners(...Array.from({length: 10}, (_, n) => [n % 2 ? 0.5 : 1.25, (n * Math.PI) / 5 - Math.PI / 2]).map(([length, turn]) => [length * Math.cos(turn), length * Math.sin(turn)]));
      default: return `M${p([px - r, py])}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    }
  }
  function whiskers(stage, trace, group, [px, py], n, colour) {
    for (const [axis, error] of [[stage.x, trace.error_x], [stage.y, trace.error_y]]) {
      if (!error) continue;
      const along = axis === stage.x, value = (along ? trace.x : trace.y)[n];
      const low = axis.clamped(value - error.arrayminus[n]), high = axis.clamped(value + error.array[n]), end = error.width ?? 4;
      const d = along
        ? `M${p([low, py])}L${p([high, py])}M${p([low, py - end])}v${2 * end}M${p([high, py - end])}v${2 * end}`
        : `M${p([px, low])}L${p([px, high])}M${p([px - end, low])}h${2 * end}M${p([px - end, high])}h${2 * end}`;
      group.append(make("path", {class: "whisker", d, fill: "none", stroke: error.color ?? colour, "stroke-width": error.thickness ?? 1.5}));
    }
  }

  // Bars

  function bars(stage, trace, group, n) {
    const across = trace.orientation === "h";
    const [names, values] = across ? [stage.y, stage.x] : [stage.x, stage.y];
    const among = stage.traces.filter(one => one.type === "bar");
    const side = stage.layout.barmode === "overlay" ? 1 : among.length;
    const whole = names.step * (1 - (stage.layout.bargap ?? 0.2)), thick = Math.min(34, whole / side);
    const offset = side === 1 ? 0 : (among.indexOf(trace) - (side - 1) / 2) * thick;
    const [labels, sizes] = across ? [trace.y, trace.x] : [trace.x, trace.y];
    labels.forEach((name, i) => {
      const middle = names.at(name) + offset, from = values.clamped(Math.max(0, values.type === "log" ? 1e-12 : 0)), to = values.clamped(sizes[i]);
      const box = across ? [Math.min(from, to), middle - thick / 2, Math.abs(to - from), thick] : [middle - thick / 2, Math.min(from, to), thick, Math.abs(to - from)];
      const [bx, by, width, height] = box;
      const place = {x: bx, y: by + 0.5, width, height: Math.max(1, height - 1)};
      group.append(make("rect", {...place, fill: nth(trace.marker?.color, i) ?? "#0072B2", class: "bar"}));
      if (trace.marker?.pattern?.shape) group.append(make("rect", {...place, fill: `url(#${hatching(stage, trace.marker.pattern.shape)})`}));
      if (trace.error_x || trace.error_y) whiskers(stage, trace, group, across ? [to, middle] : [middle, to], i, "ink");
      const lines = hoverLines(trace, valuesAt(trace, i));
      if (lines) stage.hits.push({x: across ? to : middle, y: across ? middle : to, lines, trace: n, box: [bx, by, bx + Math.max(width, 6), by + height]});
    });
  }
  function hatching(stage, shape) {
    const id = `hatch-${++serial}`, white = {stroke: "#ffffffb0", "stroke-width": 1.4, fill: "none"};
    const inside = {"/": make("path", {d: "M0 7L7 0", ...white}), x: make("path", {d: "M0 0L7 7M0 7L7 0", ...white}), ".": make("circle", {cx: 3.5, cy: 3.5, r: 1.2, fill: "#ffffffc0"})}[shape];
    stage.defs.append(make("pattern", {id, width: 7, height: 7, patternUnits: "userSpaceOnUse"}, inside ?? make("path", {d: "M0 7L7 0", ...white})));
    return id;
  }

  // Heat maps

  function cividis(share) {
    const place = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0)) * (CIVIDIS.length - 1);
    const [a, b] = [CIVIDIS[Math.floor(place)], CIVIDIS[Math.ceil(place)]].map(colour => [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16)));
    return `rgb(${a.map((one, n) => Math.round(one + (b[n] - one) * (place % 1))).join(",")})`;
  }
  function cells(stage, trace, group, n) {
    const known = trace.z.flat().filter(Number.isFinite);
    const low = trace.zmin ?? Math.min(...known), high = trace.zmax ?? Math.max(...known);
    const share = value => (value - low) / (high - low || 1);
    const [columns, rows] = [edges(stage.x, trace.x), edges(stage.y, trace.y)];
    const gap = trace.x.length > 20 ? 0 : 1;
    trace.z.forEach((line, i) => line.forEach((value, j) => {
      const [x0, x1] = columns[j], [y0, y1] = rows[i];
      const box = {x: x0, y: y0, width: Math.max(0.5, x1 - x0 - gap), height: Math.max(0.5, y1 - y0 - gap)};
      if (value === null || value === undefined) { group.append(make("rect", {...box, class: "cell none"})); return; }
      group.append(make("rect", {...box, class: "cell", fill: cividis(share(value))}));
      const shown = trace.texttemplate ? trace.text?.[i]?.[j] : "";
      if (shown) group.append(label(shown, (x0 + x1) / 2, (y0 + y1) / 2, {size: Math.min(12, stage.size), middle: true, room: x1 - x0, fill: share(value) > 0.55 ? "#000000" : "#ffffff"}));
      const values = {x: trace.x[j], y: trace.y[i], z: value, text: trace.text?.[i]?.[j], hovertext: trace.hovertext?.[i]?.[j]};
      const lines = hoverLines(trace, values);
      if (lines) stage.hits.push({x: (x0 + x1) / 2, y: (y0 + y1) / 2, lines, trace: `${n} ${i}`, box: [x0, y0, x1, y1]});
    }));
    if (stage.scale) colourScale(stage, trace, low, high);
  }
  function edges(axis, values) {
    const middles = values.map(axis.at);
    const half = n => (middles.length < 2 ? axis.step / 2 : Math.abs(middles[Math.min(n + 1, middles.length - 1)] - middles[Math.min(n, middles.length - 2)]) / 2);
    return middles.map((middle, n) => [middle - half(n), middle + half(n)]);
  }
  function colourScale(stage, trace, low, high) {
    const {frame, svg, size} = stage, left = frame.right + 14, length = Math.min(220, frame.bottom - frame.top - 18), top = frame.top + 16;
    for (let n = 0; n < 32; n++) svg.append(make("rect", {x: left, y: top + length * (1 - (n + 1) / 32), width: 11, height: length / 32 + 0.6, fill: cividis(n / 31)}));
    svg.append(label(trace.colorbar?.title?.text ?? "", left - 2, frame.top + 6, {size: size - 1, anchor: "start", room: 62}));
    for (const part of [0, 0.5, 1]) svg.append(label(escaped(numberText(low + part * (high - low), trace.colorbar?.tickformat)), left + 16, top + length * (1 - part), {size: size - 1, anchor: "start", room: 44, middle: true}));
  }

  // Sunbursts

  function ring(state, width, narrow) {
    const [trace] = state.figure.data;
    const side = Math.min(width, state.figure.layout.height ?? 440), middle = [width / 2, side / 2];
    const svg = make("svg", {class: "chart", width, height: side, viewBox: `0 0 ${Math.round(width)} ${Math.round(side)}`, "aria-hidden": "true"});
    const place = new Map(trace.ids.map((id, n) => [id, n]));
    const depth = n => (trace.parents[n] === "" ? 0 : 1 + depth(place.get(trace.parents[n])));
    const deepest = Math.max(...trace.ids.map((_, n) => depth(n)));
    const thick = (side / 2 - 6) / (deepest + 1), hits = [];
    const starts = new Map(), used = new Map();
    const group = make("g", {class: "trace"});
    svg.append(group);
    trace.ids.forEach((id, n) => {
      const parent = place.get(trace.parents[n]), level = depth(n), root = parent === undefined;
      const span = root ? 2 * Math.PI : (trace.values[n] / (trace.values[place.get(trace.ids[0])] || 1)) * 2 * Math.PI;
      const start = root ? -Math.PI / 2 : starts.get(parent) + (used.get(parent) ?? 0);
      if (!root) used.set(parent, (used.get(parent) ?? 0) + span);
      starts.set(n, start);
      const [inner, outer] = [level * thick, (level + 1) * thick], half = start + span / 2;
      const at = root ? middle : [middle[0] + Math.cos(half) * (inner + outer) / 2, middle[1] + Math.sin(half) * (inner + outer) / 2];
      const slice = make("path", {class: "slice", d: root ? outlineOf("circle", middle, outer) : sector(middle, inner, outer, start, span), "fill-rule": "evenodd",
        fill: trace.marker.colors[n], stroke: trace.marker.line?.color ?? "paper", "stroke-width": trace.marker.line?.width ?? 1});
      group.append(slice);
      const text = label(trace.text[n], ...at, {size: narrow ? 10 : 12, middle: true, fill: nth(trace.insidetextfont?.color, n) ?? "ink"});
      const size = narrow ? 10 : 12, rows = textLines(trace.text[n]);
      const wide = widest(rows, size), high = rows.length * size * 1.2, arc = span * (inner + outer) / 2;
      const level_ = Math.abs(Math.cos(half)) > 0.7 ? wide < thick - 6 && high < arc : wide < arc - 6 && high < thick;
      if (root || level_) group.append(text);
      else if (high < arc && wide < thick - 4) {
        const turn = (half * 180) / Math.PI;
        text.setAttribute("transform", `rotate(${Math.round(Math.cos(half) < 0 ? turn + 180 : turn)} ${p(at)})`);
        group.append(text);
      }
      const lines = hoverLines(trace, valuesAt(trace, n));
      if (lines) hits.push({x: at[0], y: at[1], lines, trace: level, slice});
    });
    return {svg, hits};
  }
  function slices() {} // drawn by `ring`, which has no axes
  function sector([mx, my], inner, outer, start, span) {
    if (span > 2 * Math.PI - 0.01) return outlineOf("circle", [mx, my], outer) + outlineOf("circle", [mx, my], inner);
    const end = start + span, large = span > Math.PI ? 1 : 0;
    const on = (radius, turn) => p([mx + radius * Math.cos(turn), my + radius * Math.sin(turn)]);
    return `M${on(inner, start)}L${on(outer, start)}A${outer} ${outer} 0 ${large} 1 ${on(outer, end)}L${on(inner, end)}A${inner} ${inner} 0 ${large} 0 ${on(inner, start)}Z`;
  }

  // The legend, above the plot, where nothing can cover it

  const groupOf = trace => trace.legendgroup ?? trace.name;
  function legend(state) {
    const {data, layout} = state.figure;
    const named = data.filter(trace => trace.name && trace.showlegend !== false && trace.mode !== "text" && trace.type !== "heatmap");
    if (layout.showlegend === false || named.length < 2 && !data.some(trace => trace.showlegend)) return [];
    const entries = named.map(trace => {
      const swatch = make("svg", {width: 30, height: 14, "aria-hidden": "true"});
      const colour = trace.line?.color ?? nth(trace.marker?.color, 0) ?? "ink";
      if (trace.type === "bar") swatch.append(make("rect", {x: 5, y: 1, width: 20, height: 12, fill: colour}));
      if (trace.type === "bar" && trace.marker?.pattern?.shape) {
        const defs = make("defs");
        swatch.append(defs, make("rect", {x: 5, y: 1, width: 20, height: 12, fill: `url(#${hatching({defs}, trace.marker.pattern.shape)})`}));
      }
      if ((trace.mode ?? "").includes("lines")) swatch.append(make("path", {d: "M1 7H29", fill: "none", stroke: colour, "stroke-width": trace.line?.width ?? 2, "stroke-dasharray": DASHES[trace.line?.dash]}));
      if ((trace.mode ?? "").includes("markers")) swatch.append(mark({...trace.marker, size: 9}, [15, 7], 0, nth(trace.marker?.color, 0) ?? colour));
      const button = node("button", "", swatch, node("span", "legendtext", textLines(trace.name).join(" ")));
      button.type = "button";
      button.setAttribute("aria-pressed", String(!state.hidden.has(groupOf(trace))));
      button.setAttribute("aria-label", `${textLines(trace.name).join(" ")}: show or hide`);
      button.addEventListener("click", () => {
        const group = groupOf(trace);
        state.hidden.has(group) ? state.hidden.delete(group) : state.hidden.add(group);
        state.draw();
        [...state.place.querySelectorAll(".legend button")][named.indexOf(trace)]?.focus();
      });
      return node("li", "", button);
    });
    return [node("ul", "legend", ...entries)];
  }

  // What is under the pointer, or reached by arrow keys

  function point(state, hit) {
    const {svg, tip, place} = state;
    svg.querySelector(".here")?.remove();
    tip.hidden = !hit;
    state.current = hit ?? null;
    if (!hit) return;
    svg.append(make("circle", {class: "here", cx: hit.x, cy: hit.y, r: 6}));
    tip.replaceChildren(...hit.lines.map(line => node("span", "", line)));
    const left = svg.offsetLeft ?? 0, top = svg.getBoundingClientRect().top - place.getBoundingClientRect().top;
    const room = place.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(0, Math.min(room, hit.x + left - tip.offsetWidth / 2))}px`;
    const above = top + hit.y - tip.offsetHeight - 12;
    tip.style.top = `${above < 0 ? top + hit.y + 14 : above}px`;
  }
  function nearest(state, event) {
    const box = state.svg.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    const slice = event.target.closest?.(".slice");
    if (slice) return state.hits.find(hit => hit.slice === slice);
    const inside = state.hits.filter(hit => hit.box && px >= hit.box[0] && px <= hit.box[2] && py >= hit.box[1] && py <= hit.box[3]);
    if (inside.length) return inside.at(-1);
    let best = null, least = NEAR;
    for (const hit of state.hits) {
      if (hit.box || hit.slice) continue;
      const far = Math.min(Math.hypot(hit.x - px, hit.y - py), hit.step ? fromLine([px, py], [hit.x, hit.y], hit.step) : Infinity);
      if (far < least) [best, least] = [hit, far];
    }
    return best;
  }
  function fromLine([px, py], [ax, ay], [bx, by]) {
    const length = (bx - ax) ** 2 + (by - ay) ** 2;
    const part = length ? Math.max(0, Math.min(1, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / length)) : 0;
    return Math.hypot(px - ax - part * (bx - ax), py - ay - part * (by - ay));
  }
  function walk(state, event) {
    const {hits} = state;
    const moves = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};
    if (event.key === "Escape") { point(state, null); return; }
    if (event.target !== state.place || !moves[event.key] || !hits.length) return;
    event.preventDefault();
    const [along, over] = moves[event.key];
    if (!state.current) { point(state, hits[0]); return; }
    const rows = [...new Set(hits.map(hit => hit.trace))], row = rows.indexOf(state.current.trace);
    const own = hits.filter(hit => hit.trace === rows[row]), at = own.indexOf(state.current);
    if (along) {
      point(state, own[Math.max(0, Math.min(own.length - 1, at + along * Math.max(1, Math.round(own.length / 40))))]);
    } else {
      const other = hits.filter(hit => hit.trace === rows[(row + over + rows.length) % rows.length]);
      point(state, other.reduce((best, hit) => (Math.abs(hit.x - state.current.x) < Math.abs(best.x - state.current.x) ? hit : best)));
    }
  }

  // One figure

  function draw(place, figure, {width, narrow}) {
    let state = states.get(place);
    if (!state) {
      const tip = node("div", "tip");
      tip.setAttribute("role", "status");
      state = {place, tip};
      states.set(place, state);
      place.tabIndex = 0;
      place.addEventListener("pointermove", event => point(state, nearest(state, event)));
      place.addEventListener("pointerleave", () => point(state, null));
      place.addEventListener("blur", () => point(state, null));
      place.addEventListener("keydown", event => walk(state, event));
    }
    if (state.figure !== figure) Object.assign(state, {figure, hidden: new Set(), current: null});
    state.draw = () => draw(place, figure, {width, narrow});
    const known = figure.data.every(trace => (trace.type ?? "scatter") in SHAPES);
    const {svg, hits} = !known ? {svg: node("p", "how", "This kind of figure is not drawn here; its data is below."), hits: []}
      : figure.data[0]?.type === "sunburst" ? ring(state, width, narrow) : plot(state, width, narrow);
    Object.assign(state, {svg, hits});
    state.tip.hidden = true;
    place.replaceChildren(...legend(state), svg, state.tip);
  }
  return draw;
})();
