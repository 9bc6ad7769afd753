// What requests used over time: asks the proxy for a range of time, and draws the answer. It asks again while it is
// looked at.

import { el, setAttribute, setHidden, setText } from "./dom.js";
import { count } from "./format.js";
import { HistoryPanels } from "./history_panels.js";
import { cleaned } from "./model.js";
import { RANGES, edgesOf, hourOf, yearDateOf } from "./periods.js";

const PATH = "monitor/history";
const VERSION = 1;
const KEY = "model-proxy-history-range";
const FIRST_RANGE = "week";
const SECOND = 1000;
const FRESH_S = 60;
const AGAIN_S = 10;
const ANSWER_S = 20;
const LATE = "TimeoutError";
// No history is kept: nothing changes that before the proxy starts anew.
const OFF = 404;

// A browser may forbid storage; then the choice lasts as long as the page.
function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function store(range) {
  try {
    localStorage.setItem(KEY, range);
  } catch {
    // It is kept in the page.
  }
}

export class History {
  #place;
  #panels = null;
  #range = stored() in RANGES ? stored() : FIRST_RANGE;
  // The range that is seen, "" if none is.
  #shown = "";
  #asOf = "";
  #asking = null;
  #timer = 0;
  // The reader chose a range, and has to be told what came of it.
  #chosen = false;

