// A picture over time. Shapes are stretched to the room there is; words and lines over them are HTML, which is not
// stretched.

import { el, setAttribute, setHidden, setStyle, setText, svg } from "./dom.js";

export const W = 600;
export const H = 120;

// readout  the element with the words of the place that the reader points at
// shown    called with the number of that place, or null
export class Picture {
  #readout;
  #shown;
  #words = [];
  #spoken = [];
  #rest = "";
  #at = null;

  constructor(place, readout, name, shown = () => {}) {
    this.#readout = readout;
    this.#shown = shown;
    this.name = name;
    this.unkept = svg("rect", { class: "unkept", width: 0, height: H });
    this.drawing = svg("svg", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", "aria-hidden": "true" }, this.unkept);
    this.cursor = el("div", { class: "cursor", hidden: true });
    this.labels = el("div", { class: "levels quiet", "aria-hidden": "true" });
    this.times = el("div", { class: "times quiet", "aria-hidden": "true" });
    this.empty = el("span");
    this.frame = el("div", { class: "frame", role: "img", tabindex: "0" }, this.drawing, this.labels, this.cursor, el("p", { class: "empty-picture quiet" }, this.empty));
    // What a screen reader says while its user walks along the picture.
    this.voice = el("p", { class: "hidden-text", role: "status" });
    place.append(el("div", { class: "picture" }, this.frame, this.times, this.voice));
    this.frame.addEventListener("pointermove", (event) => this.#point(event));
    this.frame.addEventListener("pointerleave", () => this.#show(null));
    this.frame.addEventListener("blur", () => this.#left());
    this.frame.addEventListener("keydown", (event) => this.#key(event));
  }

  // words  for each place, oldest first; `rest`: the text without a pointer; `spoken`: the words with what is seen only
  describe(words, rest, summary, spoken = words) {
    this.#words = words;
    this.#spoken = spoken;
    this.#rest = rest;
    setAttribute(this.frame, "aria-label", `${this.name}: ${summary}`);
    this.#show(this.#at === null ? null : Math.min(this.#at, words.length - 1));
  }

  level(parts) {
    this.labels.replaceChildren(...parts.map(([share, words]) => {
      const label = el("span", {}, words);
      setStyle(label, "top", `${share * 100}%`);
      return label;
    }));
  }

  span(minutes) {
    if (this.times.dataset.minutes === String(minutes)) return;
    this.times.dataset.minutes = String(minutes);
    const marks = [1, 0.75, 0.5, 0.25].map((part) => `${minutes * part} min`.replace(".5", "½"));
    this.times.replaceChildren(...[...marks, "now"].map((words) => el("span", {}, words)));
  }

  // Words below places: [share of the width, text, whether it is shown where there is little room].
  mark(parts) {
    setAttribute(this.times, "data-placed", "");
    this.times.replaceChildren(...parts.map(([share, words, always]) => {
      const label = el("span", { "data-more": !always }, words);
      setStyle(label, "left", `${share * 100}%`);
      return label;
    }));
  }

  // The part of the time at the left of which nothing is kept: no use would look the same.
  shade(share) {
    setAttribute(this.unkept, "width", share * W);
  }

  #point(event) {
    const box = this.frame.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * this.#words.length);
    this.#show(Math.min(this.#words.length - 1, Math.max(0, place)));
  }

  #key(event) {
    const last = this.#words.length - 1;
    const from = this.#at ?? last + 1;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#show(Math.min(last, Math.max(0, to)));
    setText(this.voice, this.#spoken[this.#at]);
  }

  #left() {
    this.#show(null);
    setText(this.voice, "");
  }

  #show(at) {
    this.#at = at;
    setHidden(this.cursor, at === null);
    if (at !== null) setStyle(this.cursor, "left", `${((at + 0.5) / this.#words.length) * 100}%`);
    setText(this.#readout, at === null ? this.#rest : this.#words[at] ?? "");
    this.#shown(at);
  }
}

export function gridLine(y) {
  return svg("path", { class: "grid", d: `M0 ${y}H${W}` });
}

// Bars from the ground up; a few of many are seen all the same.
export function barsPath(counts, top) {
  const [at, wide] = barsOf(counts.length);
  return counts
    .map((count, index) => (count > 0 ? `M${at(index)} ${H}v-${Math.max(2, (count / top) * H * 0.98).toFixed(2)}h${wide}V${H}z` : ""))
    .join("");
}

const MANY = 12;

// Where so many bars begin, and how wide they are: few of them leave more room between.
export function barsOf(number) {
  const room = W / number;
  const share = number < MANY ? 0.5 : 0.72;
  return [(index) => (room * (index + (1 - share) / 2)).toFixed(2), (room * share).toFixed(2)];
}

export function fillHeadline(node, number, words) {
  if (!node.firstChild) node.append(el("strong"), el("span"));
  setText(node.firstChild, number);
  setText(node.lastChild, words);
}
