// Numbers, times and names as they are shown. Nothing here touches the page.

export const NOTHING = "–";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// 999, 1.2k, 3.4M
export function tokens(count) {
  if (!isNumber(count)) return NOTHING;
  if (count < 1000) return String(Math.round(count));
  for (const [size, unit] of [[1e3, "k"], [1e6, "M"], [1e9, "G"]]) {
    const value = count / size;
    if (value < 999.5) return (value < 99.95 ? value.toFixed(1) : value.toFixed(0)) + unit;
  }
  return "999G+";
}

export function whole(count) {
  return isNumber(count) ? Math.round(count).toLocaleString("en") : NOTHING;
}

// 0.4 s, 42 s, 2 m 05 s, 1 h 03 m, 3 d 04 h
export function duration(seconds) {
  if (!isNumber(seconds)) return NOTHING;
  const s = Math.max(0, seconds);
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < MINUTE) return `${Math.floor(s)} s`;
  const [large, small, size] = s < HOUR ? ["m", "s", MINUTE] : s < DAY ? ["h", "m", HOUR] : ["d", "h", DAY];
  const rest = Math.floor((s % size) / { s: 1, m: MINUTE, h: HOUR }[small]);
  return `${Math.floor(s / size)} ${large} ${String(rest).padStart(2, "0")} ${small}`;
}

// One unit is enough to say how long ago something was.
export function age(seconds) {
  if (!isNumber(seconds)) return NOTHING;
  if (seconds < 2) return "now";
  const [size, unit] = seconds < MINUTE ? [1, "s"] : seconds < HOUR ? [MINUTE, "min"] : seconds < DAY ? [HOUR, "h"] : [DAY, "d"];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

export function milliseconds(ms) {
  if (!isNumber(ms)) return NOTHING;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : duration(ms / 1000);
}

// A share of 0 to 1.
export function share(value) {
  return isNumber(value) ? `${Math.round(value * 100)} %` : NOTHING;
}

export function bytes(count) {
  if (!isNumber(count)) return NOTHING;
  if (count < 1024) return `${Math.round(count)} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 / 1024).toFixed(1)} MB`;
}

export function decimal(value) {
  if (!isNumber(value)) return NOTHING;
  return value < 99.95 ? value.toFixed(1) : tokens(value);
}

// Tokens where there are any; a service that counts none is shown by what it sent.
export function rate(throughput) {
  const { tokens: count, seconds, bytes: size, chunks } = throughput;
  if (!(seconds > 0)) return NOTHING;
  if (count > 0) return `${decimal(count / seconds)} tok/s`;
  if (size > 0) return `${bytes(size / seconds)}/s`;
  return chunks > 0 ? `${decimal(chunks / seconds)} ev/s` : NOTHING;
}

export function clock(at) {
  if (!isNumber(at)) return NOTHING;
  return new Date(at * 1000).toLocaleTimeString("en-GB");
}

// With the day where it is not today's.
export function moment(at, now) {
  if (!isNumber(at)) return NOTHING;
  const date = new Date(at * 1000);
  const day = date.toLocaleDateString("en-CA");
  return day === new Date(now * 1000).toLocaleDateString("en-CA") ? clock(at) : `${day} ${clock(at).slice(0, 5)}`;
}

// "in 2 h 05 m", for what lies ahead.
export function ahead(seconds) {
  return seconds < MINUTE ? "in less than a minute" : `in ${duration(seconds)}`;
}

const LONGEST = 2000;
// Characters that draw nothing, or turn the direction of what stands beside them.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/g;

// A text of others, in one line.
export function plain(text) {
  return typeof text === "string" ? text.slice(0, LONGEST).replace(HIDDEN, " ").trim() : "";
}

// A name and a number behind it. The mark keeps them in this order when the name is written from right to left.
export function numbered(name, number) {
  return number === null ? name : `${name}\u200e #${number}`;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/i;
const SHORT = 14;

// Ids that would look like another one when they are short.
let alike = new Set();

export function tellApart(ids) {
  alike = new Set();
  const short = new Map();
  for (const id of new Set(ids)) {
    const name = shortId(id);
    short.set(name, [...(short.get(name) ?? []), plain(id)]);
  }
  alike = new Set([...short.values()].filter((each) => each.length > 1).flat());
}

// Of a UUID its first group says enough, unless another one has the same: then all of it, in the room there is.
export function shortId(id) {
  const text = plain(id);
  if (alike.has(text)) return text;
  if (UUID.test(text)) return text.slice(0, 8);
  return text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text;
}

export function count(number, one, many = `${one}s`) {
  return `${whole(number)} ${number === 1 ? one : many}`;
}
