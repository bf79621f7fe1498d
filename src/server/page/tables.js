// The tables of a report: passages, sentences, tests, and what the model's uncertainty says.

import { el, table, words } from "/page/dom.js";
import { count, counted, effect, probability } from "/page/numbers.js";
import { LISTED, decides, regions } from "/page/text.js";
import { excerpt } from "/page/visible.js";

const section = (id, title, ...children) =>
  el("section", { "aria-labelledby": id }, el("h3", { id }, title), ...children);

const aside = (...children) => el("p", { class: "aside" }, ...children);

/** A link to a place of the text, which may stand in a part that is not shown. */
function link(id, name, go, place) {
  const node = el("a", { href: `#${id}` }, name);
  node.addEventListener("click", () => go(place));
  return node;
}

/** Where in the text the mark is. */
export function passages(report, characters, go, asked) {
  if (!asked.windows || report.verdict === "insufficient") return null;
  const found = regions(report);
  const title = "Where in the text";
  if (found.length === 0) {
    return section("passages-title", title, aside("No stretch of the text holds more than chance gives."));
  }
  const rows = found.map(({ region, name, id }) => ({
    cells: [
      region.chars ? link(id, name, go, region.chars[0]) : name,
      count(region.scored),
      effect(region.z),
      probability(region.corrected_log10_p),
      words(region.chars ? excerpt(characters.slice(...region.chars)) : ""),
    ],
  }));
  return section(
    "passages-title",
    title,
    table("Passages", ["", "Scored", "z", "Corrected p", "Begins"], rows),
    aside(
      report.spans.length === 0
        ? "No stretch is significant by itself."
        : "These passages are significant by themselves and framed in the text. Their ends are where the evidence fits best; the mark may start and end elsewhere nearby.",
      " The corrected p pays for every stretch that could have been chosen.",
    ),
    report.spans.length > LISTED &&
      aside(`The first ${count(LISTED)} of ${count(report.spans.length)} are shown; the JSON lists all.`),
  );
}

/** The evidence in each sentence. */
export function sentences(report, characters, go) {
  const all = report.sentences ?? [];
  if (all.length === 0) return null;
  const heads = ["", report.gamma === undefined ? "Score" : "Green", "Scored", "z", "p alone", "Corrected p", "Begins"];
  const rows = all.slice(0, LISTED).map((sentence) => ({
    attributes: { id: `row${sentence.index + 1}` },
    cells: [
      link(`s${sentence.index + 1}`, String(sentence.index + 1), go, sentence.chars[0]),
      sentence.green === undefined ? sentence.statistic.toFixed(1) : count(sentence.green),
      count(sentence.scored),
      effect(sentence.z),
      probability(sentence.log10_p),
      probability(sentence.corrected_log10_p),
      words(excerpt(characters.slice(...sentence.chars))),
    ],
  }));
  return section(
    "sentences-title",
    "Sentences",
    aside(
      `A reading aid: no row of this table decides anything. The corrected p pays for ${counted(all[0].hypotheses, "test")}: one for each sentence with a scored token, under every watermark that was tried.`,
    ),
    table("Evidence in each sentence", heads, rows),
    all.length > LISTED &&
      aside(`The first ${count(LISTED)} of ${count(all.length)} are shown; the JSON lists all.`),
  );
}

/** Every test that was made. */
export function tests(report) {
  let decided = false;
  const rows = report.tests.map((test) => {
    const chosen = !decided && decides(test, report);
    decided ||= chosen;
    const counts = test.evidence.kind === "count";
    return {
      attributes: { class: chosen ? "decides" : false },
      cells: [
        [test.name, chosen ? el("small", {}, " (decides)") : null],
        counts ? `${count(test.evidence.green)} green` : test.evidence.sum.toFixed(1),
        (counts ? test.scored * test.evidence.expected_rate : test.evidence.mean).toFixed(1),
        count(test.scored),
        effect(test.z),
        probability(test.log10_p),
        probability(test.corrected_log10_p),
      ],
    };
  });
  const heads = ["Test", "Found", "By chance", "Scored", "z", "p", "Corrected p"];
  return section("tests-title", "Every test that was made", table("Tests", heads, rows));
}

/** How much of the text could hold a mark. */
export function entropy(report) {
  const found = report.entropy;
  if (!found) return null;
  const rows = found.tests.map((test) => ({
    cells: [
      test.rule.replaceAll("_", " "),
      count(test.scored),
      count(test.low_entropy),
      effect(test.z),
      probability(test.log10_p),
    ],
  }));
  const heads = ["Test", "Weighed", "Too predictable", "z", "p alone"];
  const first = found.sentence.charAt(0).toUpperCase() + found.sentence.slice(1);
  return section(
    "entropy-title",
    "How much could be marked",
    el("p", {}, `${first}.`),
    aside(
      `A mark moves a choice only where the model had one: names, quotations and code leave little room. The uncertainty is that of ${found.source.name}.`,
      found.mean_entropy !== undefined && ` The mean entropy is ${found.mean_entropy.toFixed(2)} nats a token.`,
    ),
    rows.length > 0 && table("Tests that weigh tokens by uncertainty", heads, rows),
  );
}
