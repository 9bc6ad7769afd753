// The three lists: sessions with their agents, requests under way, requests that are over.

import { cachePart, modelPart, sparkPart, statusPart } from "./cells.js";
import { el, setAttribute, setHidden, setText } from "./dom.js";
import { age, clock, count, modelName, numbered, rate, shortId, tokens, took, whole } from "./format.js";
import { cachedShare, depthOf, tokenRate } from "./model.js";
import { Table, opener } from "./table.js";

// More agents than this are shown as a number; the details of the session have them.
const MOST_AGENTS = 50;

function textCell(words) {
  return (cell) => (row, now) => setText(cell, words(row, now));
}

function partCell(part) {
  return (cell) => {
    const [node, fill] = part();
    cell.append(node);
    return (row) => fill(row);
  };
}

function tokenCell(cell) {
  const [input, output] = [el("span"), el("span")];
  cell.append(el("span", { class: "hidden-text" }, "in "), input, el("span", { class: "quiet", "aria-hidden": "true" }, " → "), el("span", { class: "hidden-text" }, ", out "), output);
  return (row) => {
    setText(input, tokens(row.input_tokens));
    setText(output, tokens(row.output_tokens));
    setAttribute(cell, "title", `${whole(row.input_tokens)} tokens in, ${whole(row.output_tokens)} out`);
  };
}

const allTokens = (row) => (row.input_tokens ?? 0) + (row.output_tokens ?? 0);

export function sessionName(row) {
  return row.project ?? (row.id === null ? "no session" : shortId(row.id));
}

export function agentName(id) {
  if (id === null) return "main conversation";
  return /^agent/i.test(id) ? shortId(id) : `agent ${shortId(id)}`;
}

// What runs in this second counts as seen now: rows then keep their places while they work.
function seen(row) {
  return row.active > 0 ? Number.MAX_SAFE_INTEGER : row.last_seen;
}

function children(session) {
  return session.agents.some((agent) => agent.id !== null) ? session.agents.slice(0, MOST_AGENTS) : [];
}

function sessionCell(cell, table) {
  const expander = el("button", { type: "button", class: "expander quiet", tabindex: "-1" });
  const wrap = el("div", { class: "who-box" });
  const lines = el("div", { class: "stack" });
  const under = el("span", { class: "under quiet small cut" });
  const open = opener(lines, (row, words) => `${words}, details`);
  lines.append(under);
  wrap.append(expander, lines);
  cell.append(wrap);
  let shown = null;
  expander.addEventListener("click", () => table.toggle(shown));
  return (row, _now, parent) => {
    shown = row;
    if (parent) fillAgent(row, parent);
    else fillSession(row);
  };

  function fillAgent(row, parent) {
    setHidden(expander, true);
    open(row, agentName(row.id));
    setText(under, "");
    setAttribute(wrap, "data-depth", depthOf(row, parent.agents));
  }

  function fillSession(row) {
    const agents = children(row).length > 0 ? row.agents.length - 1 : 0;
    const expanded = agents > 0 && table.isExpanded(row);
    setHidden(expander, agents === 0);
    setAttribute(expander, "aria-expanded", String(expanded));
    setAttribute(expander, "aria-label", `Agents of ${sessionName(row)}`);
    open(row, sessionName(row));
    const id = row.project && row.id !== null ? shortId(row.id) : "";
    setText(under, [id, agents > 0 ? count(agents, "agent") : ""].filter(Boolean).join(" · "));
  }
}

function sessionStatus(cell) {
  const [node, fill] = statusPart();
  cell.append(node);
  return (row) => fill(row.status, row.active > 1 ? `${row.status} ×${row.active}` : row.status);
}

function requestCounts(cell) {
  const [all, failed] = [el("span"), el("span", { class: "failed small" })];
  cell.append(all, failed);
  return (row) => {
    setText(all, whole(row.requests));
    setText(failed, row.failures > 0 ? ` ${whole(row.failures)} failed` : "");
  };
}

function speedCell(cell) {
  const [spark, fillSpark] = sparkPart();
  const words = el("span", { class: "quiet small" });
  cell.append(spark, words);
  return (row) => {
    setText(words, rate(row.throughput));
    setHidden(spark, !row.history);
    if (row.history) fillSpark(row.history);
    // An element of SVG has no `hidden` of its own.
    setAttribute(spark, "hidden", row.history ? null : "");
  };
}

