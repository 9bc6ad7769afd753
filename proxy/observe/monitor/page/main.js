// The page: takes snapshots, draws them, and listens to keys.

import { copyButton } from "./cells.js";
import { SpeedChart, TrafficChart } from "./charts.js";
import { Connection } from "./connection.js";
import { Details } from "./details.js";
import { byId, el, setAttribute, setHidden, setText } from "./dom.js";
import { age, duration, plain } from "./format.js";
import { History } from "./history.js";
import { activeTable, recentTable, sessionsTable } from "./lists.js";
import { isBad, matches, readSnapshot, wordsOf } from "./model.js";
import { Allowances, CachedShares, Events } from "./panels.js";

const SECOND = 1000;
const IDLE_S = 3;

let snapshot = null;
// Of the reader's clock, when the newest snapshot came: the proxy's time goes on from there.
let cameAt = 0;
let drawing = false;

const details = new Details(() => drawSoon());
const openRequest = (row) => details.open("request", row.id, snapshot, now());
const openSession = (row, parent) => {
  if (parent) details.open("agent", [parent.id, row.id], snapshot, now());
  else details.open("session", row.id, snapshot, now());
};
const isOpenRequest = (row) => details.isOpen("request", row.id);
const isOpenSession = (row, parent) => (parent ? details.isOpen("agent", [parent.id, row.id]) : details.isOpen("session", row.id));

const filter = byId("filter");
const speed = new SpeedChart(byId("speed"), byId("speed-readout"), byId("speed-headline"));
const traffic = new TrafficChart(byId("traffic"), byId("traffic-readout"), byId("traffic-headline"));
const allowances = new Allowances(byId("allowances"));
const cached = new CachedShares(byId("cached"), (row) => openSession(row, null));
const sessions = sessionsTable(byId("sessions-body"), openSession, isOpenSession);
const active = activeTable(byId("active-body"), openRequest, isOpenRequest);
const recent = recentTable(byId("recent-body"), openRequest, isOpenRequest);
const events = new Events(byId("events"), openRequest);
const past = new History(byId("history"));
const connection = new Connection((message) => {
  snapshot = readSnapshot(message);
  cameAt = performance.now();
  drawSoon();
}, showConnection);

function now() {
  return snapshot === null ? 0 : snapshot.snapshot_at + (performance.now() - cameAt) / SECOND;
}

// ---- drawing

function drawSoon() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (snapshot !== null) draw();
  });
}

function draw() {
  const words = wordsOf(filter.value);
  const matching = (row) => matches(row, words);
  drawHead();
  speed.update(snapshot.series, snapshot.snapshot_at);
  traffic.update(snapshot.series);
  allowances.update(snapshot.allowances, now(), snapshot.command);
  cached.update(snapshot.sessions.filter(matching));
  drawList(sessions, snapshot.sessions, matching, "sessions");
  drawList(active, snapshot.active, matching, "active");
  drawList(recent, snapshot.recent, matching, "recent");
  const found = events.update(snapshot, matching);
  setText(byId("events-count"), found > 0 ? String(found) : "");
  details.update(snapshot, now());
}

function drawHead() {
  const [program, ...version] = snapshot.program.split(" ");
  setText(byId("program"), program);
  setAttribute(byId("program"), "title", version.join(" ") || null);
  setText(byId("address"), snapshot.url || baseUrl());
  setHidden(byId("sandbox"), !snapshot.sandbox);
  setText(byId("fact-active"), String(snapshot.active.length));
  setText(byId("fact-sessions"), String(snapshot.sessions.length));
  drawUptime();
  const title = snapshot.active.length > 0 ? `(${snapshot.active.length}) ${program}` : program;
  if (document.title !== title) document.title = title;
}

function drawUptime() {
  setText(byId("fact-uptime"), duration(snapshot.uptime + now() - snapshot.snapshot_at));
}

function drawList(table, rows, matching, name) {
  const shown = rows.filter(matching);
  table.update(shown, now());
  setText(byId(`${name}-count`), countWords(shown, rows, name));
  const which = rows.length > 0 ? "filtered" : "none";
  if (shown.length === 0) showEmpty(table.empty, name, which);
}

function countWords(shown, rows, name) {
  if (shown.length !== rows.length) return `${shown.length} of ${rows.length}`;
  if (name !== "recent" || rows.length === 0) return rows.length > 0 ? String(rows.length) : "";
  const failed = rows.filter(isBad).length;
  return failed > 0 ? `${rows.length}, ${failed} failed` : String(rows.length);
}

// ---- empty lists

function showEmpty(place, name, which) {
  if (place.dataset.which === which) return;
  place.dataset.which = which;
  place.replaceChildren(...(which === "filtered" ? nothingMatches() : NOTHING[name]()));
}

function nothingMatches() {
  const clear = el("button", { type: "button", class: "link", onclick: anotherFilter }, "Clear the filter");
  return [el("p", {}, "Nothing matches the filter. ", clear)];
}

