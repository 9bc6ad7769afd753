// Numbers, times and names as they are shown, by the rules of `words.py`. Nothing here touches the page.

export const NOTHING = "–";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// 999, 1.2k, 126k, 3.4M
export function tokens(count) {
  if (!isNumber(count)) return NOTHING;
  if (count < 1000) return count.toFixed(0);
  for (const [size, unit] of [[1e3, "k"], [1e6, "M"], [1e9, "G"]]) {
    const value = count / size;
    if (value < 999.5) return (value < 99.95 ? value.toFixed(1) : value.toFixed(0)) + unit;
  }
  return "999G+";
}

export function whole(count) {
  return isNumber(count) ? count.toLocaleString("en") : NOTHING;
}

// 42s, 2m05s, 1h03m, 3d04h
export function duration(seconds) {
  const past = Math.floor(Math.max(0, seconds));
  if (past < MINUTE) return `${past}s`;
  const [large, small, size, rest] = past < HOUR ? ["m", "s", MINUTE, 1] : past < DAY ? ["h", "m", HOUR, MINUTE] : ["d", "h", DAY, HOUR];
  return `${Math.floor(past / size)}${large}${String(Math.floor((past % size) / rest)).padStart(2, "0")}${small}`;
}

// How long a request took, or takes: 0.4s, 42s
export function took(seconds) {
  return seconds >= 0 && seconds < 9.95 ? `${seconds.toFixed(1)}s` : duration(seconds);
}

// One unit is enough to say how long ago something was.
export function age(seconds) {
  if (seconds < 2) return "now";
  const [size, unit] = [[DAY, "d"], [HOUR, "h"], [MINUTE, "m"], [1, "s"]].find(([each]) => seconds >= each);
  return `${Math.floor(seconds / size)}${unit} ago`;
}

export function milliseconds(ms) {
  if (ms >= 1000) return took(ms / 1000);
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

export function percent(number) {
  return `${Math.floor(number + 0.5)}%`;
}

// A share of 0 to 1.
export function share(value) {
  return isNumber(value) ? percent(value * 100) : NOTHING;
}

// Of so many bytes.
export function data(count) {
  if (count < 1024) return `${count.toFixed(0)} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 / 1024).toFixed(1)} MB`;
}

export function decimal(number) {
  return number < 99.95 ? number.toFixed(1) : tokens(number);
}

// Tokens where there are any; a service that counts none is shown by what it sent.
export function rate({ tokens: count, seconds, bytes, chunks }) {
  if (!(seconds > 0)) return NOTHING;
  if (count > 0) return `${decimal(count / seconds)} tok/s`;
  if (bytes > 0) return `${data(bytes / seconds)}/s`;
  return chunks > 0 ? `${decimal(chunks / seconds)} ev/s` : NOTHING;
}

export function clock(at) {
  return isNumber(at) ? new Date(at * 1000).toLocaleTimeString("en-GB") : NOTHING;
}

// With the day where it is not today's.
export function moment(at, now) {
  if (!isNumber(at)) return NOTHING;
  const [day, today] = [at, now].map((each) => new Date(each * 1000).toLocaleDateString("en-CA"));
  return day === today ? clock(at) : `${day} ${clock(at)}`;
}

const LONGEST = 2000;
// Characters that draw nothing, or turn the direction of their neighbours.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/g;

// A text of others, in one line.
export function plain(text) {
  return String(text).slice(0, LONGEST).replace(HIDDEN, " ").trim();
}

// The name that was asked for, and what it became.
export function modelName({ requested, resolved }) {
  if (requested && resolved && requested !== resolved) return `${requested} → ${resolved}`;
  return resolved || requested || "";
}

// A name and a number after it. The mark keeps them in this order when the name is written from right to left.
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
  for (const id of new Set(ids)) short.set(shortId(id), [...(short.get(shortId(id)) ?? []), id]);
  alike = new Set([...short.values()].filter((each) => each.length > 1).flat());
}

// Of a UUID its first group says enough, unless another one has the same: then all of it, in the room there is.
export function shortId(id) {
  if (alike.has(id)) return id;
  if (UUID.test(id)) return id.slice(0, 8);
  return id.length > SHORT ? `${id.slice(0, SHORT - 1)}…` : id;
}

export function count(number, one, many = `${one}s`) {
  return `${whole(number)} ${number === 1 ? one : many}`;
}
