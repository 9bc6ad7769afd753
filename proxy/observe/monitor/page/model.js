// A snapshot as it travels, made whole: what is missing or of another kind gets its default, so that nothing behind
// this module has to ask. Then what is found in it: rows that match, in an order.

import { isNumber, plain, tellApart } from "./format.js";

export const VERSION = 1;

const number = (value) => (isNumber(value) ? value : null);
const amount = (value) => (isNumber(value) ? value : 0);
const list = (value) => (Array.isArray(value) ? value : []);
const object = (value) => (value !== null && typeof value === "object" && !Array.isArray(value) ? value : {});
const text = (value) => (typeof value === "string" && plain(value)) || null;
const numbers = (value) => list(value).map(amount);

function counts(value) {
  return Object.fromEntries(Object.entries(object(value)).filter(([, each]) => isNumber(each)));
}

function throughput(value) {
  const found = object(value);
  return { tokens: amount(found.tokens), seconds: amount(found.seconds), bytes: amount(found.bytes), chunks: amount(found.chunks) };
}

function cache(value) {
  const found = object(value);
  return { cached: number(found.cached), expected: number(found.expected), reason: plain(found.reason) };
}

// What requests, sessions and agents have in common.
function common(row) {
  return {
    provider: text(row.provider),
    requested: text(row.requested),
    resolved: text(row.resolved),
    effort: text(row.effort),
    status: plain(row.status),
    throughput: throughput(row.throughput),
    cache: cache(row.cache),
  };
}

function requestRow(value) {
  const row = object(value);
  return {
    ...common(row),
    id: plain(row.id),
    endpoint: plain(row.endpoint),
    startedAt: amount(row.started_at),
    elapsed: amount(row.elapsed),
    finishedAt: number(row.finished_at),
    session: text(row.session),
    agent: text(row.agent),
    parent: text(row.parent),
    number: number(row.number),
    project: text(row.project),
    http: number(row.http),
    error: plain(row.error),
    attempts: amount(row.attempts),
    input: number(row.input_tokens),
    output: number(row.output_tokens),
    cached: number(row.cached_tokens),
    timings: counts(row.timings),
    judge: counts(row.judge),
    clientId: text(row.client_id),
    caller: text(row.caller),
    fallback: plain(row.fallback),
    upstreamId: text(row.upstream_id),
    capture: plain(row.capture),
  };
}

function talk(row) {
  return {
    ...common(row),
    id: text(row.id),
    lastSeen: amount(row.last_seen),
    active: amount(row.active),
    requests: amount(row.requests),
    failures: amount(row.failures),
    input: amount(row.input_tokens),
    output: amount(row.output_tokens),
    cached: amount(row.cached_tokens),
  };
}

function agentRow(value) {
  const row = object(value);
  return { ...talk(row), parent: text(row.parent) };
}

function sessionRow(value) {
  const row = object(value);
  return { ...talk(row), project: text(row.project), history: numbers(row.history), agents: list(row.agents).map(agentRow) };
}

function allowanceRow(value) {
  const row = object(value);
  return {
    provider: plain(row.provider),
    window: plain(row.window),
    limit: plain(row.limit),
    used: amount(row.used),
    resetsAt: number(row.resets_at),
    asOf: number(row.as_of),
    reset: row.reset === true,
  };
}

function notice(value) {
  const row = object(value);
  return { at: amount(row.at), level: plain(row.level), message: plain(row.message), provider: text(row.provider), session: text(row.session) };
}

// Without the steps from before the proxy began.
function series(value, uptime) {
  const row = object(value);
  const step = amount(row.step) > 0 ? row.step : 10;
  const lived = Math.ceil(Math.max(0, uptime) / step) + 1;
  const [tokens, requests, failures] = [row.tokens, row.requests, row.failures].map((each) => numbers(each).slice(-lived));
  return { step, end: amount(row.end), tokens, requests, failures };
}

// Throws an Error with a sentence for the reader of the page.
export function readSnapshot(message) {
  const outer = object(message);
  if (outer.version !== VERSION) {
    throw new Error(`The proxy tells version ${plain(String(outer.version))} of the monitor, this page reads ${VERSION}: reload the page.`);
  }
  const found = object(outer.snapshot);
  tellApart(list(found.sessions).map((row) => text(object(row).id)));
  return {
    startedAt: amount(found.started_at),
    at: amount(found.snapshot_at),
    uptime: amount(found.uptime),
    program: plain(found.program) || "model-proxy",
    command: plain(found.command) || "model-proxy",
    url: plain(found.url),
    sandbox: found.sandbox === true,
    sessions: list(found.sessions).map(sessionRow),
    active: list(found.active).map(requestRow),
    recent: list(found.recent).map(requestRow),
    allowances: list(found.allowances).map(allowanceRow),
    notices: list(found.notices).map(notice),
    series: series(found.series, amount(found.uptime)),
  };
}

