//! What the report means and what it does not.

use super::html::put;
use super::numbers::rarity;
use crate::detect::Report;

pub(super) fn section(html: &mut String, report: &Report) {
    put!(
        html,
        "<section id=\"notes\" aria-labelledby=\"notes-title\">\n\
         <h2 id=\"notes-title\">How to read this report</h2>\n<ul class=\"notes\">\n\
         <li><b>Not detected is not the same as human-written.</b> A text can come from a model \
         without carrying this mark: another model, another key, a rewriting, a translation, or \
         words so predictable that no mark fits in.</li>\n\
         <li><b>A p-value is about texts, not about this author.</b> It is the share of texts \
         written without the key that would show at least this much evidence. It is not the \
         probability that this text is human-written. That also depends on how common marked texts \
         are among those that are examined.</li>\n\
         <li><b>Many texts give false alarms.</b> Here {} unmarked texts is flagged by \
         chance. Who examines many should expect as many times that.</li>\n\
         <li><b>Found is not authorship.</b> Quoted or pasted passages count like any other. Who \
         holds the key can mark any text, and who studies many marked texts can learn to imitate \
         a mark.</li>\n\
         <li><b>Single words and sentences decide nothing.</b> Unmarked texts are full of green \
         words too. Colours, the course and the table of sentences show where evidence lies; the \
         verdict rests on the tests alone.</li>\n\
         <li><b>Repeats count once.</b> A pair of words that stands in the text again holds no new \
         evidence and is not scored again.</li>\n\
         <li><b>All this holds for the settings above</b>: this key, profile and tokenizer. With \
         others the same text gives other figures.</li>\n\
         </ul>\n</section>\n",
        rarity(report.alpha.log10())
    );
}
