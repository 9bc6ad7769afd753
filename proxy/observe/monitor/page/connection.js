// The stream of snapshots: opened while the page is visible, reopened when it breaks, and described in words.

const EVENTS = "monitor/events";
const SNAPSHOT = "monitor";
const FIRST_WAIT_S = 1;
const LONGEST_WAIT_S = 10;
// A tab that was left for a moment needs no new stream.
const HIDDEN_S = 15;
// A snapshot comes when something changed. After this without one the proxy is asked whether it is there.
const QUIET_S = 15;
const ANSWER_MS = 5000;
// A TypeError: a member is missing, since the proxy is another build than the one that this page came from.
const FAULTS = [
  [SyntaxError, "The proxy sent something that is no snapshot."],
  [TypeError, "The proxy sends another form of the monitor: reload the page."],
];

// kind   connecting, live, silent, reconnecting, gone, refused, paused
// words  for the reader; `detail`: what the proxy said
export class Connection {
  #source = null;
  #timer = 0;
  #hiddenTimer = 0;
  #wait = FIRST_WAIT_S;
  #lastAt = 0;
  #askedAt = 0;
  #onSnapshot;
  #onState;
  state = { kind: "connecting", detail: "", retryAt: 0 };

  constructor(onSnapshot, onState) {
    this.#onSnapshot = onSnapshot;
    this.#onState = onState;
  }

  start() {
    document.addEventListener("visibilitychange", () => this.#seen(!document.hidden));
    window.addEventListener("online", () => this.again());
    this.#open();
  }

  // Asked by the reader, who need not wait.
  again() {
    if (this.#source === null && this.state.kind !== "paused") this.#open();
  }

  // Seconds since the newest snapshot came, null before the first.
  silence() {
    return this.#lastAt === 0 ? null : (performance.now() - this.#lastAt) / 1000;
  }

  // Called every second. A proxy with nothing to tell and one that hangs look the same in the stream.
  watch() {
    const asked = (performance.now() - this.#askedAt) / 1000;
    const quiet = this.#source !== null && (this.silence() ?? 0) > QUIET_S;
    if (quiet && asked > QUIET_S) this.#ask();
  }

  async #ask() {
    this.#askedAt = performance.now();
    const source = this.#source;
    const answer = await fetch(SNAPSHOT, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(ANSWER_MS) })
      .then((found) => (found.ok ? found.text() : null))
      .catch(() => null);
    if (source !== this.#source) return;
    if (answer === null) this.#tell("silent");
    else this.#message(answer);
  }

  #tell(kind, detail = "", retryAt = 0) {
    this.state = { kind, detail, retryAt };
    this.#onState(this.state);
  }

  #open() {
    clearTimeout(this.#timer);
    this.#close();
    const source = (this.#source = new EventSource(EVENTS));
    source.onmessage = (event) => this.#message(event.data);
    source.addEventListener("snapshot", (event) => this.#message(event.data));
    source.onerror = () => this.#broken();
  }

  #close() {
    this.#source?.close();
    this.#source = null;
  }

  #message(data) {
    try {
      this.#onSnapshot(JSON.parse(data));
    } catch (error) {
      this.#close();
      this.#tell("refused", FAULTS.find(([kind]) => error instanceof kind)?.[1] ?? error.message);
      return;
    }
    this.#wait = FIRST_WAIT_S;
    this.#lastAt = performance.now();
    if (this.state.kind !== "live") this.#tell("live");
  }

  // The browser's own second try says nothing and hides why: the reason is asked for, and the next try is ours.
  async #broken() {
    this.#close();
    const wait = this.#wait;
    this.#wait = Math.min(LONGEST_WAIT_S, wait * 2);
    this.#timer = setTimeout(() => this.#open(), wait * 1000);
    const retryAt = performance.now() + wait * 1000;
    this.#tell("reconnecting", "", retryAt);
    const [kind, detail] = await reason();
    if (this.#source === null && this.state.kind === "reconnecting") this.#tell(kind, detail, retryAt);
  }

  #seen(visible) {
    clearTimeout(this.#hiddenTimer);
    if (!visible) this.#hiddenTimer = setTimeout(() => this.#pause(), HIDDEN_S * 1000);
    else if (this.state.kind === "paused") {
      this.#tell("connecting");
      this.#open();
    }
  }

  #pause() {
    clearTimeout(this.#timer);
    this.#close();
    this.#tell("paused");
  }
}

// Why there is no stream: [kind, what the proxy says].
async function reason() {
  const ended = new AbortController();
  const limit = setTimeout(() => ended.abort(), ANSWER_MS);
  let answer;
  try {
    answer = await fetch(EVENTS, { signal: ended.signal });
  } catch {
    return ["gone", ""];
  } finally {
    clearTimeout(limit);
  }
  if (answer.ok) {
    ended.abort();
    return ["reconnecting", ""];
  }
  const said = await answer.json().catch(() => ({}));
  return ["refused", said?.error?.message ?? `The proxy answers with status ${answer.status}.`];
}