export function sessionsTable(place, open, isOpen) {
  return new Table(place, {
    name: "sessions",
    labelledby: "sessions-title",
    keyOf: (row) => row.id ?? "",
    open,
    isOpen,
    children,
    steady: true,
    sort: { id: "seen", descending: true },
    columns: [
      { id: "who", label: "Session", value: sessionName, make: sessionCell },
      { id: "state", label: "Status", value: (row) => row.status, make: sessionStatus },
      { id: "what", label: "Model", value: modelName, make: partCell(modelPart) },
      { id: "count", label: "Requests", number: true, value: (row) => row.requests, make: requestCounts },
      { id: "tokens", label: "In → out", words: "Tokens", number: true, value: allTokens, make: tokenCell },
      { id: "speed", label: "Rate", number: true, value: tokenRate, make: speedCell },
      { id: "cached", label: "Cached", words: "Cached share", number: true, value: cachedShare, make: partCell(cachePart) },
      { id: "seen", label: "Seen", words: "Last seen", number: true, value: seen, make: textCell((row, now) => (row.active > 0 ? "now" : age(now - row.last_seen))) },
    ],
  });
}

export function requestSession(row) {
  return numbered(row.project ?? (row.session === null ? "no session" : shortId(row.session)), row.number);
}

function whoCell(cell) {
  const lines = el("div", { class: "stack" });
  const open = opener(lines, (row, words) => `${words}, ${row.endpoint}, ${row.status}: details`);
  const under = el("span", { class: "under quiet small cut" });
  lines.append(under);
  cell.append(lines);
  return (row) => {
    open(row, requestSession(row));
    setText(under, [row.endpoint, row.agent === null ? "" : agentName(row.agent)].filter(Boolean).join(" · "));
  };
}

function requestStatus(cell) {
  const [node, fill] = statusPart();
  cell.append(node);
  return (row) => {
    fill(row.status, row.http !== null && row.status === "failed" ? `failed ${row.http}` : row.status);
    setAttribute(node, "title", row.http === null ? null : `HTTP ${row.http}`);
  };
}

function whatCell(cell) {
  const [node, fill] = modelPart();
  const error = el("span", { class: "error small cut" });
  cell.append(node, error);
  return (row) => {
    fill(row);
    setText(error, row.error);
    setHidden(error, !row.error);
    setAttribute(error, "title", row.error || null);
  };
}

// What it took until now, for what is under way.
export function elapsed(row, now) {
  return row.finished_at === null && row.started_at > 0 ? Math.max(row.elapsed, now - row.started_at) : row.elapsed;
}

const WHO = { id: "who", label: "Request", value: requestSession, make: whoCell };
const STATE = { id: "state", label: "Status", value: (row) => row.status, make: requestStatus };
const WHAT = { id: "what", label: "Model", value: modelName, make: whatCell };
const TOKENS = { id: "tokens", label: "In → out", words: "Tokens", number: true, value: allTokens, make: tokenCell };
const SPEED = { id: "speed", label: "Rate", number: true, value: tokenRate, make: textCell((row) => rate(row.throughput)) };

export function activeTable(place, open, isOpen) {
  const time = { id: "time", label: "Elapsed", number: true, value: (row) => -row.started_at, make: textCell((row, now) => took(elapsed(row, now))) };
  return new Table(place, {
    name: "requests active",
    labelledby: "active-title",
    keyOf: (row) => row.id,
    open,
    isOpen,
    sort: { id: "time", descending: true },
    columns: [WHO, STATE, WHAT, TOKENS, SPEED, time],
  });
}

export function recentTable(place, open, isOpen) {
  const cached = { id: "cached", label: "Cached", words: "Cached share", number: true, value: cachedShare, make: partCell(cachePart) };
  const time = { id: "time", label: "Took", number: true, value: (row) => row.elapsed, make: textCell((row) => took(row.elapsed)) };
  const done = { id: "seen", label: "Finished", number: true, value: (row) => row.finished_at, make: textCell((row) => clock(row.finished_at)) };
  return new Table(place, {
    name: "requests recent",
    labelledby: "recent-title",
    keyOf: (row) => row.id,
    open,
    isOpen,
    first: 12,
    sort: { id: "seen", descending: true },
    columns: [WHO, STATE, WHAT, TOKENS, SPEED, cached, time, done],
  });
}

