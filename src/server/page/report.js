// One result on the page: the verdict in words first, then the figures behind it.

import { button, download, el } from "/page/dom.js";
import { count, effect, probability, rarity } from "/page/numbers.js";
import { entropy, passages, sentences, tests } from "/page/tables.js";
import { Characters, decides, textSection } from "/page/text.js";
import { HEADLINES, SIGNS, meaning, skipped } from "/page/words.js";

/** A part of a file's name that every system takes. */
const plain = (name) => name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "text";

/**
 * Renders a result into `place`.
 *
 * `item` is `{name, text, notes, report, profile, bytes}`, `asked` what was asked for,
 * `page(item)` fetches the HTML report. Gives the heading, for the focus.
 */
export function renderResult(place, item, asked, page) {
  const { report } = item;
  const sections = [verdict(item), warnings(report), notes(item), actions(item, page)];
  if (report.log10_p !== undefined) {
    const characters = new Characters(item.text);
    const { section, go } = textSection(report, characters);
    sections.push(
      figures(report),
      passages(report, characters, go, asked),
      section,
      sentences(report, characters, go),
      report.entropy && entropy(report),
      tests(report),
      settings(item),
    );
  }
  place.replaceChildren(...sections.flat().filter(Boolean));
  return place.querySelector("h2");
}

function verdict({ name, profile, report }) {
  const kind = report.verdict.replaceAll("_", "-");
  return el(
    "section",
    { class: `verdict ${kind}`, "aria-labelledby": "verdict-words" },
    el("p", { class: "kind" }, el("bdi", {}, name), profile ? ` · watermark “${profile}”` : null),
    el(
      "h2",
      { id: "verdict-words", tabindex: "-1" },
      el("span", { "aria-hidden": "true" }, `${SIGNS[report.verdict]} `),
      HEADLINES[report.verdict],
    ),
    meaning(report),
  );
}

function warnings(report) {
  const all = report.warnings ?? [];
  if (all.length === 0) return null;
  // The page has a switch where the command line has a flag.
  const said = (text) =>
    text.replace(/`--normalize [\w-]+` takes a second look without them/u, "“Look a second time” looks without them");
  return el(
    "section",
    { class: "warnings", "aria-labelledby": "warnings-title" },
    el("h3", { id: "warnings-title" }, "Before you rely on this"),
    el("ul", {}, all.map((warning) => el("li", {}, said(warning.text)))),
  );
}

function notes({ notes: all }) {
  if (!all || all.length === 0) return null;
  return el(
    "section",
    { class: "warnings", "aria-labelledby": "notes-title" },
    el("h3", { id: "notes-title" }, "How the text was taken out of the file"),
    el("ul", {}, all.map((note) => el("li", {}, typeof note === "string" ? note : note.text))),
  );
}

function actions(item, page) {
  const json = button("Download the JSON", () =>
    download(item.bytes, "application/json", `${plain(item.name)}.report.json`),
  );
  if (item.report.log10_p === undefined) return el("div", { class: "row actions" }, json);
  const html = button("Download the HTML report", async () => {
    html.disabled = true;
    try {
      const bytes = await page(item);
      if (bytes) download(bytes, "text/html", `${plain(item.name)}.report.html`);
    } finally {
      html.disabled = false;
    }
  });
  // The service draws one report of several: that of the watermark that decides.
  const drawn = item.profile === null || item.decides;
  return el("div", { class: "row actions" }, drawn && html, json, button("Print", () => window.print()));
}

function figures(report) {
  const card = (term, value, note) =>
    el("div", {}, el("dt", {}, term), el("dd", {}, el("span", { class: "value" }, value), el("small", {}, note)));
  const deciding = report.tests.find((test) => decides(test, report));
  const evidence = deciding?.evidence;
  const cards = [];
  if (report.green !== undefined) {
    const rate = evidence?.kind === "count" ? evidence.expected_rate : report.gamma;
    const percent = (share) => `${(100 * share).toFixed(1)}%`;
    cards.push(
      card(
        "Green tokens",
        `${count(report.green)} of ${count(report.scored)}`,
        report.green_fraction === undefined
          ? "nothing was scored"
          : `${percent(report.green_fraction)}; chance alone gives ${percent(rate)}`,
      ),
    );
  } else if (evidence?.kind === "sum") {
    cards.push(
      card("Sum of scores", evidence.sum.toFixed(1), `of ${count(report.scored)} tokens; chance alone gives ${evidence.mean.toFixed(1)}`),
    );
  }
  cards.push(
    card("z", effect(report.z), "effect size, in standard deviations of chance"),
    card("p", probability(report.log10_p), [rarity(report.log10_p), "; for the deciding test alone"]),
    card(
      "Corrected p",
      probability(report.corrected_log10_p),
      [
        rarity(report.corrected_log10_p),
        report.hypotheses > 1 ? `; after paying for ${count(report.hypotheses)} tests` : "; one test was made, nothing to correct",
      ],
    ),
    card("Alpha", probability(Math.log10(report.alpha)), [rarity(Math.log10(report.alpha)), "; accepted rate of false accusations"]),
    card("Tokens", count(report.tokens), `of which ${count(report.scored)} count in the deciding test`),
  );
  const left = skipped(report.skipped);
  return el(
    "section",
    { "aria-labelledby": "figures-title" },
    el("h3", { id: "figures-title" }, "Figures"),
    el("dl", { class: "cards" }, cards),
    deciding && report.tests.length > 1
      ? el("p", { class: "aside" }, `The figures are those of the test that decides: ${deciding.name}.`)
      : null,
    left.length > 0
      ? [el("p", { class: "aside" }, "Not scored:"), el("ul", { class: "aside" }, left.map((line) => el("li", {}, line)))]
      : null,
  );
}

function settings({ report }) {
  return el(
    "section",
    { "aria-labelledby": "settings-title" },
    el("h3", { id: "settings-title" }, "What this holds for"),
    el(
      "p",
      { class: "aside" },
      `Key ${report.key_id}, fingerprint `,
      el("code", {}, report.key_fingerprint),
      "; tokenizer ",
      el("code", {}, report.tokenizer),
      "; SHA-256 of the text ",
      el("code", {}, report.input_sha256),
      `; greenmark ${report.version}.`,
      report.signature ? " The service signed this report; `wm verify` checks the JSON." : null,
    ),
  );
}
