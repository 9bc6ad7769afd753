// The two pictures of the last hour.

import { setAttribute, setText, svg } from "./dom.js";
import { clock, count, decimal, tokens } from "./format.js";
import { evenCeiling, grouped, lastOf, niceCeiling, spanOf } from "./model.js";
import { H, Picture, W, barsPath, fillHeadline, gridLine } from "./picture.js";

const MOST_BARS = 60;

export class SpeedChart {
  constructor(place, readout, headline) {
    this.picture = new Picture(place, readout, "Tokens per second");
    this.headline = headline;
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line" });
    this.picture.drawing.append(gridLine(H * 0.02), gridLine(H / 2), gridLine(H - 0.5), this.area, this.line);
  }

  update(series, now) {
    const { minutes, steps } = spanOf(series.tokens.length, series.step);
    const rates = ratesOf(series, now);
    const values = lastOf(rates, steps);
    const top = niceCeiling(Math.max(...values), 10);
    const points = values.map((value, index) => [((index + 0.5) / steps) * W, H - (value / top) * H * 0.98]);
    const line = points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    setAttribute(this.line, "d", line);
    setAttribute(this.area, "d", `${line}L${points.at(-1)[0].toFixed(1)} ${H}L${points[0][0].toFixed(1)} ${H}z`);
    this.picture.level([[0.02, tokens(top)], [0.5, tokens(top / 2)], [0.98, "0"]]);
    this.picture.span(minutes);
    this.#words(series, values, minutes);
  }

  #words(series, values, minutes) {
    const minute = Math.max(1, Math.round(60 / series.step));
    const recent = lastOf(values, minute).reduce((sum, each) => sum + each, 0) / minute;
    const most = Math.max(...values);
    const start = series.end - values.length * series.step;
    const words = values.map((value, index) => `${clock(start + index * series.step)}  ${decimal(value)} tok/s`);
    const headline = most > 0 ? [decimal(recent), "tok/s over the last minute"] : ["0", "tok/s; no output yet"];
    fillHeadline(this.headline, ...headline);
    setText(this.picture.empty, most > 0 ? "" : "Nothing was generated in this time");
    this.picture.describe(words, `last ${minutes} minutes${most > 0 ? `, most ${decimal(most)}` : ""}`, `${decimal(recent)} over the last minute, at most ${decimal(most)} in the last ${minutes} minutes`);
  }
}

// Tokens of a step -> per second. The newest step is not over: what it misses is taken from the one before.
export function ratesOf(series, now) {
  const rates = series.tokens.map((each) => each / series.step);
  const missing = Math.min(1, Math.max(0, (series.end - now) / series.step));
  if (rates.length > 1) rates[rates.length - 1] += rates.at(-2) * missing;
  return rates;
}

export class TrafficChart {
  constructor(place, readout, headline) {
    this.picture = new Picture(place, readout, "Requests and failures");
    this.headline = headline;
    this.good = svg("path", { class: "good" });
    this.bad = svg("path", { class: "bad" });
    this.picture.drawing.append(gridLine(H * 0.02), gridLine(H / 2), svg("path", { class: "axis", d: `M0 ${H - 0.5}H${W}` }), this.good, this.bad);
  }

  update(series) {
    const { minutes, steps } = spanOf(series.requests.length, series.step);
    const size = Math.max(1, Math.ceil(steps / MOST_BARS));
    const bars = Math.ceil(steps / size);
    const all = lastOf(grouped(lastOf(series.requests, steps), size), bars);
    const bad = lastOf(grouped(lastOf(series.failures, steps), size), bars);
    // One scale: what failed is the lower part of a bar. A failure may be reported in a later step than its request.
    const top = evenCeiling(Math.max(...all, ...bad));
    setAttribute(this.good, "d", barsPath(all, top));
    setAttribute(this.bad, "d", barsPath(bad, top));
    this.picture.level([[0.02, tokens(top)], [0.5, tokens(top / 2)], [0.98, "0"]]);
    this.picture.span(minutes);
    this.#words(series, all, bad, size * series.step, minutes);
  }

  #words(series, all, bad, length, minutes) {
    const sum = (values) => values.reduce((total, each) => total + each, 0);
    const [total, failed] = [sum(all), sum(bad)];
    const start = series.end - all.length * length;
    const words = all.map((each, index) => `${clock(start + index * length).slice(0, 5)}  ${count(each, "request")}, ${bad[index]} failed`);
    const rest = `last ${minutes} minutes`;
    fillHeadline(this.headline, tokens(total), failed > 0 ? `${total === 1 ? "request" : "requests"}, ${tokens(failed)} failed` : `${total === 1 ? "request" : "requests"}, none failed`);
    setText(this.picture.empty, total > 0 ? "" : "No request ended in this time");
    this.picture.describe(words, rest, `${count(total, "request")}, ${failed} failed in the ${rest}`);
  }
}
