// The panels of the history: figures, pictures, allowances and tables.

import { KeyedList, el, setAttribute, setHidden, setText } from "./dom.js";
import { NOTHING, duration, milliseconds, moment, percent, share, tokens, whole } from "./format.js";
import { RANGES, periodName } from "./periods.js";
import { CachePlot, FirstTextPlot, RequestsPlot, TokensPlot, WindowPlot, modelWords } from "./plots.js";

function panel(title, ...more) {
  const id = `history-${title.toLowerCase().replace(/\W+/g, "-")}`;
  const head = el("h2", { id }, title);
  const readout = el("p", { class: "readout quiet" });
  const node = el("section", { class: "panel", "aria-labelledby": id }, el("header", {}, head, readout), ...more);
  return { node, head, readout };
}

export class HistoryPanels {
  constructor(place) {
    this.figures = new Figures();
    const tokensPanel = panel("Tokens by day and model");
    this.title = tokensPanel.head;
    const requests = panel("Requests and failures");
    const first = panel("Time to the first text", keyOf("half within", "middle", "95% within", "upper"));
    const cached = panel("Input from the cache");
    this.plots = [
      new TokensPlot(plotIn(tokensPanel, "wide-plot"), tokensPanel.readout),
      new RequestsPlot(plotIn(requests), requests.readout),
      new FirstTextPlot(plotIn(first), first.readout),
      new CachePlot(plotIn(cached), cached.readout),
    ];
    this.allowances = new PastAllowances();
    this.models = new UsageTable("By model", "Model");
    this.periods = new UsageTable("By day", "Day");
    this.used = [this.figures.element, tokensPanel.node, el("div", { class: "trio" }, requests.node, first.node, cached.node)];
    this.tables = [this.models.element, this.periods.element];
    this.element = el("div", { class: "history-panels", hidden: true }, ...this.used, this.allowances.element, ...this.tables);
    place.append(this.element);
  }

  // none  no request ended in the time: allowances alone are shown
  update(told, none) {
    for (const node of [...this.used, ...this.tables]) setHidden(node, none);
    const { unit } = RANGES[told.range];
    setText(this.title, `Tokens by ${unit} and model`);
    this.figures.update(told);
    for (const plot of this.plots) plot.update(told);
    this.allowances.update(told);
    this.models.update("By model", told.models.map((row) => ({ ...row, usage: row.whole })));
    const periods = told.periods.map((usage, at) => ({ key: String(told.edges[at]), provider: "", model: periodName(told.range, told.edges, at), name: "", usage }));
    this.periods.update(`By ${unit}`, periods.filter(({ usage }) => usage.requests > 0).reverse());
  }
}

function plotIn({ node }, name = "plot") {
  const place = el("div", { class: name });
  node.append(place);
  return place;
}

// What the lines of a picture mean.
function keyOf(...parts) {
  const items = [];
  for (let at = 0; at < parts.length; at += 2) items.push(el("span", {}, el("span", { class: `sample ${parts[at + 1]}`, "aria-hidden": "true" }), parts[at]));
  return el("p", { class: "plot-key quiet small" }, ...items);
}

// ---- figures

// title -> [figure, words below it]
const FIGURES = {
  Requests: (told) => [whole(told.whole.requests), busiest(told, "requests", whole)],
  Failed: ({ whole: sum }) => [whole(sum.failed), failedWords(sum)],
  Input: (told) => [tokens(told.whole.input), busiest(told, "input", tokens)],
  "From the cache": ({ whole: sum }) => [share(sum.cached_share), sum.cacheable > 0 ? `${tokens(sum.cached)} of ${sum.cacheable < sum.input ? `the ${tokens(sum.cacheable)} that services report` : `${tokens(sum.cacheable)} input`}` : "no service reports it"],
  Output: ({ whole: sum }) => [tokens(sum.output), sum.thinking > 0 ? `${tokens(sum.thinking)} of it thinking` : ""],
  "First text": ({ whole: sum }) => [sum.first_p50 === null ? NOTHING : milliseconds(sum.first_p50), sum.first_p95 === null ? "" : `95% within ${milliseconds(sum.first_p95)}`],
};

// The period with the most of something.
function busiest({ periods, edges, range }, name, words) {
  const most = Math.max(...periods.map((each) => each[name]));
  const at = periods.findIndex((each) => each[name] === most);
  return most > 0 ? `most ${RANGES[range].unit === "day" ? "on" : "at"} ${periodName(range, edges, at)}: ${words(most)}` : "";
}

function failedWords({ requests, failed, abandoned }) {
  const part = failed > 0 ? `${((100 * failed) / requests).toFixed(1)}% of all` : "";
  const left = abandoned > 0 ? `${whole(abandoned)} left by the client` : "";
  return [part, left].filter(Boolean).join(", ");
}

class Figures {
  constructor() {
    this.parts = Object.keys(FIGURES).map((name) => ({ name, number: el("dd", { class: "figure" }), words: el("dd", { class: "quiet small" }) }));
    const list = el("dl", { class: "figures" }, ...this.parts.map(({ name, number, words }) => el("div", {}, el("dt", { class: "quiet" }, name), number, words)));
    this.element = el("section", { class: "panel", "aria-label": "Sums" }, list);
  }

