// What verdicts and problems mean, in plain words.

import { el } from "/page/dom.js";
import { count, counted, rarity } from "/page/numbers.js";

/** The verdict as a heading. */
export const HEADLINES = {
  watermarked: "Watermark found",
  not_detected: "No watermark found",
  insufficient: "Too little text",
};

/** A sign beside the heading, so that colour is never alone. */
export const SIGNS = { watermarked: "◆", not_detected: "○", insufficient: "…" };

/** Why tokens were not scored, by the report's names. */
const REASONS = {
  prefix: ["stands", "stand", "at the start, without enough text before"],
  repeated: ["repeats", "repeat", "what was scored before, which is no new evidence"],
  special: ["is", "are", "of a kind that is never marked"],
  low_entropy: ["was", "were", "too predictable to hold a mark"],
  unaligned: ["has", "have", "no known uncertainty"],
};

/** Why tokens were not scored: one sentence a reason. */
export function skipped(counts) {
  return Object.entries(REASONS)
    .filter(([name]) => counts[name] > 0)
    .map(([name, [one, many, rest]]) => {
      const number = counts[name];
      return `${counted(number, "token")} ${number === 1 ? one : many} ${rest}`;
    });
}

/** Paragraphs that say what a verdict means and what it does not. */
export function meaning(report) {
  const figures = report.log10_p !== undefined;
  const key = figures ? ["the key ", el("b", {}, report.key_id)] : ["this service’s key"];
  const paragraph = (lead, ...children) => el("p", { class: lead && "lead" }, ...children);
  const accepted = figures ? rarity(Math.log10(report.alpha)) : null;
  const rare = figures ? rarity(report.corrected_log10_p) : null;
  const paid =
    figures && report.hypotheses > 1
      ? ` The figure pays for all ${count(report.hypotheses)} tests that were in play.`
      : "";
  switch (report.verdict) {
    case "watermarked":
      return [
        paragraph(
          true,
          "The text carries the watermark of ",
          key,
          ".",
          figures && [
            " Among texts written without this key, evidence as strong as this appears in ",
            el("b", {}, rare),
            `.${paid}`,
          ],
        ),
        paragraph(
          false,
          figures && [
            "The service says “found” when that figure is at or below the accepted rate of false accusations, here ",
            accepted,
            ". ",
          ],
          "This does not say who wrote the text, who used the model, or what was changed afterwards.",
        ),
      ];
    case "not_detected":
      return [
        paragraph(
          true,
          "No watermark of ",
          key,
          " was found. This is ",
          el("b", {}, "not evidence that a person wrote the text"),
          ".",
        ),
        paragraph(
          false,
          figures && [
            "Among texts written without this key, evidence as strong as this appears in ",
            rare,
            "; the service says “found” only at ",
            accepted,
            ` or less.${paid} `,
          ],
          "The text may come from a model that does not mark, carry the mark of another key, have been rewritten, or be too predictable to hold a mark.",
        ),
      ];
    default:
      return [
        paragraph(
          true,
          "There is ",
          el("b", {}, "too little text to conclude anything"),
          ", in either direction.",
        ),
        paragraph(false, figures ? missing(report) : "Give a longer piece of the text."),
      ];
  }
}

/** How many tokens are missing for a conclusion. */
function missing(report) {
  // The figures at the top may be those of a window; the first test is that of the whole text.
  const found = `${counted(report.tests[0].scored, "token")} could be tested.`;
  const needed =
    report.needed === undefined
      ? ""
      : ` A conclusion takes at least ${count(report.needed)}, even if all of them are green; a real marked text takes many times that.`;
  return `${found}${needed} Give a longer piece of the text.`;
}

/** A problem in words: what happened and the way out. */
export function problem(error) {
  const said = error.message ? sentence(error.message) : "";
  const wait = error.after ? ` Try again in ${error.after} s.` : " Try again in a moment.";
  switch (true) {
    case error.status === 0:
      return ["The service does not answer", "It may be stopped, or the network is down. Your text is still here; try again."];
    case error.status === 401:
      return ["The service wants a valid API key", `${said} Enter your key above. The operator of this service gives keys.`];
    case error.status === 403:
      return ["Your key does not allow this", `${said} Ask the operator of this service for a key of another role.`];
    case error.status === 413:
      return ["The text is too large", `${said} Split it and check the parts one by one.`];
    case error.status === 408 || error.status === 504:
      return ["It took too long", `${said} Try again, with a shorter text if it happens again.`];
    case error.status === 429:
      return ["Too many requests at once", said + wait];
    case error.status === 503:
      return ["The service is not ready", said + wait];
    case error.status >= 500:
      return ["The service failed", `${said} Tell its operator the request id.`];
    case error.status === 415:
      return ["This kind of file cannot be read", said];
    case error.status >= 400:
      return ["The service cannot check this", said];
    default:
      return ["This page failed", `${said} Load it again; if that does not help, tell the operator of this service.`];
  }
}

/** A message of the service as a sentence. */
function sentence(message) {
  // A message may begin with the name of a file, which stays as it is.
  const first = /^[a-z]+[ ,]/u.test(message) ? message.charAt(0).toUpperCase() + message.slice(1) : message;
  return /[.!?]$/u.test(first) ? first : `${first}.`;
}
