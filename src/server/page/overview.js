// Several results: one row each, and each opens.

import { button, el, table, words } from "/page/dom.js";
import { effect, probability } from "/page/numbers.js";
import { HEADLINES, SIGNS, problem } from "/page/words.js";

/** The list of results of `number` inputs; `open(item)` shows one. */
export function overview(items, number, open) {
  const several = items.some((item) => item.profile);
  const rows = items.map((item, index) => {
    const { report, error } = item;
    const name = el("bdi", {}, item.name);
    const cells = [name];
    if (several) cells.push(words(item.profile ?? ""));
    if (error) {
      const [title, remedy] = problem(error);
      cells.push(words([title, el("br"), el("small", {}, remedy)]), "", "", "");
    } else {
      const figures = report.log10_p !== undefined;
      const label = `Open ${item.name}${item.profile ? `, ${item.profile}` : ""}`;
      cells.push(
        words(el("span", { class: report.verdict === "watermarked" && "found" },
          `${SIGNS[report.verdict]} ${HEADLINES[report.verdict]}`)),
        figures ? effect(report.z) : "",
        figures ? probability(report.corrected_log10_p) : "",
        button("Open", () => open(item), { class: "small", "aria-label": label, id: `open${index}` }),
      );
    }
    return { cells, attributes: { class: "name" } };
  });
  const heads = ["Text", ...(several ? ["Watermark"] : []), "Verdict", "z", "Corrected p", ""];
  return el(
    "section",
    { "aria-labelledby": "list-title" },
    el("h2", { id: "list-title", tabindex: "-1" }, summary(items, number)),
    table("Results", heads, rows),
    number > 1 &&
      el("p", { class: "aside" },
        "Each text is tested for itself. Who checks many texts should expect a false alarm among many."),
  );
}

function summary(items, number) {
  const verdicts = items.filter((item) => item.report).map((item) => item.report.verdict);
  const of = (verdict) => verdicts.filter((found) => found === verdict).length;
  if (number === 1) {
    const found = items.find((item) => item.decides)?.report.verdict ?? "insufficient";
    return `${HEADLINES[found]} (${items.length} watermarks tried)`;
  }
  const parts = [
    [of("watermarked"), "with a watermark"],
    [of("not_detected"), "without one found"],
    [of("insufficient"), "with too little text"],
    [items.length - verdicts.length, "not checked"],
  ];
  const said = parts.filter(([many]) => many > 0).map(([many, what]) => `${many} ${what}`);
  return `${items.length} results: ${said.join(", ")}`;
}
