//! What the model's uncertainty says: how much of the text could carry a mark, and every rule's
//! test.

use super::html::{Escaped, put, table};
use super::numbers::{count, effect, probability};
use crate::detect::Report;
use crate::detect::entropy::{EntropySource, Power, SamplingReport};

pub(super) fn section(html: &mut String, report: &Report) {
    let Some(entropy) = &report.entropy else { return };
    put!(
        html,
        "<section id=\"entropy\" aria-labelledby=\"entropy-title\">\n<h2 id=\"entropy-title\">How much \
         could be marked</h2>\n<p class=\"lead\">{}.</p>\n<p class=\"aside\">A mark moves a choice \
         only where the model had one: names, quotations and code leave little room. The \
         uncertainty ",
        Escaped(&entropy.sentence)
    );
    match &entropy.source {
        EntropySource::Model(name) => {
            put!(html, "is that of the model <code>{}</code>, which read the text", Escaped(name));
        }
        EntropySource::Sidecar(name) => {
            put!(html, "is that of the generation, from <code>{}</code>", Escaped(name));
        }
    }
    html.push_str(match entropy.sampling {
        SamplingReport::Known(_) => ", under the sampling parameters of the sidecar.",
        SamplingReport::Assumed => "; temperature 1 and no truncation are assumed.",
    });
    if let Some(mean) = entropy.mean_entropy {
        put!(html, " The mean entropy is {mean:.2} nats a token.");
    }
    if entropy.unaligned > 0 {
        put!(html, " Nothing is known of {} scored tokens.", count(entropy.unaligned));
    }
    html.push_str("</p>\n");
    if let Some(plain) = report.tests.first().filter(|_| !entropy.tests.is_empty()) {
        let mut rows = String::new();
        let mut row =
            |name: &str, scored: u64, z: Option<f64>, log10_p: f64, marked: Option<Power>| {
                let (expected, power) = marked.map_or_else(
                    || (String::new(), String::new()),
                    |marked| (effect(Some(marked.z)), format!("{:.1}%", 100.0 * marked.power)),
                );
                put!(
                    &mut rows,
                    "<tr><th scope=\"row\">{name}</th><td>{}</td><td>{}</td><td>{}</td>\
                 <td>{expected}</td><td>{power}</td></tr>\n",
                    count(scored),
                    effect(z),
                    probability(log10_p)
                );
            };
        let expected = entropy.detectability;
        let power = expected.map(|found| found.plain);
        row("plain count", plain.scored, plain.z, plain.log10_p, power);
        for test in &entropy.tests {
            let power = expected.filter(|_| test.decides).map(|found| found.likelihood_ratio);
            let name = test.rule.name().replace('_', " ");
            row(&name, test.scored, test.z, test.log10_p, power);
        }
        let heads = ["Test", "Weighed", "z", "p alone", "z if marked", "Power if marked"];
        table(html, "Tests that weigh tokens by uncertainty", &heads, &rows);
        html.push_str(
            "<p class=\"aside\">The plain count and the likelihood ratio take part in the verdict \
             and are paid for there; the others are for comparison.</p>\n",
        );
    }
    html.push_str("</section>\n");
}
