// The panels beside the lists: allowances, cached shares, events.

import { cacheBar, cacheWords, statusPart, warning } from "./cells.js";
import { KeyedList, el, setAttribute, setHidden, setStyle, setText } from "./dom.js";
import { NOTHING, age, clock, duration, modelName, moment, percent, share, shortId } from "./format.js";
import { cachedShare, isBad, isLost, wholeShare } from "./model.js";
import { sessionName } from "./lists.js";

const MOST_BARS = 8;
const MOST_EVENTS = 40;
const NEAR = 80;
const LAST = 95;

// ---- allowances

// The use since then is unknown.
function hasBegunAgain(row, now) {
  return row.reset || (row.resets_at !== null && row.resets_at <= now);
}

function allowanceLevel(row, now) {
  if (hasBegunAgain(row, now)) return ["quiet", "reset since"];
  if (row.used >= 100) return ["bad", "used up"];
  if (row.used >= LAST) return ["bad", "almost used up"];
  return row.used >= NEAR ? ["wait", "running low"] : ["", ""];
}

function makeWindow() {
  const name = el("span", { class: "window-name" });
  const used = el("strong", { class: "number" });
  const fill = el("span", { class: "fill" });
  const bar = el("span", { class: "bar allowance-bar", role: "meter", "aria-valuemin": "0", "aria-valuemax": "100" }, fill);
  for (const mark of [NEAR, LAST]) {
    const tick = el("span", { class: "threshold" });
    setStyle(tick, "left", `${mark}%`);
    bar.append(tick);
  }
  const level = warning("");
  const reset = el("span");
  const asOf = el("span", { class: "as-of" });
  const node = el("li", { class: "window" }, el("p", { class: "window-head" }, name, level, used), bar, el("p", { class: "window-foot quiet small" }, reset, asOf));
  node.parts = { name, used, fill, bar, level, reset, asOf };
  return node;
}

function fillWindow(node, { row, now }) {
  const { name, used, fill, bar, level, reset, asOf } = node.parts;
  const [tone, words] = allowanceLevel(row, now);
  const title = [row.window, row.limit].filter(Boolean).join(" · ");
  const known = !hasBegunAgain(row, now);
  const shown = known ? percent(row.used) : NOTHING;
  const part = known ? Math.min(100, Math.max(0, row.used)) : 0;
  setText(name, title);
  setText(used, shown);
  setStyle(fill, "width", `${part}%`);
  setAttribute(node, "data-tone", tone || null);
  setHidden(level, !words);
  setText(level.lastChild, words);
  setAttribute(bar, "aria-label", `${row.provider} ${title}`);
  setAttribute(bar, "aria-valuenow", Math.round(part));
  setAttribute(bar, "aria-valuetext", `${known ? `${shown} used` : "use not known"}${words ? `, ${words}` : ""}`);
  setText(reset, resetWords(row, now));
  setAttribute(reset, "title", row.resets_at === null ? null : moment(row.resets_at, now));
  setText(asOf, row.as_of === null ? "" : `reported ${age(now - row.as_of)}`);
}

function resetWords(row, now) {
  if (row.resets_at === null) return row.reset ? "its use is not reported yet" : "no reset reported";
  const left = row.resets_at - now;
  return left > 0 ? `resets in ${duration(left)}` : `reset at ${moment(row.resets_at, now)}`;
}

function makeProvider({ provider }) {
  const windows = el("ul", { class: "windows" });
  const node = el("li", { class: "provider" }, el("h3", {}, el("span", { class: "chip small", "data-provider": provider }, provider)), windows);
  node.list = new KeyedList(windows, makeWindow, fillWindow);
  return node;
}

function fillProvider(node, { rows, now }) {
  node.list.update(rows.map((row) => ({ row, now })), ({ row }) => `${row.window} ${row.limit}`);
}

export class Allowances {
  constructor(place) {
    const list = el("ul", { class: "providers" });
    this.command = el("code", {});
    this.empty = el("p", { class: "empty quiet" }, "No provider has reported yet how much is left: most do so with their first answer. ", this.command, " asks them.");
    this.list = new KeyedList(list, makeProvider, fillProvider);
    place.append(list, this.empty);
  }

  update(rows, now, command) {
    setText(this.command, `${command} usage`);
    const groups = Map.groupBy ? Map.groupBy(rows, (row) => row.provider) : groupBy(rows);
    this.list.update([...groups].map(([provider, each]) => ({ provider, rows: each, now })), ({ provider }) => provider);
    setHidden(this.empty, rows.length > 0);
  }
}

