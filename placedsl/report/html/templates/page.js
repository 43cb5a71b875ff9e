"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const island = (id) => byId(id) && JSON.parse(byId(id).textContent);
  const answer = island("answer");

  // Dark and light: as the system says, until the button is pressed.
  const root = document.documentElement, theme = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const pressed = () => theme.setAttribute("aria-pressed", String(dark()));
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; pressed(); });
  system.addEventListener("change", pressed);
  pressed();

  // Copy buttons: what is in the element, without line numbers and notes.
  const textOf = (id) => {
    const copy = byId(id).cloneNode(true);
    copy.querySelectorAll("[data-no-copy]").forEach((part) => part.remove());
    return id === "answer" ? JSON.stringify(answer, null, 2) + "\n" : copy.textContent;
  };
  const copyBySelection = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { return copyBySelection(text); }
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const done = await copy(textOf(button.dataset.copy));
      byId("copied").textContent = done ? "Copied." : "The browser does not allow copying.";
      const label = button.textContent;
      button.textContent = done ? "Copied" : "Not allowed";
      setTimeout(() => { button.textContent = label; }, 1200);
    });
  }

  // The table of nodes: texts only, the first rows that match.
  const most = 200, search = byId("search");
  if (search) {
    const bytes = (size) => {
      if (size === undefined) return "–";
      const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(size, 1)) / 10)));
      return `${+(size / 1024 ** power).toPrecision(4)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
    };
    const rows = answer.plan.stages.flatMap((stage) => stage.nodes.map((node) => {
      const about = Object.values(node.attributes || {}).concat(node.operator ?? [], node.count ? `${node.count} nodes` : []);
      const name = node.name === undefined ? String(node.id) : `${node.id} (${node.name})`;
      const cells = [name, about.join(", "), stage.stage, stage.devices.join(", "), bytes(node.memory)];
      return { cells, text: cells.join(" ").toLowerCase() };
    }));
    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = rows.filter((row) => words.every((word) => row.text.includes(word)));
      byId("node-table").tBodies[0].replaceChildren(...found.slice(0, most).map((row) => {
        const line = document.createElement("tr");
        row.cells.forEach((text, k) => {
          const cell = line.insertCell();
          cell.textContent = text;
          if (k === 2 || k === 4) cell.className = "number";
        });
        return line;
      }));
      const shown = found.length > most ? `, the first ${most} are shown` : "";
      byId("found").textContent = `${found.length} of ${rows.length}${shown}`;
    };
    search.addEventListener("input", show);
    show();
  }

  // The timeline: a window [from, from + span] of the whole, as shares of it.
  const chart = island("chart"), plot = byId("plot");
  if (chart) {
    const grid = 1e6, wide = 960, tall = 26, fine = 1e4;
    const svg = plot.querySelector("svg"), inner = svg.querySelector("svg"), ns = "http://www.w3.org/2000/svg";
    let from = 0, span = 1;
    const time = (share) => {
      const value = share * chart.end;
      if (!chart.unit) return String(+value.toPrecision(5));
      const [unit, size] = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]].find(([, s]) => Math.abs(value) >= s) || ["s", 1];
      return `${+(value / size).toPrecision(5)} ${unit}`;
    };
    const text = (parent, x, y, words, kind) => {
      const made = document.createElementNS(ns, "text");
      made.setAttribute("x", x);
      made.setAttribute("y", y);
      made.setAttribute("text-anchor", "middle");
      made.setAttribute(kind ? "class" : "fill", kind || "currentColor");
      made.textContent = words;
      parent.append(made);
    };
    const draw = () => {
      span = Math.min(1, Math.max(1 / fine, span));
      from = Math.min(1 - span, Math.max(0, from));
      const scale = wide / grid / span;
      svg.querySelector(".bars").setAttribute("transform", `translate(${-from * wide / span} 0) scale(${scale} 1)`);
      const labels = svg.querySelector(".labels"), ticks = svg.querySelector(".ticks");
      labels.replaceChildren();
      chart.rows.forEach((row, y) => {
        if (row.lanes > 1) return;
        for (const [left, length, kind, , word] of row.bars) {
          const words = chart.words[word], x = (left - from * grid) * scale, width = length * scale;
          if (x + width < 0 || x > wide || chart.kinds[kind] === "receive" || width < 7 * words.length + 4) continue;
          text(labels, x + width / 2, tall * (y + 0.5) + 4, words, "f-on-part");
        }
      });
      ticks.replaceChildren();
      for (let k = 0; k <= 6; k++) text(ticks, wide * k / 6, 0, time(from + span * k / 6));
      plot.dataset.from = from;
      plot.dataset.span = span;
    };
    const zoom = (factor, at = 0.5) => { from += at * span * (1 - factor); span *= factor; draw(); };
    const acts = {
      in: () => zoom(0.5), out: () => zoom(2), all: () => { from = 0; span = 1; draw(); },
      left: () => { from -= span / 4; draw(); }, right: () => { from += span / 4; draw(); },
    };
    const keys = { "+": "in", "=": "in", "-": "out", "0": "all", Home: "all", ArrowLeft: "left", ArrowRight: "right" };
    document.querySelectorAll("[data-zoom]").forEach((b) => b.addEventListener("click", acts[b.dataset.zoom]));
    plot.addEventListener("keydown", (event) => {
      const act = !event.ctrlKey && !event.metaKey && !event.altKey && acts[keys[event.key]];
      if (act) { event.preventDefault(); act(); }
    });
    // Where a pointer is: share of the width, and row.
    const at = (event) => {
      const box = inner.getBoundingClientRect(), unit = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      return [(event.clientX - box.left) / (wide * unit), Math.floor((event.clientY - box.top) / (tall * unit))];
    };
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(Math.exp(event.deltaY / 300), Math.min(1, Math.max(0, at(event)[0])));
    }, { passive: false });
    let dragged = null;
    plot.addEventListener("pointerdown", (event) => { dragged = [at(event)[0], from]; });
    addEventListener("pointerup", () => { dragged = null; });
    plot.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (dragged) { from = dragged[1] + (dragged[0] - x) * span; draw(); return; }
      const where = (from + x * span) * grid, row = chart.rows[y];
      const bar = row && x >= 0 && row.bars.findLast(([left, length]) => left <= where && where <= left + length);
      const what = { receive: "moving tensors", weights: "exchange of weights" };
      byId("bar").textContent = bar ? `${row.name}: ${chart.words[bar[4]]}, ${
        what[chart.kinds[bar[2]]] || chart.kinds[bar[2]].replace("2", "").replace("compute", "forward")}, ${
        time(bar[0] / grid)} to ${time((bar[0] + bar[1]) / grid)}` : "";
    });
    draw();
  }

  // Whatever is folded is printed too.
  const folded = [];
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details:not([open])").forEach((d) => { d.open = true; folded.push(d); });
  });
  addEventListener("afterprint", () => { folded.splice(0).forEach((d) => { d.open = false; }); });
})();
