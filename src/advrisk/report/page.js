// Draws the figures, hands out their data, explains terms, and makes the page fit for keyboards and paper. It requests
// nothing from anywhere.
(() => {
  "use strict";
  const PAPER = {".pairs": 328, ".answer": 680, "body": 680}; // pixels that a figure has across a printed page
  const NARROW = 480, LEAST = 100;
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  let printing = false;

  // Figures: one that is folded away is drawn once it is opened, and each anew once its width changes

  const widths = new WeakMap();
  function drawOne(place) {
    if (!place.checkVisibility() || place.clientWidth < LEAST) return; // before it has its place, too
    const width = printing ? PAPER[Object.keys(PAPER).find(within => place.closest(within))] : place.clientWidth;
    widths.set(place, place.clientWidth);
    drawChart(place, figures[place.dataset.figure], {width, narrow: width < NARROW || (!printing && innerWidth < NARROW)});
  }
  function draw(within = document) {
    for (const place of within.querySelectorAll("[data-figure]")) drawOne(place);
  }
  const resized = new ResizeObserver(entries => {
    for (const {target} of entries) if (!printing && target.clientWidth !== widths.get(target)) drawOne(target);
  });
  for (const place of document.querySelectorAll("[data-figure]")) resized.observe(place);
  for (const choice of document.querySelectorAll("select[data-shows]")) {
    const place = document.getElementById(choice.dataset.shows);
    const chosen = document.createElement("span"); // on paper nothing can be chosen
    chosen.className = "chosen";
    choice.after(chosen);
    const show = () => { place.dataset.figure = choice.value; chosen.textContent = choice.selectedOptions[0].textContent; };
    choice.addEventListener("change", () => { show(); drawOne(place); });
    show(); // a browser may remember what was chosen before
  }

  // Contents: what is asked for is unfolded, and what is read is marked

  const links = [...document.querySelectorAll("nav a")];
  const sectionOf = link => document.getElementById(decodeURIComponent(link.hash.slice(1)));
  function unfold(target) {
    for (let one = target?.closest("details") ?? target?.querySelector("details.question"); one; one = one.parentElement?.closest("details")) one.open = true;
  }
  function arrive() {
    const target = location.hash && sectionOf(location);
    if (!target) return;
    unfold(target);
    target.scrollIntoView();
  }
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", () => unfold(sectionOf(link)));
  }
  function mark() {
    const above = links.filter(link => sectionOf(link).getBoundingClientRect().top < innerHeight / 3);
    const ended = scrollY > 0 && innerHeight + scrollY >= root.scrollHeight - 2;
    const here = (ended ? links : above).at(-1) ?? links[0];
    for (const link of links) {
      if (link === here && !link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        const list = link.closest("ul");
        if (list.scrollWidth > list.clientWidth) list.scrollLeft = link.parentElement.offsetLeft - list.offsetLeft - 40;
      } else if (link !== here) {
        link.removeAttribute("aria-current");
      }
    }
  }
  const all = document.getElementById("unfold");
  all.addEventListener("click", () => {
    const open = all.getAttribute("aria-pressed") === "false";
    all.setAttribute("aria-pressed", String(open));
    all.textContent = open ? "Fold all" : "Unfold all";
    all.setAttribute("aria-label", `${all.textContent} questions`);
    for (const one of document.querySelectorAll("details.question")) one.open = open;
  });
  addEventListener("hashchange", arrive);
  addEventListener("scroll", mark, {passive: true});

  // Terms: the first of each in a section leads to the glossary, and explains itself

  function explain() {
    const terms = [...document.querySelectorAll(".glossary dt")].map(term => ({id: term.id, pattern: new RegExp(term.dataset.pattern), meaning: term.nextElementSibling.firstChild.textContent.trim()}));
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.id = "meaning";
    tip.setAttribute("role", "tooltip");
    tip.hidden = true;
    document.body.append(tip);
    const show = link => {
      tip.textContent = link.dataset.meaning;
      tip.hidden = false;
      const box = link.getBoundingClientRect();
      tip.style.left = `${Math.max(8, Math.min(box.left, root.clientWidth - tip.offsetWidth - 8)) + scrollX}px`;
      tip.style.top = `${(box.bottom + tip.offsetHeight + 12 > innerHeight ? box.top - tip.offsetHeight - 6 : box.bottom + 6) + scrollY}px`;
    };
    const hide = () => { tip.hidden = true; };
    for (const section of document.querySelectorAll("main > section:not(#glossary)")) {
      const left = new Set(terms);
      const inside = document.createTreeWalker(section, NodeFilter.SHOW_TEXT, node =>
        node.parentElement.closest("p, li, dt, dd, caption, thead th") && !node.parentElement.closest("code, pre, a, button, summary, h3, svg, .figure, .legend, .caption, .badge, .clip") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP);
      const texts = [];
      while (inside.nextNode()) texts.push(inside.currentNode);
      for (const text of texts) {
        let rest = text;
        for (;;) {
          const next = [...left].map(term => ({term, match: term.pattern.exec(rest.data)})).filter(one => one.match).sort((a, b) => a.match.index - b.match.index)[0];
          if (!next) break;
          left.delete(next.term);
          const word = rest.splitText(next.match.index);
          rest = word.splitText(next.match[0].length);
          const link = document.createElement("a");
          link.className = "term";
          link.href = `#${next.term.id}`;
          link.dataset.meaning = next.term.meaning;
          link.setAttribute("aria-describedby", tip.id);
          word.replaceWith(link);
          link.append(word);
          link.addEventListener("pointerenter", () => show(link));
          link.addEventListener("focus", () => show(link));
          link.addEventListener("pointerleave", hide);
          link.addEventListener("blur", hide);
          link.addEventListener("click", () => { hide(); unfold(document.getElementById(next.term.id)); });
        }
      }
    }
    addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
  }

  // Data to take away

  const isNumber = text => text.trim() !== "" && Number.isFinite(Number(text));
  function cell(value) {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (/^[=+\-@\t\r]/.test(text) && !isNumber(text)) text = `'${text}`; // a spreadsheet would take it for a formula
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
  const csv = rows => rows.map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
  const plain = text => text.replaceAll("<br>", " ").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&#37;", "%").replaceAll("&amp;", "&");
  function offer(place, label, name, rows) {
    const tools = document.createElement("p");
    const button = document.createElement("button");
    tools.className = "tools";
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-label", `${label}: download ${name}`);
    button.addEventListener("click", () => save(name, csv(rows())));
    tools.append(button);
    place.after(tools);
  }
  function save(name, text) {
    const link = document.createElement("a");
    const whole = `${document.body.dataset.name} ${name}`;
    link.download = `${whole.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80)}.csv`;
    link.href = URL.createObjectURL(new Blob([text], {type: "text/csv;charset=utf-8"}));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
  function traceRows(trace, across, up) {
    if (trace.mode === "text") return [];
    if (trace.type === "heatmap") {
      return trace.z.flatMap((line, i) => line.map((value, j) => ({[across]: trace.x[j], [up]: trace.y[i], value})));
    }
    if (trace.type === "sunburst") {
      const whole = trace.values[0];
      return trace.ids.map((branch, i) => ({branch, parent: trace.parents[i], share: trace.values[i] / whole}));
    }
    const {series = plain(trace.name ?? ""), part} = trace.meta ?? {};
    return trace.x.map((x, i) => {
      const row = {series, ...(part && {part}), [across]: x, [up]: trace.y[i]};
      const {array, arrayminus} = trace.error_x ?? {};
      return array ? {...row, low: x - arrayminus[i], high: x + array[i]} : row;
    });
  }
  function figureRows(figure) {
    const across = plain(figure.layout.xaxis?.title?.text ?? "across");
    const up = plain(figure.layout.yaxis?.title?.text ?? "up");
    const found = figure.data.flatMap(trace => traceRows(trace, across, up));
    const columns = [...new Set(found.flatMap(row => Object.keys(row)))];
    return [columns, ...found.map(row => columns.map(name => row[name]))];
  }
  const said = place => [...place.childNodes].map(node => node.textContent.trim()).filter(Boolean).join(" ").replace(/\s+/g, " ");
  const tableRows = table => [...table.rows].map(row => [...row.cells].map(said));
  for (const place of document.querySelectorAll(".figure")) {
    const holder = place.parentElement.classList.contains("scroll") ? place.parentElement : place;
    offer(holder, "CSV", `figure ${place.dataset.figure}`, () => figureRows(figures[place.dataset.figure]));
  }
  for (const table of document.querySelectorAll("table")) {
    const name = table.caption?.textContent.trim() || "table";
    offer(table.closest(".scroll"), "CSV", name, () => tableRows(table));
  }

  // Phones: rows of a wide table become cards, each number below its name; to a screen reader it stays a table

  for (const table of document.querySelectorAll("table.cards")) {
    const names = [...table.tHead.rows[0].cells].map(said);
    table.setAttribute("role", "table");
    for (const group of [table.tHead, ...table.tBodies]) group.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      for (const cell of row.cells) {
        cell.setAttribute("role", cell.scope === "col" ? "columnheader" : cell.scope === "row" ? "rowheader" : "cell");
        cell.dataset.label = names[cell.cellIndex];
      }
    }
    table.classList.add("labelled");
  }

  // Keyboards: what can be scrolled sideways can be reached, and says so

  function reachable() {
    for (const place of document.querySelectorAll(".scroll")) {
      const wide = place.scrollWidth > place.clientWidth + 1;
      const hint = place.previousElementSibling?.classList.contains("hint") ? place.previousElementSibling : null;
      if (wide && !hint) {
        const told = document.createElement("p");
        told.className = "hint";
        told.textContent = "Wider than the page: scroll it sideways.";
        place.before(told);
      }
      if (!wide && hint) hint.remove();
      if (wide) {
        place.tabIndex = 0;
        place.setAttribute("role", "region");
        place.setAttribute("aria-label", place.querySelector("caption")?.textContent.trim() || "A wide figure");
      } else {
        place.removeAttribute("tabindex");
        place.removeAttribute("role");
        place.removeAttribute("aria-label");
      }
    }
  }

  // Paper: everything is unfolded, light, and as wide as the page

  let closed = [];
  addEventListener("beforeprint", () => {
    printing = true;
    root.classList.add("printing");
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
    draw();
  });
  addEventListener("afterprint", () => {
    printing = false;
    root.classList.remove("printing");
    for (const one of closed) one.open = false;
    draw();
  });

  for (const one of document.querySelectorAll("details")) {
    one.addEventListener("toggle", () => { if (!printing) { draw(one); reachable(); mark(); } });
  }
  explain();
  arrive();
  draw();
  reachable();
  mark();
  root.classList.add("drawn");
  addEventListener("resize", reachable);
})();
