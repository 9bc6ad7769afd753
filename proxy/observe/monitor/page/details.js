// Everything that is known about one request, session or agent, beside the lists. It stays with what it was opened
// for, also when that ends or leaves the lists.

import { cachePart, copyButton, modelPart, sparkPart, statusPart } from "./cells.js";
import { KeyedList, byId, el, setAttribute, setHidden, setStyle, setText } from "./dom.js";
import { NOTHING, age, data, milliseconds, modelName, moment, rate, share, tokens, took, whole } from "./format.js";
import { agentName, elapsed, requestSession, sessionName } from "./lists.js";
import { at, cachedShare, wholeShare } from "./model.js";
import { SHEET } from "./sheet.js";

// In the order in which they happen; other facts come after them.
const SPANS = { queue: "queue", translate: "translate", sign_in: "sign-in", retry: "retries", connect: "connect", first_byte: "first byte", first_token: "first token" };
const HISTORY = 60;
const MOST_REQUESTS = 20;

// Kind -> the text of a value, as in `sheet.py`.
const KINDS = {
  "": (value) => String(value ?? ""),
  session: (value) => value || "no session",
  whole,
  some: (value) => (value ? whole(value) : ""),
  more: (value) => (value > 1 ? whole(value) : ""),
  data: (value) => (value ? data(value) : ""),
  took,
  moment,
  age: (value, now) => age(now - value),
  share,
  rate,
  listed,
  model: modelName,
  newest: (row) => share(cachedShare(row)),
  life: (row) => share(wholeShare(row) || row.cache.cached),
  sum: (row) => whole(row.input_tokens + row.output_tokens),
};

function listed(values) {
  return Object.entries(values).map(([name, value]) => `${name} ${value}`).join(", ");
}

function textOf(text, row, now) {
  return text.split(" | ").map((part) => partOf(part, row, now)).filter(Boolean).join(", ");
}

function partOf(part, row, now) {
  const [, before, path, kind, after] = part.match(/^(.*)\{([\w.]*):?(\w*)\}(.*)$/);
  const text = KINDS[kind](at(row, path), now);
  return text === "" || text === NOTHING ? "" : before + text + after;
}

// The facts of a table of the sheet.
class Fields {
  constructor(table) {
    this.table = table;
    this.element = el("dl", { class: "fields" });
    this.list = new KeyedList(this.element, (fact) => this.#make(fact), (node, { value }) => setText(node.words, value));
  }

  #make({ title, page }) {
    const value = el("span");
    const copy = page === "copy" ? copyButton(() => value.textContent, `Copy: ${title}`) : null;
    const node = el("div", {}, el("dt", {}, title), el("dd", {}, value, copy));
    node.words = value;
    return node;
  }

  update(row, now) {
    const found = this.table.map((fact) => ({ ...fact, value: textOf(fact.text, row, now) }));
    this.list.update(found.filter(({ value }) => value !== ""), ({ title }) => title);
  }
}

// Where the time went, one span after another.
class Timings {
  constructor() {
    const bar = el("div", { class: "timing-bar", "aria-hidden": "true" });
    const legend = el("ul", { class: "timing-legend" });
    this.element = el("section", {}, el("h3", {}, "Until the first token"), bar, legend);
    this.bar = new KeyedList(bar, ({ name }) => el("span", { "data-span": name }), (node, { ms }) => setStyle(node, "flex-grow", String(ms)));
    this.legend = new KeyedList(legend, ({ name, label }) => makeSpan(name, label), (node, { ms }) => setText(node.words, milliseconds(ms)));
  }

  update(timings) {
    const known = Object.keys(SPANS).filter((name) => name in timings);
    const others = Object.keys(timings).filter((name) => !(name in SPANS));
    const spans = [...known, ...others].map((name) => ({ name, label: SPANS[name] ?? name, ms: Math.max(0, timings[name]) }));
    setHidden(this.element, spans.length === 0);
    this.bar.update(spans.filter(({ ms }) => ms > 0), ({ name }) => name);
    this.legend.update(spans, ({ name }) => name);
  }
}

function makeSpan(name, label) {
  const value = el("strong", { class: "number" });
  const node = el("li", {}, el("span", { class: "swatch", "data-span": name, "aria-hidden": "true" }), el("span", {}, label), value);
  node.words = value;
  return node;
}

class Cache {
  constructor() {
    const [part, fill] = cachePart();
    this.fill = fill;
    this.element = el("section", {}, el("h3", {}, "Input from the cache"), part);
  }

  update(row) {
    setHidden(this.element, cachedShare(row) === null);
    this.fill(row);
  }
}

// A head that requests and sessions have in common: what state it is in, what went wrong, what served it.
class Summary {
  constructor() {
    const [status, fillStatus] = statusPart();
    const [model, fillModel] = modelPart();
    Object.assign(this, { fillStatus, fillModel });
    this.error = el("p", { class: "error-box" });
    this.gone = el("p", { class: "quiet" }, "No longer in the lists; these are its last known values.");
    this.element = el("div", { class: "summary" }, el("p", { class: "summary-line" }, status, model), this.error, this.gone);
  }

