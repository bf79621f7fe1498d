// Characters that a browser would hide or obey, made visible: the purpose of
// src/document/visible.rs. This changes what is shown, never what is tested.

import { el } from "/page/dom.js";

/* Controls but tab and line feed, marks of direction, characters without width, separators that
   break lines, private and unassigned code points that draw nothing. Joiners and selectors stay
   where they shape a word or a symbol. */
const HIDDEN =
  /(?:[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|(?<![\u0590-\u1fff\u2190-\u{10ffff}])[\u200c\u200d]|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]|(?<![0-9#*©®\u1800-\u{10ffff}])[\ufe00-\ufe0f])+/gu;

/** Longer mixed runs are counted only. */
const NAMED = 4;

/** The text as nodes, with every hidden run in a labelled box. */
export function visible(text) {
  const nodes = [];
  let from = 0;
  for (const { 0: run, index } of text.matchAll(HIDDEN)) {
    // The carriage return of a line end shows itself by its line.
    const bare = run === "\r" && text[index + 1] === "\n";
    if (index > from) nodes.push(text.slice(from, index));
    if (!bare) nodes.push(el("span", { class: "hidden" }, label(run)));
    from = index + run.length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

/** Names a run of hidden characters: `U+200B`, `U+200B ×3`, `U+200B U+200C`. */
function label(run) {
  const names = [...run].map(
    (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  if (names.every((name) => name === names[0])) {
    return names.length === 1 ? names[0] : `${names[0]} ×${names.length}`;
  }
  if (names.length <= NAMED) return names.join(" ");
  return `${names[0]} and ${names.length - 1} more hidden`;
}

/** A stretch of the text on one line, cut after `length` characters. */
export function excerpt(text, length = 44) {
  const characters = [...text.slice(0, 4 * length)].slice(0, length).join("");
  const line = characters.replace(/[\n\t]/gu, " ");
  return el("bdi", {}, visible(line), characters.length < text.length ? "…" : null);
}
