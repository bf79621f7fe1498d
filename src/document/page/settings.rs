//! With what the text was judged, in full.

use serde::Serialize;

use super::html::{Escaped, entry, put};
use super::numbers::{counted, probability};
use crate::detect::Report;
use crate::profile::{PromptContext, Repeats};

pub(super) fn section(html: &mut String, report: &Report) {
    html.push_str(
        "<section id=\"settings\" aria-labelledby=\"settings-title\">\n<h2 id=\"settings-title\">\
         Settings</h2>\n<dl class=\"settings\">\n",
    );
    let profile = &report.profile;
    entry(html, "Scheme", format_args!("<code>{}</code>", profile.scheme().name()));
    if let Some(gamma) = report.gamma {
        entry(html, "Green share (gamma)", gamma);
    }
    let context = profile.context();
    entry(html, "Context", counted(context.width.get() as u64, "previous token"));
    let prompt = match context.prompt {
        PromptContext::Tail => "its end is the context of the first tokens",
        PromptContext::None => "gives no context",
    };
    entry(html, "Prompt", prompt);
    let repeats = match context.repeats {
        Repeats::Mark => "marked again",
        Repeats::Skip => "not marked again",
    };
    entry(html, "Repeated contexts", repeats);
    entry(html, "Key", format_args!("{}", Escaped(&report.key_id)));
    entry(
        html,
        "Key fingerprint",
        format_args!("<code>{}</code>", Escaped(&report.key_fingerprint)),
    );
    entry(
        html,
        "Tokenizer fingerprint",
        format_args!("<code>{}</code>", Escaped(&report.tokenizer)),
    );
    entry(html, "Alpha", probability(report.alpha.log10()));
    html.push_str("</dl>\n");
    json(html, "The profile in full", profile);
    if let Some(generation) = &report.generation {
        json(html, "Sampling parameters, as the sidecar says", generation);
    }
    html.push_str("</section>\n");
}

/// A value as indented JSON, folded away.
fn json(html: &mut String, title: &str, value: &impl Serialize) {
    // Values of a report are plain data; one that cannot be written is left out.
    let Ok(text) = serde_json::to_string_pretty(value) else { return };
    put!(html, "<details><summary>{title}</summary>\n<pre>");
    for line in text.lines() {
        put!(html, "{}\n", Escaped(line));
    }
    html.push_str("</pre></details>\n");
}