  update(row, present) {
    this.fillStatus(row.status, row.http ? `${row.status}, HTTP ${row.http}` : row.status);
    this.fillModel(row);
    setText(this.error, row.error ?? "");
    setHidden(this.error, !row.error);
    setHidden(this.gone, present);
  }
}

class RequestView {
  kind = "Request";

  constructor() {
    this.parts = { summary: new Summary(), timings: new Timings(), cache: new Cache(), fields: new Fields(SHEET.request) };
    this.elements = Object.values(this.parts).map((part) => part.element);
  }

  find(snapshot, id) {
    const same = (row) => row.id === id;
    return snapshot.active.find(same) ?? snapshot.recent.find(same);
  }

  title(row) {
    return requestSession(row);
  }

  update(row, now, present) {
    const { summary, timings, cache, fields } = this.parts;
    summary.update(row, present);
    timings.update(row.timings);
    cache.update(row);
    fields.update({ ...row, elapsed: elapsed(row, now) }, now);
  }
}

class TalkView {
  constructor(facts, open) {
    this.parts = { summary: new Summary(), cache: new Cache(), fields: new Fields(facts) };
    const [spark, fillSpark] = sparkPart(HISTORY);
    setAttribute(spark, "class", "spark large");
    this.fillSpark = fillSpark;
    this.history = el("section", {}, el("h3", {}, "Output tokens in the last ten minutes"), spark);
    const list = el("ul", { class: "of-session" });
    this.requests = el("section", {}, el("h3", {}, "Its requests"), list);
    this.list = new KeyedList(list, () => makeLine(open), fillLine);
    const { summary, cache, fields } = this.parts;
    this.elements = [summary.element, this.history, cache.element, this.requests, fields.element];
  }

  update(row, now, present, snapshot) {
    this.parts.summary.update(row, present);
    this.parts.cache.update(row);
    this.parts.fields.update(row, now);
    setHidden(this.history, !row.history);
    if (row.history) this.fillSpark(row.history);
    const own = [...snapshot.active].reverse().concat(snapshot.recent).filter((request) => this.owns(row, request));
    this.list.update(own.slice(0, MOST_REQUESTS), (request) => request.id);
    setHidden(this.requests, own.length === 0);
  }
}

function makeLine(open) {
  const [status, fillStatus] = statusPart();
  const words = el("span", { class: "cut" });
  const button = el("button", { type: "button", class: "link line" }, status, words);
  const node = el("li", {}, button);
  Object.assign(node, { fillStatus, words });
  button.addEventListener("click", () => open(node.row));
  return node;
}

function fillLine(node, row) {
  node.row = row;
  node.fillStatus(row.status);
  const number = row.number === null ? row.endpoint : `#${row.number} ${row.endpoint}`;
  setText(node.words, [number, `${tokens(row.input_tokens)} → ${tokens(row.output_tokens)}`, took(row.elapsed), row.error].filter(Boolean).join(" · "));
}

class SessionView extends TalkView {
  kind = "Session";
  find = (snapshot, id) => snapshot.sessions.find((row) => row.id === id);
  title = (row) => sessionName(row);
  owns = (row, request) => request.session === row.id;
}

class AgentView extends TalkView {
  kind = "Agent";
  title = (row) => agentName(row.id);
  owns = (row, request) => request.session === row.session && request.agent === row.id;

  find(snapshot, [session, agent]) {
    const found = snapshot.sessions.find((row) => row.id === session)?.agents.find((row) => row.id === agent);
    return found && { ...found, session };
  }
}

export class Details {
  #panel = byId("details");
  #body = byId("details-body");
  #opened = null;
  #from = null;

  // after  called when something was opened or closed
  constructor(after) {
    this.after = after;
    const request = (row) => this.open("request", row.id);
    this.views = { request: new RequestView(), session: new SessionView(SHEET.session, request), agent: new AgentView(SHEET.agent, request) };
    byId("details-close").addEventListener("click", () => this.close());
  }

  open(kind, id, snapshot = this.snapshot, now = this.now) {
    const view = this.views[kind];
    if (!this.#panel.contains(document.activeElement)) this.#from = document.activeElement;
    this.#opened = { kind, id, row: null };
    this.#body.replaceChildren(...view.elements);
    setText(byId("details-kind"), view.kind);
    this.update(snapshot, now);
    setHidden(this.#panel, false);
    this.#body.scrollTop = 0;
    document.body.dataset.details = "open";
    this.#panel.focus();
    this.after();
  }

  close() {
    if (this.#opened === null) return false;
    this.#opened = null;
    setHidden(this.#panel, true);
    delete document.body.dataset.details;
    if (this.#from?.isConnected) this.#from.focus();
    this.after();
    return true;
  }

  isOpen(kind, id) {
    return this.#opened?.kind === kind && String(this.#opened.id) === String(id);
  }

  update(snapshot, now) {
    Object.assign(this, { snapshot, now });
    if (this.#opened === null) return;
    const view = this.views[this.#opened.kind];
    const found = view.find(snapshot, this.#opened.id);
    this.#opened.row = found ?? this.#opened.row;
    const { row } = this.#opened;
    if (!row) return;
    setText(byId("details-title"), view.title(row));
    setAttribute(byId("details-title"), "title", modelName(row) || null);
    view.update(row, now, found !== undefined, snapshot);
  }
}