  update(told) {
    for (const { name, number, words } of this.parts) {
      const [text, below] = FIGURES[name](told);
      setText(number, text);
      setText(words, below);
    }
  }
}

// ---- allowances, a small picture for each window

class PastAllowances {
  constructor() {
    const { node } = panel("Allowances over time");
    this.element = node;
    const list = el("ul", { class: "past-windows" });
    this.list = new KeyedList(list, makeWindow, (item, row) => fillWindow(item, row));
    this.empty = el("p", { class: "empty quiet" }, "No service reported an allowance in this time.");
    node.append(list, this.empty);
  }

  update(told) {
    this.list.update(told.windows.map((row) => ({ ...row, told })), (row) => row.key);
    setHidden(this.empty, told.windows.length > 0);
  }
}

function makeWindow() {
  const chip = el("span", { class: "chip small" });
  const name = el("span", { class: "cut" });
  const readout = el("strong", { class: "readout number" });
  const place = el("div", { class: "small-plot" });
  const [pace, reset] = [el("span"), el("span", { class: "as-of" })];
  const node = el("li", {}, el("p", { class: "window-head" }, el("span", { class: "model" }, chip, name), readout), place, el("p", { class: "window-foot quiet small" }, pace, reset));
  node.parts = { chip, name, pace, reset, plot: new WindowPlot(place, readout) };
  return node;
}

function fillWindow(node, { told, ...row }) {
  const { chip, name, pace, reset, plot } = node.parts;
  const words = [row.window, row.limit].filter(Boolean).join(" · ");
  setText(chip, row.account);
  setAttribute(chip, "data-provider", row.account.split("/")[0]);
  setText(name, words);
  setAttribute(name, "title", words);
  const over = row.resets_at !== null && row.resets_at <= told.now;
  const used = row.samples.at(-1)[1];
  const [tone, lasts] = paceOf(row, used, over, told.now);
  setAttribute(node, "data-tone", tone || null);
  setText(pace, lasts);
  setText(reset, over || row.resets_at === null ? "" : `resets in ${duration(row.resets_at - told.now)}`);
  setAttribute(reset, "title", row.resets_at === null ? null : moment(row.resets_at, told.now));
  const shown = over ? NOTHING : percent(used);
  plot.update({ samples: row.samples, name: `${row.account} ${words}` }, told, shown, [over ? "" : `${shown} used`, lasts].filter(Boolean).join(", "));
}

// [tone, words]: how long it lasts, as far as it is known.
function paceOf({ pace, spent_at: spent, resets_at: resets }, used, over, now) {
  if (over) return ["quiet", `nothing reported since its reset at ${moment(resets, now)}`];
  if (used >= 100) return ["bad", "used up"];
  if (spent !== null) return ["wait", `spent in about ${duration(spent - now)} at this pace`];
  if (pace === null) return ["", "no pace is known yet"];
  return ["", pace > 0 ? "lasts until its reset at this pace" : "nothing used in the last 3 hours"];
}

// ---- numbers, which are also what the pictures say to those who do not see them

const COLUMNS = {
  Requests: (usage) => whole(usage.requests),
  Failed: (usage) => (usage.failed > 0 ? whole(usage.failed) : NOTHING),
  In: (usage) => tokens(usage.input),
  Cached: (usage) => share(usage.cached_share),
  Out: (usage) => tokens(usage.output),
  "First text": (usage) => (usage.first_p50 === null ? NOTHING : milliseconds(usage.first_p50)),
  "95% within": (usage) => (usage.first_p95 === null ? NOTHING : milliseconds(usage.first_p95)),
};

class UsageTable {
  constructor(title, first) {
    this.head = el("h2", {}, title);
    this.count = el("span", { class: "quiet" });
    const heads = [first, ...Object.keys(COLUMNS)].map((name, at) => el("th", { role: "columnheader", scope: "col", class: at === 0 ? "what" : "num" }, name));
    const body = el("tbody", { role: "rowgroup" });
    this.table = el("table", { role: "table", class: "usage" }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)), body);
    this.list = new KeyedList(body, makeUsageRow, fillUsageRow);
    this.element = el("details", { class: "panel usage-panel", open: first === "Model" }, el("summary", {}, this.head, this.count), this.table);
  }

  update(title, rows) {
    setText(this.head, title);
    setAttribute(this.table, "aria-label", title);
    setText(this.count, whole(rows.reduce((sum, row) => sum + (row.others ?? 1), 0)));
    this.list.update(rows, (row) => row.key);
  }
}

function makeUsageRow() {
  const name = modelWords();
  const cells = Object.keys(COLUMNS).map((label) => el("td", { role: "cell", class: "num", "data-label": label }));
  const node = el("tr", { role: "row" }, el("th", { role: "rowheader", scope: "row", class: "what" }, name), ...cells);
  node.parts = { name, cells };
  return node;
}

function fillUsageRow(node, row) {
  node.parts.name.fill(row);
  Object.values(COLUMNS).forEach((words, at) => setText(node.parts.cells[at], words(row.usage)));
}
