// What requests used over time: asks the proxy for a range of time, and draws the answer. It asks again while it is
// looked at.

import { el, setAttribute, setHidden, setText } from "./dom.js";
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
  #shown = "";
  #asking = null;
  #timer = 0;

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
    this.empty = el("section", { class: "panel", hidden: true }, el("p", { class: "empty quiet", role: "status" }));
    this.#place.append(el("div", { class: "history-head" }, this.#picker(), this.state), this.banner, this.empty);
    this.#panels = new HistoryPanels(this.#place);
  }

  // Radio buttons, which the arrow keys walk along by themselves.
  #picker() {
    const choices = Object.entries(RANGES).map(([range, { label }]) => {
      const input = el("input", { type: "radio", name: "range", value: range, checked: range === this.#range, onchange: () => this.#choose(range) });
      return el("label", {}, input, el("span", {}, label));
    });
    return el("fieldset", { class: "ranges" }, el("legend", { class: "hidden-text" }, "Time"), ...choices);
  }

  #choose(range) {
    this.#range = range;
    store(range);
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
    const limit = setTimeout(() => asking.abort(), ANSWER_S * SECOND);
    const found = await answered(range, asking.signal);
    clearTimeout(limit);
    // Another range was chosen, or nobody looks any more.
    if (asking !== this.#asking || this.#place.hidden || document.hidden) return;
    setAttribute(this.#place, "aria-busy", null);
    this.#draw(found);
    this.#timer = setTimeout(() => this.#ask(), (found.fault ? AGAIN_S : FRESH_S) * SECOND);
  }

  #draw({ told, fault = "", status = 0 }) {
    const off = status === OFF;
    const words = fault && `${fault[0].toUpperCase()}${fault.slice(1)}.`;
    setHidden(this.banner, fault === "" || off);
    setText(this.fault, off ? "" : words);
    if (off) this.#nothing(words);
    if (!told) {
      // What was known last stays, unless it is of another time.
      if (this.#shown !== this.#range) setHidden(this.#panels.element, true);
      return;
    }
    this.#shown = told.range;
    const none = told.whole.requests === 0;
    const kept = told.kept_since;
    setText(this.state, `${kept === null ? "" : `kept since ${yearDateOf(kept)} · `}as of ${hourOf(told.now)}`);
    this.#nothing(none ? (kept === null ? "Nothing is recorded yet. Each request is, when it ends." : "No request ended in this time.") : "");
    setHidden(this.#panels.element, none && told.windows.length === 0);
    this.#panels.update(told, none);
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
    const body = cleaned(await answer.json());
    if (!answer.ok) return { fault: body?.error?.message ?? `the proxy answers with status ${answer.status}`, status: answer.status };
    if (body.version !== VERSION) return { fault: `the proxy sends version ${body.version} of it, this page reads ${VERSION}: reload the page` };
    return { told: { ...body, models: body.models.map(named), range, now } };
  } catch (error) {
    return { fault: error instanceof SyntaxError ? "the proxy sent something that is no history" : "the proxy does not answer" };
  }
}

// With a name, a key, and the sum of its tokens.
function named(row) {
  const model = row.others ? `${row.others} other models` : row.model || "no model";
  const name = [row.provider, model].filter(Boolean).join(" ");
  return { ...row, model, name, key: name, sum: row.tokens.reduce((sum, each) => sum + each, 0) };
}
