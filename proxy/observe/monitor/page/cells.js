// Small parts that lists and details share. Each is made once and gives a function that fills it, again and again.

import { el, setAttribute, setHidden, setStyle, setText, svg } from "./dom.js";
import { modelName, share } from "./format.js";
import { cachedShare, isLost } from "./model.js";

// A shape for each status, so that none depends on colour alone. In a box of 16.
const RING = "M8 3.2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 0 0 0-9.6z";
const STATUSES = {
  started: ["wait", RING],
  selected: ["wait", `${RING}M8 7v2`],
  compacting: ["compact", "M3 4l5 3l5-3M3 12l5-3l5 3"],
  upstream: ["up", "M8 13V4M4.2 7.4L8 3.6l3.8 3.8"],
  streaming: ["stream", "M2.5 9.5c1.8-5 3.6-5 5.5-1.5s3.7 3.5 5.5-1.5"],
  completed: ["ok", "M3.5 8.6l3 3l6-6.8"],
  failed: ["bad", "M4 4l8 8M12 4l-8 8"],
  abandoned: ["quiet", "M3.5 8h9"],
  info: ["up", "M8 7.2v4.3M8 4.4v.2"],
  warn: ["wait", "M8 2.8l5.8 10.2H2.2zM8 6.6v2.8M8 11.2v.1"],
  error: ["bad", "M8 3.5v5.5M8 12v.2"],
};
const UNKNOWN = ["quiet", RING];

function shapeOf(path) {
  return svg("svg", { viewBox: "0 0 16 16", width: 14, height: 14, class: "shape", "aria-hidden": "true" }, svg("path", { d: path }));
}

export function statusPart() {
  const path = svg("path");
  const shape = svg("svg", { viewBox: "0 0 16 16", width: 14, height: 14, class: "shape", "aria-hidden": "true" }, path);
  const word = el("span");
  const node = el("span", { class: "status" }, shape, word);
  const fill = (status, words = status) => {
    const [tone, drawn] = STATUSES[status] ?? UNKNOWN;
    setAttribute(node, "data-tone", tone);
    setAttribute(node, "data-status", status);
    setAttribute(path, "d", drawn);
    setText(word, words || "unknown");
  };
  return [node, fill];
}

export function warning(words) {
  return el("span", { class: "status small" }, shapeOf(STATUSES.warn[1]), words);
}

// Provider and the model that serves in one line; below it effort, and what the client asked for where that differs.
export function modelPart() {
  const provider = el("span", { class: "chip small" });
  const name = el("span", { class: "cut model-name" });
  const asked = el("span", { class: "under quiet small cut" });
  const node = el("span", { class: "stack" }, el("span", { class: "model" }, provider, name), asked);
  const fill = (row) => {
    setText(provider, row.provider ?? "?");
    setAttribute(provider, "data-provider", row.provider ?? "");
    setAttribute(provider, "title", row.provider ? null : "No provider was chosen");
    setText(name, row.resolved || row.requested || "no model yet");
    setAttribute(node, "title", modelName(row) || null);
    const other = row.requested && row.resolved && row.requested !== row.resolved;
    setText(asked, [row.effort ? `${row.effort} effort` : "", other ? `for ${row.requested}` : ""].filter(Boolean).join(" · "));
  };
  return [node, fill];
}

// The cached share as a bar, with a mark where it was expected.
export function cacheBar() {
  const bar = el("span", { class: "fill" });
  const mark = el("span", { class: "tick" });
  const node = el("span", { class: "bar cache-bar", "aria-hidden": "true" }, bar, mark);
  const fill = (cached, expected, lost) => {
    setStyle(bar, "width", `${Math.round(Math.min(1, Math.max(0, cached ?? 0)) * 100)}%`);
    setHidden(mark, expected === null);
    setStyle(mark, "left", `${Math.round(Math.min(1, Math.max(0, expected ?? 0)) * 100)}%`);
    setAttribute(node, "data-tone", lost ? "wait" : "ok");
  };
  return [node, fill];
}

export function cacheWords(row) {
  const cached = cachedShare(row);
  if (cached === null) return "not known";
  const expected = row.cache.expected === null ? "" : `, ${share(row.cache.expected)} expected`;
  return `${share(cached)} of the input came from the cache${expected}${row.cache.reason ? `: ${row.cache.reason}` : ""}`;
}

export function cachePart() {
  const [bar, fillBar] = cacheBar();
  const number = el("span", { class: "number" });
  const reason = el("span", { class: "reason small cut" });
  const node = el("span", { class: "cache" }, number, bar, reason);
  const fill = (row) => {
    const cached = cachedShare(row);
    setText(number, cached === null ? "–" : share(cached));
    setHidden(bar, cached === null);
    fillBar(cached, row.cache.expected, isLost(row.cache));
    setText(reason, row.cache.reason);
    setHidden(reason, !row.cache.reason);
    setAttribute(node, "title", cacheWords(row));
  };
  return [node, fill];
}

const CELLS = 24;
const CELL_W = 4;
const SPARK_H = 18;
// A few tokens shall not look like many.
const LEAST_FULL = 400;

// Bars of equal time, the newest at the right.
export function sparkPath(history, cells = CELLS) {
  const values = history.slice(-cells);
  const full = Math.max(LEAST_FULL, ...values);
  const start = cells - values.length;
  return values
    .map((value, index) => {
      const height = value > 0 ? Math.max(1.5, (value / full) * SPARK_H) : 0;
      return height ? `M${(start + index) * CELL_W} ${SPARK_H}v${-height.toFixed(1)}h${CELL_W - 1}V${SPARK_H}z` : "";
    })
    .join("");
}

export function sparkPart(cells = CELLS) {
  const path = svg("path");
  const width = cells * CELL_W;
  const base = svg("path", { class: "base", d: `M0 ${SPARK_H + 0.5}H${width - 1}` });
  const node = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${SPARK_H + 1}`, preserveAspectRatio: "none", role: "img" }, base, path);
  const fill = (history) => {
    setAttribute(path, "d", sparkPath(history, cells));
    const sum = history.slice(-cells).reduce((all, each) => all + each, 0);
    setAttribute(node, "aria-label", `${sum} output tokens in the last ${cells * 10} seconds`);
  };
  return [node, fill];
}

// A text that can be taken along.
export function copyButton(text, label) {
  const button = el("button", { type: "button", class: "copy small", "aria-label": label }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}
