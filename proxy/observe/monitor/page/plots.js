// The pictures of the history: each draws one answer of the proxy (`overview` in history.js). They are our own code:
// with picture.js some 20 kB, where a small library (uPlot) has 53 kB and draws neither stacked bars nor for a reader.

import { KeyedList, el, setAttribute, setText, svg } from "./dom.js";
import { NOTHING, count, milliseconds, percent, share, tokens, whole } from "./format.js";
import { evenCeiling, niceCeiling } from "./model.js";
import { marksOf, momentName, periodName } from "./periods.js";
import { H, Picture, W, barsOf, barsPath, gridLine } from "./picture.js";

// Models that have a colour; the others are one.
const MOST_COLOURS = 5;
// Of so many a summary says how much they used.
const MOST_NAMED = 3;
// So many bars need the room of the gaps between their parts on a narrow page.
const MANY_BARS = 40;
// A curve that is not as wide is a dot.
const SEEN = 0.02 * W;
const UNKEPT = "nothing is kept";
// Places of a curve at which its value can be read.
const PLACES = 120;
// The picture reaches almost to its upper line.
const FULL = 0.98;

const heightOf = (value, top) => (value / top) * H * FULL;
const highest = (values) => Math.max(0, ...values.filter((each) => each !== null));

function grid() {
  return [gridLine(H * (1 - FULL)), gridLine(H / 2), svg("path", { class: "axis", d: `M0 ${H - 0.5}H${W}` })];
}

// What is around the shapes. An axis means nothing where nothing was reported (`some` is false).
function frame(picture, told, top, words, some = true) {
  picture.level(some ? [[1 - FULL, words(top)], [0.5, words(top / 2)], [FULL, "0"]] : []);
  setText(picture.empty, some ? "" : "Nothing was reported");
  picture.mark(marksOf(told.range, told.edges));
  picture.shade(unkept(told) / told.periods.length);
}

// How many periods were over before the oldest request that is kept.
function unkept({ edges, kept_since: since }) {
  return since === null ? 0 : edges.slice(1).filter((end) => end <= since).length;
}

// The words of each period with its name.
function placesOf(told, words) {
  const before = unkept(told);
  return told.periods.map((period, at) => `${periodName(told.range, told.edges, at)}  ${at < before ? UNKEPT : words(period, at)}`);
}

function sinceWords(told) {
  return unkept(told) > 0 ? `; ${UNKEPT} of the time before ${momentName(told.range, told.kept_since)}` : "";
}

// ---- tokens, a colour for each model

export class TokensPlot {
  #slots = new Map();
  #at = null;
  #rows = [];

