// Elements without markup: texts of others only ever become text.

const SVG = "http://www.w3.org/2000/svg";

function dressed(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function el(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), attributes, children);
}

// Unchanged text is not written again: writing makes the browser lay out again, and a screen reader speak.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

// The policy of the page allows no style attributes; this way is no attribute.
export function setStyle(node, name, value) {
  if (node.style.getPropertyValue(name) !== value) node.style.setProperty(name, value);
}

export function byId(id) {
  return document.getElementById(id);
}

// Children that follow a list: made once for a key, filled at each update, moved only when they stand elsewhere.
export class KeyedList {
  #parent;
  #make;
  #fill;
  #nodes = new Map();

  constructor(parent, make, fill) {
    this.#parent = parent;
    this.#make = make;
    this.#fill = fill;
  }

  update(items, keyOf) {
    const wanted = new Map(items.map((item) => [keyOf(item), item]));
    for (const [key, node] of this.#nodes) {
      if (!wanted.has(key)) {
        node.remove();
        this.#nodes.delete(key);
      }
    }
    let next = this.#parent.firstElementChild;
    for (const [key, item] of wanted) {
      const node = this.#nodeOf(key, item);
      if (node === next) next = next.nextElementSibling;
      else this.#parent.insertBefore(node, next);
      this.#fill(node, item);
    }
  }

  #nodeOf(key, item) {
    let node = this.#nodes.get(key);
    if (!node) {
      node = this.#make(item);
      this.#nodes.set(key, node);
    }
    return node;
  }
}
