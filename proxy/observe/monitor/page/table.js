// A list of rows that is updated in place: sorted, cut at a length, walked with the arrow keys.
//
// Roles are written out, because on narrow screens the style makes cards of the rows, and a browser then takes the
// meaning of a table away.

import { KeyedList, el, setAttribute, setHidden, setText } from "./dom.js";
import { sorted } from "./model.js";

const FIRST = 25;
// And with each such wish.
const MORE = 100;
// All of them are looked at once a second: beyond this the filter is the way.
const MOST = 300;

// columns   [{ id, label, make(td, table) -> fill(row, now), value(row) for sorting, number, words }]
// keyOf     what a row stays the same by
// open      called with a row that the reader wants to know more of
// children  of a row -> rows below it, when it is expanded
// first     rows that are drawn before the reader asks for more
// steady    the order does not change while the reader points at a row
export class Table {
  #options;
  #rows = [];
  #now = 0;
  #limit;
  #sort;
  #order = new Map();
  #current = null;
  #expanded = new Set();
  #list;
  #drawn = new WeakMap();

  constructor(place, options) {
    this.#options = { children: () => [], steady: false, ...options };
    this.#limit = options.first ?? FIRST;
    this.#sort = { ...options.sort };
    this.heads = options.columns.map((column) => this.#head(column));
    this.body = el("tbody", { role: "rowgroup" });
    const head = el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...this.heads));
    const table = el("table", { role: "table", class: options.name, "aria-labelledby": options.labelledby }, head, this.body);
    this.more = el("button", { type: "button", class: "more", hidden: true, onclick: () => this.#showMore() });
    this.empty = el("div", { class: "empty quiet" });
    place.append(this.#sorter(), table, this.more, this.empty);
    this.table = table;
    this.#list = new KeyedList(this.body, (item) => this.#make(item), (node, item) => this.#fill(node, item));
    this.body.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("focusin", (event) => this.#focused(event.target));
    this.#showSort();
  }

  isExpanded(row) {
    return this.#expanded.has(this.#options.keyOf(row));
  }

  toggle(row, wanted) {
    const key = this.#options.keyOf(row);
    if (wanted ?? !this.#expanded.has(key)) this.#expanded.add(key);
    else this.#expanded.delete(key);
    this.#draw();
  }

  update(rows, now) {
    this.#rows = rows;
    this.#now = now;
    this.#draw();
  }

  // Elapsed times and ages go on between two snapshots.
  tick(now) {
    this.#now = now;
    for (const node of this.body.children) this.#fill(node, this.#drawn.get(node).item);
  }

  #draw() {
    const focused = [...this.body.children].findIndex((node) => node.contains(document.activeElement));
    const ordered = this.#ordered();
    const items = ordered.slice(0, this.#limit).flatMap((row) => this.#withChildren(row));
    if (!items.some((item) => item.key === this.#current)) this.#current = items[0]?.key ?? null;
    this.#list.update(items, (item) => item.key);
    setHidden(this.table, items.length === 0);
    setHidden(this.empty, items.length > 0);
    this.#tellMore(ordered.length);
    this.#keepFocus(focused);
  }

  #ordered() {
    const { columns, keyOf } = this.#options;
    const column = columns.find((each) => each.id === this.#sort.id);
    let rows = column ? sorted(this.#rows, column.value, this.#sort.descending) : this.#rows;
    if (this.#options.steady && this.#isHeld()) rows = sorted(rows, (row) => this.#order.get(keyOf(row)) ?? null, false);
    this.#order = new Map(rows.map((row, index) => [keyOf(row), index]));
    return rows;
  }

  #isHeld() {
    return this.body.contains(document.activeElement) || (matchMedia("(hover: hover)").matches && this.body.matches(":hover"));
  }

  #withChildren(row) {
    const key = this.#options.keyOf(row);
    const item = { key, row, parent: null };
    if (!this.#expanded.has(key)) return [item];
    return [item, ...this.#options.children(row).map((child) => ({ key: `${key} ${child.id ?? ""}`, row: child, parent: row }))];
  }

  #make(item) {
    const cells = this.#options.columns.map((column) => {
      const cell = el("td", { role: "cell", class: column.id, "data-label": column.label });
      if (column.number) cell.classList.add("num");
      return [cell, column.make(cell, this)];
    });
    const node = el("tr", { role: "row" }, ...cells.map(([cell]) => cell));
    node.addEventListener("click", (event) => {
      const { item: shown } = this.#drawn.get(node);
      if (!event.target.closest(".expander") && !String(getSelection())) this.#options.open(shown.row, shown.parent);
    });
    this.#drawn.set(node, { item, fills: cells.map(([, fill]) => fill) });
    return node;
  }

  #fill(node, item) {
    const drawn = this.#drawn.get(node);
    drawn.item = item;
    for (const fill of drawn.fills) fill(item.row, this.#now, item.parent);
    setAttribute(node, "data-child", item.parent ? "" : null);
    setAttribute(node, "data-selected", this.#options.isOpen?.(item.row, item.parent) ? "" : null);
    setAttribute(node.querySelector(".opener"), "tabindex", item.key === this.#current ? "0" : "-1");
  }

  #tellMore(all) {
    const left = Math.min(all, MOST) - this.#limit;
    setHidden(this.more, all <= this.#limit);
    setAttribute(this.more, "disabled", left <= 0 ? "" : null);
    setText(this.more, left > 0 ? `Show ${Math.min(left, MORE)} more of ${all}` : `${this.#limit} of ${all}: the filter finds the others`);
  }

  #showMore() {
    this.#limit = Math.min(MOST, this.#limit + MORE);
    this.#draw();
  }

  // The row with the focus may be gone: the one that has its place takes it.
  #keepFocus(index) {
    if (index < 0 || this.body.contains(document.activeElement)) return;
    const rows = this.body.children;
    rows[Math.min(index, rows.length - 1)]?.querySelector(".opener").focus();
  }

  #focused(target) {
    const node = target.closest("tr");
    const old = this.body.querySelector('.opener[tabindex="0"]');
    this.#current = this.#drawn.get(node).item.key;
    if (old) setAttribute(old, "tabindex", "-1");
    setAttribute(node.querySelector(".opener"), "tabindex", "0");
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const node = event.target.closest("tr");
    const { body } = this;
    const to = { ArrowDown: node.nextElementSibling, ArrowUp: node.previousElementSibling, Home: body.firstElementChild, End: body.lastElementChild };
    if (event.key in to) to[event.key]?.querySelector(".opener").focus();
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") this.#expand(node, event.key === "ArrowRight");
    else return;
    event.preventDefault();
  }

  #expand(node, wanted) {
    const { row, parent } = this.#drawn.get(node).item;
    const of = parent ?? row;
    if (this.#options.children(of).length > 0 && !(parent && wanted)) this.toggle(of, wanted);
  }

  // Sorting

  #head(column) {
    const head = el("th", { role: "columnheader", scope: "col", class: column.id });
    if (column.number) head.classList.add("num");
    if (!column.value) head.append(column.label);
    else {
      const name = column.words ?? column.label;
      head.append(el("button", { type: "button", title: `Sort by ${name.toLowerCase()}`, onclick: () => this.#sortBy(column) }, column.label, el("span", { class: "direction", "aria-hidden": "true" })));
    }
    return head;
  }

  // For screens without a head.
  #sorter() {
    const columns = this.#options.columns.filter((column) => column.value);
    const choices = columns.map((column) => el("option", { value: column.id }, column.words ?? column.label));
    this.select = el("select", { onchange: () => this.#sortBy(columns.find((column) => column.id === this.select.value)) }, ...choices);
    return el("label", { class: "sorter quiet", hidden: columns.length < 2 }, "Sort by ", this.select);
  }

  #sortBy(column) {
    const same = this.#sort.id === column.id;
    this.#sort = { id: column.id, descending: same ? !this.#sort.descending : Boolean(column.number) };
    this.#order = new Map();
    this.#showSort();
    this.#draw();
  }

  #showSort() {
    const { id, descending } = this.#sort;
    this.#options.columns.forEach((column, index) => {
      const direction = column.id !== id ? null : descending ? "descending" : "ascending";
      setAttribute(this.heads[index], "aria-sort", direction);
    });
    this.select.value = id ?? "";
  }
}

// The cell that opens the details: a button, so that every key and reader knows what to do with it.
export function opener(cell, label) {
  const button = el("button", { type: "button", class: "opener cut", tabindex: "-1", "aria-haspopup": "dialog" });
  cell.append(button);
  return (row, words) => {
    setText(button, words);
    setAttribute(button, "aria-label", label(row, words));
  };
}