  constructor(place, readout) {
    this.picture = new Picture(place, readout, "Tokens", (at) => this.#show(at));
    this.paths = [...Array(MOST_COLOURS + 1)].map((_, slot) => svg("path", { class: "stack-part", "data-slot": slot }));
    this.picture.drawing.append(...grid(), ...this.paths);
    const list = el("ul", { class: "stack-legend" });
    this.legend = new KeyedList(list, makeLegendRow, (node, row) => fillLegendRow(node, row, this.#at));
    place.append(list);
  }

  update(told) {
    const { models, periods } = told;
    this.#rows = this.#coloured(models, periods.length);
    const totals = periods.map((_, at) => this.#rows.reduce((sum, row) => sum + row.tokens[at], 0));
    const top = niceCeiling(Math.max(...totals), 100);
    const floor = periods.map(() => 0);
    for (const path of this.paths) setAttribute(path, "d", "");
    for (const row of this.#rows) setAttribute(this.paths[row.slot], "d", stackPath(row.tokens, floor, top));
    setAttribute(this.picture.drawing, "data-many", periods.length > MANY_BARS ? "" : null);
    frame(this.picture, told, top, tokens, this.#rows.length > 0);
    const words = placesOf(told, (_, at) => tokens(totals[at]));
    const spoken = placesOf(told, (_, at) => [`${tokens(totals[at])} tokens`, ...this.#rows.filter((row) => row.tokens[at] > 0).map((row) => `${row.name} ${tokens(row.tokens[at])}`)].join(", "));
    this.picture.describe(words, "in and out", this.#summary() + sinceWords(told), spoken);
  }

  // The models with a colour, the most used first, and the others as one. A model keeps its colour while it has one.
  #coloured(models, periods) {
    const known = models.filter((model) => model.sum > 0 && !model.others);
    const named = known.slice(0, MOST_COLOURS);
    for (const key of this.#slots.keys()) if (!named.some((model) => model.key === key)) this.#slots.delete(key);
    const taken = new Set(this.#slots.values());
    const free = [...Array(MOST_COLOURS).keys()].filter((slot) => !taken.has(slot));
    for (const { key } of named) if (!this.#slots.has(key)) this.#slots.set(key, free.shift());
    const rows = named.map((model) => ({ ...model, slot: this.#slots.get(model.key) }));
    const left = models.filter((model) => model.sum > 0 && !named.includes(model));
    if (left.length === 0) return rows;
    const sums = [...Array(periods).keys()].map((at) => left.reduce((sum, model) => sum + model.tokens[at], 0));
    const number = left.reduce((sum, model) => sum + (model.others || 1), 0);
    const rest = { key: "", provider: "", model: count(number, "other model"), name: count(number, "other model"), tokens: sums, sum: left.reduce((sum, model) => sum + model.sum, 0) };
    return [...rows, { ...rest, slot: MOST_COLOURS }];
  }

  #summary() {
    const rows = this.#rows;
    const all = tokens(rows.reduce((sum, row) => sum + row.sum, 0));
    if (rows.length === 0) return "none were reported";
    if (rows.length === 1) return `${all} by ${rows[0].name}`;
    const most = rows.slice(0, MOST_NAMED).map((row) => `${row.name} ${tokens(row.sum)}`).join(", ");
    return rows.length > MOST_NAMED ? `${all}, most of them by ${most}` : `${all} by ${most}`;
  }

  #show(at) {
    this.#at = at;
    this.legend?.update(this.#rows, (row) => row.key);
  }
}

// Each part stands on those before it: `floor` has their heights, to which it adds its own.
function stackPath(values, floor, top) {
  const [at, wide] = barsOf(values.length);
  return values
    .map((value, index) => {
      const from = H - floor[index];
      floor[index] += heightOf(value, top);
      return value > 0 ? `M${at(index)} ${from.toFixed(2)}V${(H - floor[index]).toFixed(2)}h${wide}V${from.toFixed(2)}z` : "";
    })
    .join("");
}

function makeLegendRow() {
  const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
  const name = modelWords();
  const number = el("span", { class: "number" });
  const node = el("li", {}, swatch, name, number);
  node.parts = { swatch, name, number };
  return node;
}

function fillLegendRow(node, row, at) {
  const { swatch, name, number } = node.parts;
  setAttribute(swatch, "data-slot", row.slot);
  name.fill(row);
  setText(number, tokens(at === null ? row.sum : row.tokens[at] ?? 0));
}

// Provider and model in one line, which is cut where there is no room.
export function modelWords() {
  const chip = el("span", { class: "chip small" });
  const name = el("span", { class: "cut model-name" });
  const node = el("span", { class: "model" }, chip, name);
  node.fill = ({ provider, model, name: words }) => {
    setText(chip, provider);
    setAttribute(chip, "data-provider", provider);
    setAttribute(chip, "hidden", provider ? null : "");
    setText(name, model);
    setAttribute(node, "title", words);
  };
  return node;
}

// ---- requests, and those that failed

export class RequestsPlot {
  constructor(place, readout) {
    this.picture = new Picture(place, readout, "Requests and failures");
    this.good = svg("path", { class: "good" });
    this.bad = svg("path", { class: "bad" });
    this.picture.drawing.append(...grid(), this.good, this.bad);
  }

  update(told) {
    const { whole: sum, periods } = told;
    const top = evenCeiling(Math.max(...periods.map((each) => each.requests)));
    setAttribute(this.good, "d", barsPath(periods.map((each) => each.requests), top));
    setAttribute(this.bad, "d", barsPath(periods.map((each) => each.failed), top));
    frame(this.picture, told, top, tokens);
    const words = placesOf(told, (each) => `${whole(each.requests)}, ${whole(each.failed)} failed`);
    this.picture.describe(words, "", `${whole(sum.requests)}, ${whole(sum.failed)} of them failed${sinceWords(told)}`);
  }
}

// ---- curves with a value for each period, or none

class LinePlot {
  constructor(place, readout, name, classes) {
    this.picture = new Picture(place, readout, name);
    this.lines = classes.map((each) => svg("path", { class: `line ${each}` }));
    this.dots = classes.map((each) => svg("path", { class: `line dots ${each}` }));
    this.picture.drawing.append(...grid(), ...this.lines, ...this.dots);
  }

  draw(told, curves, top, words) {
    curves.forEach((values, index) => {
      const [line, dots] = linePaths(values, top);
      setAttribute(this.lines[index], "d", line);
      setAttribute(this.dots[index], "d", dots);
    });
    frame(this.picture, told, top, words, curves.some((values) => values.some((each) => each !== null)));
  }
}

// Neighbours are joined; a value between gaps is a dot, which is the round end of a line of no length.
function linePaths(values, top) {
  const known = (at) => (values[at] ?? null) !== null;
  const place = (at) => `${(((at + 0.5) / values.length) * W).toFixed(1)} ${(H - heightOf(values[at], top)).toFixed(1)}`;
  const places = [...values.keys()].filter(known);
  const line = places.map((at) => `${known(at - 1) ? "L" : "M"}${place(at)}`).join("");
  const dots = places.filter((at) => !known(at - 1) && !known(at + 1)).map((at) => `M${place(at)}h.01`).join("");
  return [line, dots];
}

export class FirstTextPlot extends LinePlot {
  constructor(place, readout) {
    super(place, readout, "Time to the first text", ["upper", "middle"]);
  }

  update(told) {
    const { whole: sum, periods } = told;
    const [slow, middle] = ["first_p95", "first_p50"].map((name) => periods.map((each) => each[name]));
    this.draw(told, [slow, middle], niceCeiling(highest(slow), 100), milliseconds);
    const words = placesOf(told, (_, at) => (middle[at] === null ? NOTHING : `${milliseconds(middle[at])} · ${milliseconds(slow[at])}`));
    this.picture.describe(words, "", firstWords(sum) + sinceWords(told), placesOf(told, firstWords));
  }
}

function firstWords({ first_p50: middle, first_p95: slow }) {
  return middle === null ? "not known" : `half within ${milliseconds(middle)}, 95% within ${milliseconds(slow)}`;
}

export class CachePlot extends LinePlot {
  constructor(place, readout) {
    super(place, readout, "Input from the cache", [""]);
  }

  update(told) {
    const { whole: sum, periods } = told;
    const shares = periods.map((each) => each.cached_share);
    this.draw(told, [shares], 1, share);
    const words = placesOf(told, (each) => share(each.cached_share));
    this.picture.describe(words, "", (sum.cached_share === null ? "not known" : `${share(sum.cached_share)} in all`) + sinceWords(told));
  }
}

// ---- the use of one window of an allowance

export class WindowPlot {
  constructor(place, readout) {
    this.picture = new Picture(place, readout, "");
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line" });
    this.dot = svg("path", { class: "line dots" });
    this.picture.drawing.append(...grid(), this.area, this.line, this.dot);
    this.picture.level([[1 - FULL, "100%"], [FULL, "0"]]);
  }

  // rest  the words without a pointer
  update({ samples, name }, { edges, range, now, kept_since: since }, rest, summary) {
    const [begin, end] = [edges[0], edges.at(-1)];
    const until = Math.min(now, end);
    const x = (at) => (((Math.max(begin, at) - begin) / (end - begin)) * W).toFixed(1);
    const y = (used) => (H - heightOf(Math.min(100, used), 100)).toFixed(1);
    // What was used stays so until the next report.
    const steps = samples.map(([at, used], index) => `${index ? `H${x(at)}V` : `M${x(at)} `}${y(used)}`);
    const line = `${steps.join("")}H${x(until)}`;
    setAttribute(this.line, "d", line);
    setAttribute(this.area, "d", `${line}V${H}H${x(samples[0][0])}z`);
    const [first, last] = [samples[0], samples.at(-1)];
    setAttribute(this.dot, "d", x(until) - x(first[0]) < SEEN ? `M${x(last[0])} ${y(last[1])}h.01` : "");
    this.picture.shade(x(Math.min(since ?? begin, first[0])) / W);
    const words = [...Array(PLACES).keys()].map((at) => {
      const moment = begin + ((at + 0.5) / PLACES) * (end - begin);
      const found = moment > until ? undefined : samples.findLast(([each]) => each <= moment);
      return `${momentName(range, moment)}  ${found ? percent(found[1]) : moment < since ? UNKEPT : NOTHING}`;
    });
    this.picture.name = name;
    this.picture.describe(words, rest, summary);
  }
}
