// Everything that is known about one request, session or agent, beside the lists. It stays with what it was opened
// for, also when that ends or leaves the lists.

import { cachePart, cacheWords, copyButton, modelPart, sparkPart, statusPart } from "./cells.js";
import { KeyedList, byId, el, setAttribute, setHidden, setStyle, setText } from "./dom.js";
import { age, bytes, duration, milliseconds, moment, rate, share, tokens, whole } from "./format.js";
import { agentName, elapsed, requestSession, sessionName } from "./lists.js";
import { modelName } from "./model.js";

// In the order in which they happen; what is told beside them is shown behind.
const SPANS = { queue: "queue", translate: "translate", sign_in: "sign-in", retry: "retries", connect: "connect", first_byte: "first byte", first_token: "first token" };
const HISTORY = 60;
const MOST_REQUESTS = 20;

const given = (value) => (value === null || value === undefined ? "" : String(value));

// label -> value of (row, now); an empty one is not shown
const OF_REQUEST = {
  Session: (row) => row.session ?? "none",
  Agent: (row) => given(row.agent),
  "Agent above": (row) => given(row.parent),
  Project: (row) => given(row.project),
  "Number in its session": (row) => given(row.number),
  Endpoint: (row) => row.endpoint,
  Provider: (row) => given(row.provider),
  "Model asked for": (row) => given(row.requested),
  "Model that served": (row) => given(row.resolved),
  Effort: (row) => given(row.effort),
  "HTTP status": (row) => given(row.http),
  Attempts: (row) => given(row.attempts || null),
  Started: (row, now) => moment(row.startedAt, now),
  Finished: (row, now) => (row.finishedAt === null ? "" : moment(row.finishedAt, now)),
  Took: (row, now) => duration(elapsed(row, now)),
  "Input tokens": (row) => (row.input === null ? "" : whole(row.input)),
  "of them from the cache": (row) => (row.cached === null ? "" : whole(row.cached)),
  "Output tokens": (row) => (row.output === null ? "" : whole(row.output)),
  Rate: (row) => rate(row.throughput),
  Received: (row) => (row.throughput.bytes ? `${bytes(row.throughput.bytes)} in ${whole(row.throughput.chunks)} events` : ""),
  "Judged tool calls": (row) => Object.entries(row.judge).map(([outcome, calls]) => `${calls} ${outcome}`).join(", "),
  "Request id": (row) => row.id,
  "In place of": (row) => row.fallback,
  Caller: (row) => given(row.caller),
  "Id of the client": (row) => given(row.clientId),
  "Id of the upstream": (row) => given(row.upstreamId),
  Capture: (row) => row.capture,
};

const OF_TALK = {
  Id: (row) => row.id ?? "none",
  Project: (row) => given(row.project),
  "Agent above": (row) => given(row.parent),
  Active: (row) => whole(row.active),
  Requests: (row) => whole(row.requests),
  Failures: (row) => whole(row.failures),
  Provider: (row) => given(row.provider),
  "Model asked for": (row) => given(row.requested),
  "Model that served": (row) => given(row.resolved),
  Effort: (row) => given(row.effort),
  "Input tokens": (row) => whole(row.input),
  "of them from the cache": (row) => `${whole(row.cached)}${row.input > 0 ? `, ${share(row.cached / row.input)}` : ""}`,
  "Output tokens": (row) => whole(row.output),
  Rate: (row) => rate(row.throughput),
  "Last seen": (row, now) => `${moment(row.lastSeen, now)}, ${age(now - row.lastSeen)}`,
};

const COPIED = new Set(["Session", "Id", "Request id", "Id of the client", "Id of the upstream", "Capture"]);

class Fields {
  constructor(table) {
    this.table = table;
    this.element = el("dl", { class: "fields" });
    this.list = new KeyedList(this.element, ({ label }) => this.#make(label), (node, { value }) => setText(node.words, value));
  }

  #make(label) {
    const value = el("span");
    const copy = COPIED.has(label) ? copyButton(() => value.textContent, `Copy: ${label}`) : null;
    const node = el("div", {}, el("dt", {}, label), el("dd", {}, value, copy));
    node.words = value;
    return node;
  }

  update(row, now) {
    const found = Object.entries(this.table).map(([label, valueOf]) => ({ label, value: valueOf(row, now) }));
    this.list.update(found.filter(({ value }) => value !== ""), ({ label }) => label);
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
    this.words = el("p");
    this.fill = fill;
    this.element = el("section", {}, el("h3", {}, "Input from the cache"), part, this.words);
  }

  update(row) {
    this.fill(row);
    setText(this.words, cacheWords(row));
  }
}

// A head that requests and sessions have in common: what state it is in, what went wrong, what served it.
class Summary {
  constructor() {
    const [status, fillStatus] = statusPart();
    const [model, fillModel] = modelPart();
    Object.assign(this, { fillStatus, fillModel });
    this.error = el("p", { class: "error-box" });
    this.gone = el("p", { class: "quiet" }, "It is in the lists no more: this is what was known last.");
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
    this.parts = { summary: new Summary(), timings: new Timings(), cache: new Cache(), fields: new Fields(OF_REQUEST) };
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
    setHidden(cache.element, row.cache.cached === null);
    cache.update(row);
    fields.update(row, now);
  }
}

class TalkView {
  constructor(open) {
    this.parts = { summary: new Summary(), cache: new Cache(), fields: new Fields(OF_TALK) };
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
  setText(node.words, [number, `${tokens(row.input)} → ${tokens(row.output)}`, duration(row.elapsed), row.error].filter(Boolean).join(" · "));
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
    this.views = { request: new RequestView(), session: new SessionView(request), agent: new AgentView(request) };
    byId("details-close").addEventListener("click", () => this.close());
  }

  open(kind, id, snapshot = this.snapshot, now = this.now) {
    const view = this.views[kind];
    if (!this.#panel.contains(document.activeElement)) this.#from = document.activeElement;
    this.#opened = { kind, id, row: null };
    this.#body.replaceChildren(...view.elements);
    this.#body.scrollTop = 0;
    setText(byId("details-kind"), view.kind);
    this.update(snapshot, now);
    setHidden(this.#panel, false);
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
