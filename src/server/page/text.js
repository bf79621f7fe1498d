// The text with every token coloured, one part at a time, so that a text of any length stays
// usable. Colour is never alone: what speaks for the mark is underlined, what was not scored is
// dotted, and the list of tokens says the same in words.

import { button, el, show, table, words } from "/page/dom.js";
import { count, counted } from "/page/numbers.js";
import { excerpt, visible } from "/page/visible.js";

/** Tokens, or characters of a text whose tokens are not listed, that are shown at once. */
const TOKENS_AT_ONCE = 5_000;
const CHARACTERS_AT_ONCE = 20_000;

/** Sentences and regions that are numbered in the text, as the tables list them. */
export const LISTED = 1_000;

/** A text whose places are counted in characters, as reports count them. */
export class Characters {
  constructor(text) {
    this.text = text;
    this.places = null;
    // Only a text with characters outside the basic plane needs a table.
    if (/[\ud800-\udbff]/u.test(text) || /[\u{10000}-\u{10ffff}]/u.test(text)) {
      const places = [];
      let at = 0;
      for (const character of text) {
        places.push(at);
        at += character.length;
      }
      places.push(at);
      this.places = Uint32Array.from(places);
    }
    this.length = this.places ? this.places.length - 1 : text.length;
  }

  /** The characters of a range. */
  slice(from, to) {
    if (!this.places) return this.text.slice(from, to);
    const place = (at) => this.places[Math.min(at, this.length)];
    return this.text.slice(place(from), place(to));
  }
}

/** The section, and `go(place)`, which shows the part with a place of the text. */
export function textSection(report, characters) {
  const details = report.token_details ?? null;
  const parts = cut(details, characters);
  const box = el("div", {
    class: "text", id: "shown-text", dir: "auto", lang: "", tabindex: "-1", role: "group",
    "aria-label": "The text",
  });
  const where = el("span", { role: "status" });
  const tokens = el("div", {});
  let current = -1;
  const turn = (part) => {
    if (part === current || part < 0 || part >= parts.length) return;
    current = part;
    render(box, report, characters, parts[part]);
    if (details) tokens.replaceChildren(tokenList(report, characters, parts[part]));
    where.textContent = position(parts, part, details, characters);
    before.disabled = part === 0;
    after.disabled = part === parts.length - 1;
  };
  const before = button("Earlier", () => turn(current - 1));
  const after = button("Later", () => turn(current + 1));
  const pager = el("nav", { class: "pager", "aria-label": "Parts of the text" }, before, after, where);
  show(pager, parts.length > 1);
  turn(0);
  const section = el(
    "section",
    { "aria-labelledby": "text-title" },
    el("h3", { id: "text-title" }, "The text"),
    otherLook(report),
    legend(report, details),
    pager,
    box,
    tokens,
  );
  const go = (place) => turn(parts.findIndex((part) => place < part.to));
  return { section, go };
}

function cut(details, characters) {
  const parts = [];
  const [number, step] = details
    ? [details.length, TOKENS_AT_ONCE]
    : [characters.length, CHARACTERS_AT_ONCE];
  for (let first = 0; first < number || first === 0; first += step) {
    const last = Math.min(first + step, number);
    const start = details ? (details[first]?.chars[0] ?? 0) : first;
    const from = parts.length === 0 ? 0 : Math.max(start, parts[parts.length - 1].to);
    const end = details ? (details[last]?.chars[0] ?? characters.length) : last;
    const to = last === number ? characters.length : Math.max(end, from);
    parts.push({ first, last, from, to });
  }
  return parts;
}

function position(parts, part, details, characters) {
  const { first, last } = parts[part];
  const [unit, all] = details ? ["Tokens", details.length] : ["Characters", characters.length];
  return `${unit} ${count(first + 1)} to ${count(last)} of ${count(all)} are shown`;
}

/** Says so when the figures are not those of the text as it stands here. */
function otherLook(report) {
  const looks = report.tests.filter((test) => test.normalization !== "none" && decides(test, report));
  if (looks.length === 0) return null;
  return el(
    "p",
    {},
    `The deciding test read the text after these changes: ${looks[0].normalization}. The colours are those of the text as given.`,
  );
}

/** Whether the figures at the top of the report are those of this test. */
export const decides = (test, report) =>
  test.scored === report.scored &&
  test.log10_p === report.log10_p &&
  test.corrected_log10_p === report.corrected_log10_p;

function legend(report, details) {
  const [yes, no, explanation] = sides(report);
  const boxes =
    " Grey boxes such as ⟦U+200B⟧ stand for characters that would not show.";
  if (!details) {
    const reason = "The text is too long to colour every token; passages and sentences are marked.";
    return el("p", { class: "aside" }, reason + boxes);
  }
  return [
    el(
      "p",
      { class: "legend" },
      el("span", { class: "g" }, yes),
      el("span", { class: "r" }, no),
      el("span", { class: "u" }, "not scored"),
    ),
    el("p", { class: "aside" }, explanation, " Single words decide nothing.", boxes),
  ];
}

/** The words of a scheme for its two sides. */
function sides(report) {
  if (report.gamma !== undefined) {
    return [
      "green",
      "red",
      "The key makes every token green or red, by the tokens before it. Unmarked text has as many green ones as chance gives; marked text has more.",
    ];
  }
  return [
    "high score",
    "low score",
    "The key gives every token a score, by the tokens before it. In unmarked text half of the scores are above ln 2; in marked text more are.",
  ];
}

/** The class of a token. */
function side(detail) {
  switch (detail.colour) {
    case "green":
      return "g";
    case "red":
      return "r";
    case "scored":
      return detail.score > Math.LN2 ? "g" : "r";
    default:
      return "u";
  }
}