function groupBy(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.provider, [...(groups.get(row.provider) ?? []), row]);
  return groups;
}

// ---- cached share of the input, a bar for each session

export class CachedShares {
  constructor(place, open) {
    const list = el("ul", { class: "shares" });
    this.open = open;
    this.list = new KeyedList(list, () => this.#make(), (node, row) => this.#fill(node, row));
    this.empty = el("p", { class: "empty quiet" }, "No session has reported yet how much of its input came from the upstream's cache.");
    place.append(list, this.empty);
  }

  update(sessions) {
    const known = sessions.filter((row) => cachedShare(row) !== null);
    const newest = known.sort((a, b) => b.last_seen - a.last_seen).slice(0, MOST_BARS);
    this.list.update(newest.sort((a, b) => (a.id ?? "").localeCompare(b.id ?? "")), (row) => row.id ?? "");
    setHidden(this.empty, newest.length > 0);
  }

  #make() {
    const name = el("button", { type: "button", class: "link cut" });
    const number = el("strong", { class: "number" });
    const [bar, fillBar] = cacheBar();
    const reason = el("span", { class: "reason" });
    const all = el("span", { class: "as-of" });
    const node = el("li", {}, el("p", { class: "window-head" }, name, number), bar, el("p", { class: "window-foot quiet small" }, reason, all));
    node.parts = { name, number, fillBar, reason, all };
    name.addEventListener("click", () => this.open(node.row));
    return node;
  }

  #fill(node, row) {
    node.row = row;
    const { name, number, fillBar, reason, all } = node.parts;
    const lost = isLost(row.cache);
    setText(name, sessionName(row));
    setAttribute(name, "aria-label", `${sessionName(row)}: ${cacheWords(row)}. Details`);
    setText(number, share(cachedShare(row)));
    fillBar(cachedShare(row), row.cache.expected, lost);
    const expected = row.cache.expected === null ? "" : `${share(row.cache.expected)} expected`;
    setText(reason, lost ? row.cache.reason || `${expected}; the reason is not known` : expected);
    setAttribute(reason, "data-lost", lost ? "" : null);
    setText(all, wholeShare(row) === null ? "" : `${share(wholeShare(row))} in all`);
  }
}

// ---- events: notices, and requests that went wrong

function eventsOf(snapshot) {
  const notices = snapshot.notices.map((row) => ({ ...row, request: null, key: `${row.at} ${row.message}` }));
  const bad = snapshot.recent.filter(isBad).map((row) => ({
    at: row.finished_at ?? row.started_at,
    level: row.status,
    message: row.error || (row.http === null ? row.status : `HTTP ${row.http}`),
    provider: row.provider,
    session: row.session,
    project: row.project,
    resolved: modelName(row),
    request: row,
    key: row.id,
  }));
  return [...notices, ...bad].sort((a, b) => b.at - a.at);
}

export class Events {
  constructor(place, open) {
    this.open = open;
    this.element = el("ol", { class: "events" });
    this.list = new KeyedList(this.element, () => this.#make(), (node, row) => this.#fill(node, row));
    this.empty = el("p", { class: "empty quiet" }, "Nothing went wrong.");
    place.append(this.element, this.empty);
  }

  // Returns how many there are.
  update(snapshot, matching) {
    const found = eventsOf(snapshot).filter(matching);
    this.list.update(found.slice(0, MOST_EVENTS), (row) => row.key);
    setHidden(this.empty, found.length > 0);
    return found.length;
  }

  #make() {
    const at = el("time", { class: "quiet" });
    const [status, fillStatus] = statusPart();
    const message = el("p", { class: "message" });
    const about = el("span", { class: "about" });
    const more = el("button", { type: "button", class: "link" }, "Details");
    const node = el("li", {}, at, status, el("div", { class: "event-text" }, message, el("p", { class: "window-foot quiet small" }, about, more)));
    node.parts = { at, fillStatus, message, about, more };
    more.addEventListener("click", () => this.open(node.row.request));
    return node;
  }

  #fill(node, row) {
    node.row = row;
    const { at, fillStatus, message, about, more } = node.parts;
    setText(at, clock(row.at));
    fillStatus(row.level);
    setText(message, row.message);
    const session = row.project ?? (row.session ? shortId(row.session) : "");
    setText(about, [row.provider, row.resolved, session].filter(Boolean).join(" · "));
    setHidden(more, row.request === null);
    setAttribute(more, "aria-label", `Details of the request: ${row.message}`);
  }
}
