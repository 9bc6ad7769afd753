// A snapshot as it came, with texts that are safe to show; then what is found in it: rows that match, in an order.

import { isNumber, plain, tellApart } from "./format.js";
import { SHEET } from "./sheet.js";

export const VERSION = 1;

// Throws an Error with a sentence for the reader of the page.
export function readSnapshot(message) {
  if (message?.version !== VERSION) {
    throw new Error(`The proxy reports version ${plain(String(message?.version))} of the monitor, this page reads ${VERSION}: reload the page.`);
  }
  const found = cleaned(message.snapshot);
  tellApart(found.sessions.map((row) => row.id).filter((id) => id !== null));
  const series = lived(found.series, found.uptime);
  return { ...found, series, program: found.program || "model-proxy", command: found.command || "model-proxy" };
}

// The same with every text in one line.
export function cleaned(value) {
  if (typeof value === "string") return plain(value);
  if (Array.isArray(value)) return value.map(cleaned);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, cleaned(each)]));
}

// Without the steps from before the proxy began.
function lived(series, uptime) {
  const steps = Math.ceil(Math.max(0, uptime) / series.step) + 1;
  const [tokens, requests, failures] = [series.tokens, series.requests, series.failures].map((each) => each.slice(-steps));
  return { ...series, tokens, requests, failures };
}

export function isBad(request) {
  return request.status === "failed" || request.status === "abandoned" || request.error !== "" || (request.http ?? 0) >= 400;
}

// That of the newest request, else of all its life; null when nothing is known. A session without counted input has no
// share.
export function cachedShare(row) {
  if (row.cache.cached !== null) return row.cache.cached;
  return row.cached_tokens > 0 && row.input_tokens > 0 ? Math.min(1, row.cached_tokens / row.input_tokens) : null;
}

export function wholeShare(row) {
  return row.input_tokens > 0 ? Math.min(1, row.cached_tokens / row.input_tokens) : null;
}

// Less than this is within what any upstream's blocks cost.
const LOST = 0.1;

export function isLost(view) {
  return view.reason !== "" || (view.expected !== null && view.cached !== null && view.expected - view.cached > LOST);
}

export function tokenRate(row) {
  const { tokens, seconds } = row.throughput;
  return seconds > 0 ? tokens / seconds : 0;
}

export function at(row, path) {
  return path === "" ? row : path.split(".").reduce((value, name) => value?.[name], row);
}

// Every word has to occur somewhere in the row, or in one of its agents.
export function matches(row, words) {
  if (words.length === 0) return true;
  const parts = [row, ...(row.agents ?? [])].flatMap((each) => SHEET.sought.map((path) => at(each, path) ?? ""));
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

// The next number above that is good to read at an axis, as is its half.
export function niceCeiling(value, least = 1) {
  const wanted = Math.max(value, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10].map((each) => each * power).find((each) => each >= wanted - 1e-9);
}