const SKIPPED = {
  prefix: "not scored: too little text before it",
  repeated: "not scored: a repeat",
  special: "not scored: never marked",
};

/** What became of a token, in words. */
function outcome(report, detail) {
  if (detail.colour === "skipped") return SKIPPED[detail.skipped] ?? "not scored";
  const [yes, no] = sides(report);
  const name = side(detail) === "g" ? yes : no;
  return detail.colour === "scored" ? `${name} (${detail.score.toFixed(2)})` : name;
}

/** Stretches of a part: tokens that share characters are one. */
function stretches(report, part) {
  const details = report.token_details ?? [];
  const found = [];
  for (const detail of details.slice(part.first, part.last)) {
    const [from, to] = detail.chars;
    const last = found[found.length - 1];
    const title = `token ${detail.index}: ${outcome(report, detail)}`;
    if (last && from < last.to) {
      last.to = Math.max(last.to, to);
      last.title += `; ${title}`;
      if (last.kind !== side(detail)) last.kind = "m";
    } else found.push({ from, to, kind: side(detail), title });
  }
  return found;
}

/** Where sentences and marked passages start and end, in order. */
function events(report) {
  const found = [];
  for (const sentence of (report.sentences ?? []).slice(0, LISTED)) {
    found.push({ at: sentence.chars[0], rank: 2, sentence: sentence.index + 1 });
  }
  regions(report).forEach(({ region, name, id }) => {
    if (!region.chars) return;
    found.push({ at: region.chars[0], end: region.chars[1], rank: 1, name, id });
    found.push({ at: region.chars[1], rank: 0 });
  });
  return found.sort((left, right) => left.at - right.at || left.rank - right.rank);
}

/**
 * The passages that are marked in the text: the significant ones, or else the strongest one. Too
 * little text has none worth a look.
 */
export function regions(report) {
  if (report.verdict === "insufficient") return [];
  const spans = report.spans.slice(0, LISTED);
  if (spans.length > 0) {
    return spans.map((region, index) => ({
      region, name: `passage ${index + 1}`, id: `passage${index + 1}`,
    }));
  }
  return report.windows.slice(0, 1).map((region) => ({
    region, name: "strongest stretch", id: "passage1",
  }));
}

function render(box, report, characters, part) {
  const all = events(report);
  const pending = all.filter((event) => event.at >= part.from && (event.at < part.to || event.rank === 0));
  const content = document.createDocumentFragment();
  let target = content;
  const edge = (words, id) => el("span", { class: "edge", id }, words);
  const open = (event, words) => {
    content.append(edge(words, event.id));
    target = el("span", { class: "region" });
    target.name = event.name;
    content.append(target);
  };
  const close = () => {
    if (target === content) return;
    content.append(edge(`${target.name} ends`));
    target = content;
  };
  const running = all.find((event) => event.rank === 1 && event.at < part.from && event.end > part.from);
  if (running) open(running, `${running.name} goes on`);
  // A sentence that starts inside a token, after its space, gets its number before the token.
  const flush = (from, to) => {
    while (pending.length > 0) {
      const event = pending[0];
      if (event.at > from && !(event.rank === 2 && event.at < to)) return;
      pending.shift();
      if (event.rank === 0) close();
      else if (event.rank === 1) {
        close();
        open(event, `${event.name} starts`);
      } else {
        const number = event.sentence;
        target.append(
          el(
            "a",
            { class: "n", id: `s${number}`, href: `#row${number}`, "aria-label": `sentence ${number}` },
            String(number),
          ),
        );
      }
    }
  };
  const put = (from, to, attributes) => {
    flush(from, to);
    const nodes = visible(characters.slice(from, to));
    if (attributes) target.append(el("span", attributes, nodes));
    else target.append(...nodes);
  };
  // What no token covers is cut at the bounds that stand in it.
  const gap = (from, to) => {
    let at = from;
    for (const event of [...pending]) {
      if (event.at > at && event.at < to) {
        put(at, event.at, null);
        at = event.at;
      }
    }
    if (at < to) put(at, to, null);
  };
  let at = part.from;
  for (const stretch of stretches(report, part)) {
    if (stretch.from > at) gap(at, stretch.from);
    const from = Math.max(stretch.from, at);
    if (stretch.to > from) put(from, stretch.to, { class: stretch.kind, title: stretch.title });
    at = Math.max(at, stretch.to);
  }
  if (at < part.to) gap(at, part.to);
  flush(part.to, part.to);
  close();
  box.replaceChildren(content);
}

/** The same in words, filled when it is opened. */
function tokenList(report, characters, part) {
  const details = report.token_details.slice(part.first, part.last);
  const measured = report.entropy !== undefined;
  const summary = `The tokens in words (${counted(details.length, "token")})`;
  const list = el("details", {}, el("summary", {}, summary));
  list.addEventListener(
    "toggle",
    () => {
      const heads = ["Token", "Text", "Outcome", ...(measured ? ["Entropy", "Weight"] : [])];
      const number = (value) => (value === undefined ? "" : value.toFixed(3));
      const rows = details.map((detail) => {
        const piece = characters.slice(...detail.chars).replace(/\n/gu, "⏎").replace(/ /gu, "␣");
        const cells = [String(detail.index), words(excerpt(piece)), outcome(report, detail)];
        if (measured) cells.push(number(detail.entropy), number(detail.weight));
        return { cells };
      });
      list.append(table("Tokens", heads, rows));
    },
    { once: true },
  );
  return list;
}