  constructor(place) {
    this.#place = place;
    document.addEventListener("visibilitychange", () => this.#wake());
  }

  // Shows or hides the view, which is made when it is first wanted.
  show(wanted) {
    setHidden(this.#place, !wanted);
    if (wanted) this.#build();
    this.#wake();
  }

  #build() {
    if (this.#panels) return;
    this.state = el("p", { class: "quiet small" });
    this.fault = el("span");
    const again = el("button", { type: "button", class: "link", onclick: () => this.#ask() }, "Try now");
    this.banner = el("p", { class: "banner history-banner", role: "alert", hidden: true }, this.fault, " ", again);
    this.empty = el("section", { class: "panel", hidden: true }, el("p", { class: "empty quiet" }));
    this.voice = el("p", { class: "hidden-text", role: "status" });
    this.#place.append(el("div", { class: "history-head" }, this.#picker(), this.state), this.voice, this.banner, this.empty);
    this.#panels = new HistoryPanels(this.#place);
  }

  // Radio buttons, which the arrow keys walk along by themselves.
  #picker() {
    this.choices = Object.keys(RANGES).map((range) => el("input", { type: "radio", name: "range", value: range, checked: range === this.#range, onchange: () => this.#choose(range) }));
    const labels = this.choices.map((input) => el("label", {}, input, el("span", {}, RANGES[input.value].label)));
    return el("fieldset", { class: "ranges" }, el("legend", { class: "hidden-text" }, "Time"), ...labels);
  }

  #choose(range) {
    this.#range = range;
    store(range);
    this.#chosen = true;
    setText(this.voice, "");
    setHidden(this.banner, true);
    this.#ask();
  }

  // Asks at once, and goes on to ask; or ends that.
  #wake() {
    clearTimeout(this.#timer);
    if (this.#place.hidden || document.hidden) this.#asking?.abort();
    else this.#ask();
  }

  async #ask() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    const asking = (this.#asking = new AbortController());
    const range = this.#range;
    setAttribute(this.#place, "aria-busy", "true");
    this.#waits();
    const limit = setTimeout(() => asking.abort(new DOMException("", LATE)), ANSWER_S * SECOND);
    const found = await answered(range, asking.signal);
    clearTimeout(limit);
    // Another range was chosen, or nobody looks any more.
    if (asking !== this.#asking || this.#place.hidden || document.hidden) return;
    setAttribute(this.#place, "aria-busy", null);
    this.#draw(found);
    this.#timer = setTimeout(() => this.#ask(), (found.fault ? AGAIN_S : FRESH_S) * SECOND);
  }

  // What is seen is of another time, or nothing is seen: then it is said that an answer is awaited.
  #waits() {
    if (this.#shown === this.#range) return;
    if (this.#shown) setText(this.state, `Reading ${RANGES[this.#range].label}… Shown: ${RANGES[this.#shown].label}`);
    else if (this.banner.hidden && (this.#chosen || this.empty.hidden)) this.#nothing("Reading…");
  }

  #draw({ told, fault = "", status = 0 }) {
    const words = fault && `${fault[0].toUpperCase()}${fault.slice(1)}.`;
    const off = status === OFF;
    setText(this.fault, off ? "" : words);
    setHidden(this.banner, fault === "" || off);
    if (told) this.#show(told);
    else this.#failed(off ? words : "");
    this.#chosen = false;
  }

  // What was known last stays, under its own name. Other words would contradict the fault.
  #failed(words) {
    this.#nothing(words);
    if (words) this.#shown = "";
    setText(this.state, this.#shown && this.#asOf);
    if (!this.#shown) return;
    this.#range = this.#shown;
    for (const input of this.choices) input.checked = input.value === this.#range;
    if (this.#chosen) setText(this.voice, `Still ${RANGES[this.#range].label}`);
  }

  #show(told) {
    const none = told.whole.requests === 0;
    const kept = told.kept_since;
    const words = none ? (kept === null ? "Nothing is recorded yet. Each request is, when it ends." : "No request ended in this time.") : "";
    this.#asOf = `${kept === null ? "" : `kept since ${yearDateOf(kept)} · `}as of ${hourOf(told.now)}`;
    this.#nothing(words);
    this.#shown = none && told.windows.length === 0 ? "" : told.range;
    setText(this.state, this.#asOf);
    setHidden(this.#panels.element, this.#shown === "");
    this.#panels.update(told, none);
    if (this.#chosen) setText(this.voice, `${RANGES[told.range].label}: ${words || `${count(told.whole.requests, "request")}, as of ${hourOf(told.now)}`}`);
  }

  // Says why there is nothing to see, "" if there is something.
  #nothing(words) {
    setHidden(this.empty, words === "");
    setText(this.empty.firstChild, words);
    if (words) setHidden(this.#panels.element, true);
  }
}

// What the proxy knows of a range, as `overview` in overview.py, with the range and the time; or why it does not.
async function answered(range, signal) {
  const now = Date.now() / SECOND;
  const edges = edgesOf(range, now);
  try {
    const answer = await fetch(`${PATH}?edges=${edges.join(",")}`, { signal, headers: { accept: "application/json" } });
    const sent = await answer.json();
    const body = cleaned(sent);
    if (!answer.ok) return { fault: body?.error?.message ?? `the proxy answers with status ${answer.status}`, status: answer.status };
    if (body.version !== VERSION) return { fault: `the proxy sends version ${body.version} of it, this page reads ${VERSION}: reload the page` };
    const models = body.models.map((row, at) => named(row, sent.models[at]));
    const windows = body.windows.map((row, at) => ({ ...row, key: keyOf(sent.windows[at]) }));
    return { told: { ...body, models, windows, range, now } };
  } catch (error) {
    return { fault: faultOf(error) };
  }
}

// Each tab of the page keeps a connection for its stream, and a browser has six for one address.
function faultOf(error) {
  if (error instanceof SyntaxError) return "the proxy sent something that is no history";
  return error.name === LATE ? `no answer in ${ANSWER_S} s: the proxy may be busy, or too many tabs show this page` : "the proxy does not answer";
}

// What a row is of, as it was sent: cleaned names may be equal.
function keyOf({ provider, model, others, account, window, limit }) {
  return JSON.stringify([provider, model, others > 0, account, window, limit]);
}

// With a name, a key, and the sum of its tokens.
function named(row, sent) {
  const model = row.others ? count(row.others, "other model") : row.model || "no model";
  const name = [row.provider, model].filter(Boolean).join(" ");
  return { ...row, model, name, key: keyOf(sent), sum: row.tokens.reduce((sum, each) => sum + each, 0) };
}