const NOTHING = {
  sessions: () => [el("p", {}, "No session yet. Point a client at this proxy:"), ...ways()],
  active: () => [el("p", {}, "Nothing runs at the moment.")],
  recent: () => [el("p", {}, "No request has ended since the proxy started.")],
};

function ways() {
  const url = baseUrl();
  return [
    command("Claude Code, with everything set", `${snapshot?.command ?? "model-proxy"} claude`),
    command("Claude Code, by hand; with a caller key, that key in place of “unused”", `ANTHROPIC_BASE_URL=${url} ANTHROPIC_AUTH_TOKEN=unused claude`),
    command("Whether it answers", `curl ${url}/v1/models`),
  ];
}

function command(words, text) {
  return el("div", { class: "command" }, el("p", { class: "quiet small" }, words), el("div", {}, el("code", {}, text), copyButton(() => text, `Copy: ${words}`)));
}

// Where this page is, without its own name: the base URL of clients, under a prefix as well.
function baseUrl() {
  return location.origin + location.pathname.replace(/\/monitor$/, "");
}

// ---- now, or the history

const VIEWS = ["#now", "#history"];

// Of the address, so that a bookmark and a reload keep it.
function seesHistory() {
  return location.hash === "#history";
}

function showView() {
  const wanted = seesHistory();
  if (wanted) details.close();
  setHidden(byId("main"), wanted);
  setHidden(byId("filter-box"), wanted);
  past.show(wanted);
  setAttribute(byId("view-now"), "aria-current", wanted ? null : "page");
  setAttribute(byId("view-history"), "aria-current", wanted ? "page" : null);
  const [place, words] = wanted ? ["#history", "Skip to the history"] : ["#sessions", "Skip to the sessions"];
  setAttribute(byId("skip"), "href", place);
  setText(byId("skip"), words);
}

// ---- connection

const WORDS = {
  connecting: "Connecting",
  live: "Live",
  silent: "No news",
  reconnecting: "Reconnecting",
  gone: "Proxy gone",
  refused: "Refused",
  paused: "Paused",
};

function showConnection({ kind, detail }) {
  setAttribute(byId("connection"), "data-kind", kind);
  setAttribute(document.body, "data-connection", kind);
  setText(byId("connection-words"), WORDS[kind]);
  setHidden(byId("connection-again"), !["reconnecting", "gone", "refused"].includes(kind));
  const banner = byId("banner");
  const words = bannerOf(kind, plain(detail));
  setHidden(banner, words === "");
  setText(banner, words);
  showAge();
}

function bannerOf(kind, detail) {
  const last = snapshot === null ? "" : " Anything shown is what was known last.";
  if (kind === "gone") return `The proxy does not answer at ${baseUrl()}. Was it stopped? “${snapshot?.command ?? "model-proxy"} serve” starts it, and this page then reconnects.${last}`;
  if (kind === "refused") return `The proxy refuses the stream: ${detail}${last}`;
  return kind === "silent" ? `The connection is open, but the proxy does not answer: it may hang, or be very busy, or too many tabs show this page.${last}` : "";
}

function showAge() {
  const { kind, retryAt } = connection.state;
  const silence = connection.silence();
  const wait = Math.ceil((retryAt - performance.now()) / SECOND);
  const next = retryAt > 0 && wait > 0 ? `next try in ${wait} s` : "";
  const old = silence === null ? "" : kind === "live" ? idle(silence) : `as of ${age(silence)}`;
  setText(byId("connection-age"), [old, next].filter(Boolean).join(", "));
}

// What has not changed is still so.
function idle(silence) {
  return silence < IDLE_S ? "now" : `idle ${duration(silence)}`;
}

function tick() {
  connection.watch();
  showAge();
  if (snapshot === null || document.hidden || connection.state.kind !== "live") return;
  // Ages go on where nothing changes.
  if (connection.silence() > IDLE_S) drawSoon();
  drawUptime();
  active.tick(now());
}

// ---- keys

function clearFilter() {
  filter.value = "";
  drawSoon();
}

function anotherFilter() {
  clearFilter();
  filter.focus();
}

const KEYS = {
  "/": () => filter.focus(),
  h: () => byId(seesHistory() ? "view-now" : "view-history").click(),
  t: () => byId("theme").click(),
  "?": () => byId("help").showModal(),
};

function escape() {
  if (byId("help").open) return;
  const writes = document.activeElement === filter;
  if (!writes && details.close()) return;
  clearFilter();
  if (writes) filter.blur();
}

function key(event) {
  if (event.key === "Escape") return escape();
  const writes = event.target.closest("input:not([type=radio]), select, textarea, dialog");
  if (writes || event.ctrlKey || event.altKey || event.metaKey || !(event.key in KEYS)) return undefined;
  event.preventDefault();
  return KEYS[event.key]();
}

document.addEventListener("keydown", key);
filter.addEventListener("input", drawSoon);
byId("help-open").addEventListener("click", () => byId("help").showModal());
byId("connection-again").addEventListener("click", () => connection.again());
window.addEventListener("hashchange", () => {
  showView();
  if (VIEWS.includes(location.hash)) scrollTo(0, 0);
});
showView();
setInterval(tick, SECOND);
connection.start();