export function isBad(request) {
  return request.status === "failed" || request.status === "abandoned" || request.error !== "" || (request.http ?? 0) >= 400;
}

// What the newest request told, else all of its life; null when nothing is known. A session whose input nobody counts
// has no share.
export function cachedShare(row) {
  if (row.cache.cached !== null) return row.cache.cached;
  return row.cached > 0 && row.input > 0 ? Math.min(1, row.cached / row.input) : null;
}

export function wholeShare(row) {
  return row.input > 0 ? Math.min(1, row.cached / row.input) : null;
}

// Less than this is within what any upstream's blocks cost.
const LOST = 0.1;

export function isLost(view) {
  return view.reason !== "" || (view.expected !== null && view.cached !== null && view.expected - view.cached > LOST);
}

// The name that was asked for, and what it became.
export function modelName(row) {
  const { requested, resolved } = row;
  if (requested && resolved && requested !== resolved) return `${requested} → ${resolved}`;
  return resolved || requested || "";
}

export function tokenRate(row) {
  const { tokens, seconds } = row.throughput;
  return seconds > 0 ? tokens / seconds : 0;
}

const SOUGHT = ["id", "session", "agent", "project", "provider", "requested", "resolved", "effort", "status", "endpoint", "error", "message", "level"];

// Every word has to occur somewhere in the row, or in one of its agents.
export function matches(row, words) {
  if (words.length === 0) return true;
  const parts = [row, ...(row.agents ?? [])].flatMap((each) => SOUGHT.map((name) => each[name] ?? ""));
  const all = parts.join("\n").toLowerCase();
  return words.every((word) => all.includes(word));
}

export function wordsOf(filter) {
  return filter.toLowerCase().split(/\s+/).filter(Boolean);
}

// Numbers before words, what is missing last whatever the direction; equal rows keep their order.
export function sorted(rows, valueOf, descending) {
  const sign = descending ? -1 : 1;
  const missing = (value) => value === null || value === undefined || value === "";
  const compared = (a, b) => {
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    return sign * (isNumber(a) && isNumber(b) ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  };
  return rows.map((row) => [valueOf(row), row]).sort(([a], [b]) => compared(a, b)).map(([, row]) => row);
}

const DEEPEST = 8;

// How far below the main conversation an agent is; a circle of parents ends at a bound.
export function depthOf(agent, agents) {
  let depth = agent.id === null ? 0 : 1;
  let above = agents.find((each) => each.id !== null && each.id === agent.parent);
  while (above && depth < DEEPEST) {
    depth += 1;
    above = agents.find((each) => each.id !== null && each.id === above.parent);
  }
  return depth;
}

// The last `steps` values, zeros before them where there are fewer.
export function lastOf(values, steps) {
  const found = values.slice(-steps);
  return [...Array(steps - found.length).fill(0), ...found];
}

// Sums of each `size` values, counted from the newest: the last group is whole.
export function grouped(values, size) {
  const sums = [];
  for (let end = values.length; end > 0; end -= size) {
    sums.unshift(values.slice(Math.max(0, end - size), end).reduce((sum, each) => sum + each, 0));
  }
  return sums;
}

// Spans that a picture may show, in minutes: a proxy that has just begun needs no empty hour.
const SPANS_MIN = [10, 20, 30, 60];

export function spanOf(length, step) {
  const minutes = SPANS_MIN.find((each) => length * step <= each * 60) ?? SPANS_MIN.at(-1);
  return { minutes, steps: Math.max(1, Math.round((minutes * 60) / step)) };
}

// The same for whole numbers, whose half is one as well.
export function evenCeiling(value, least = 4) {
  const top = niceCeiling(value, least);
  return top % 2 === 0 ? top : top + 1;
}

// The next number above that is good to read at an axis.
export function niceCeiling(value, least = 1) {
  const wanted = Math.max(value, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 4, 5, 10].map((each) => each * power).find((each) => each >= wanted - 1e-9);
}
