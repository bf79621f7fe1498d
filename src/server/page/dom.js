// Building parts of the page. Text from outside only ever becomes a text node: nothing here, or
// anywhere on the page, reads markup.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/**
 * An element with attributes and children; texts become text nodes; `null` and `false` are left
 * out, so that a part can be written as a condition.
 */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, value);
    }
  }
  const given = (child) => child !== null && child !== undefined && child !== false;
  node.append(...children.flat(Infinity).filter(given));
  return node;
}

/** A sentence whose `names` in backticks are code. */
export const prose = (text) =>
  text.split("`").map((part, index) => (index % 2 === 1 ? el("code", {}, part) : part));

/** A button with an action. */
export function button(words, action, attributes = {}) {
  const node = el("button", { type: "button", ...attributes }, words);
  node.addEventListener("click", action);
  return node;
}

/** Shows or hides an element. */
export function show(node, shown) {
  node.hidden = !shown;
}

/**
 * A table that scrolls by itself when it is wider than the window.
 * Every row is `{cells, attributes}`; the first cell is its heading.
 */
export function table(caption, heads, rows) {
  const body = rows.map(({ cells, attributes }) =>
    el(
      "tr",
      attributes,
      cells.map((cell, index) => {
        const content = cell instanceof Cell ? cell.content : cell;
        const kind = cell instanceof Cell ? { class: cell.kind } : {};
        return index === 0 ? el("th", { scope: "row", ...kind }, content) : el("td", kind, content);
      }),
    ),
  );
  const head = heads.map((title) =>
    title === "" ? el("td", {}) : el("th", { scope: "col", class: wordy.has(title) && "words" }, title),
  );
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)),
  );
}

/** Columns of words, which stand to the left and wrap. */
const wordy = new Set(["Begins", "Verdict", "Watermark", "Meaning", "Text", "Type"]);

/** A cell of another kind than a number. */
class Cell {
  constructor(content, kind) {
    this.content = content;
    this.kind = kind;
  }
}

/** A cell of words. */
export const words = (content) => new Cell(content, "words");

/** Hands bytes to the browser as a file. */
export function download(bytes, type, name) {
  const address = URL.createObjectURL(new Blob([bytes], { type }));
  el("a", { href: address, download: name }).click();
  // The browser has taken hold of the bytes by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
