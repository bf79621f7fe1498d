//! The page of a report: whole, escaped, readable; and what it is made of.

use greenmark::detect::entropy::{Chances, EntropyInput, EntropySource, TokenUncertainty};
use greenmark::detect::{
    Alpha, Correction, DetectOptions, Region, Report, Sentences, TokenDetails, Verdict, Warning,
};
use greenmark::document::Circumstances;
use greenmark::document::marked::{Mark, merged, stretches};
use greenmark::document::page::{INDEX_FOOT, Page, index_head, index_row, render};
use greenmark::document::visible::{Part, label, one_line, parts};
use greenmark::profile::SchemeParameters;
use greenmark::stats::LogProbability;
use greenmark::text::Normalizer;
use proptest::prelude::*;

use crate::sentences::detector;

/// Markup, quotes, controls, direction marks, invisible characters, emoji, data in selectors.
const HOSTILE: &str = "<script>alert('x')</script></style></main><!-- \"a\" & 'b'\0\x1b[31m\x07\r\n\
    \u{202e}evil\u{202c} zero\u{200b}width \u{feff} 👩\u{200d}👩\u{200d}👧 ❤\u{fe0f} \
    A\u{fe00}\u{fe01}\u{e0100}\u{e0101}\u{e0102} سلام lone\rCR ]]> {{x}} <img src=x onerror=y>";

fn options() -> DetectOptions {
    DetectOptions {
        details: TokenDetails::Include,
        sentences: Sentences::Include,
        ..DetectOptions::default()
    }
}

fn judged(scheme: SchemeParameters, text: &str) -> Report {
    detector(scheme, options()).text(text, &Circumstances::default()).unwrap()
}

fn page_of(text: &str, name: &str) -> String {
    let report = judged(SchemeParameters::default(), text);
    render(&Page { report: &report, text: Some(text), name }).unwrap()
}

/// Panics unless every element is closed in order; gives the names of all elements.
fn balanced(html: &str) -> Vec<String> {
    const VOID: [&str; 4] = ["meta", "line", "polygon", "polyline"];
    let mut open: Vec<String> = Vec::new();
    let mut all = Vec::new();
    let mut rest = html.strip_prefix("<!doctype html>").expect("a document type");
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("a tag that ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop().as_deref(),
                Some(name),
                "before {:?}",
                &rest[..rest.len().min(80)]
            );
            continue;
        }
        let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(!name.is_empty(), "<{tag}>");
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        if name == "style" {
            // Style has no escapes: it ends at the first end tag.
            let end = rest.find("</").unwrap();
            rest = &rest[end..];
        }
        if !VOID.contains(&&name[..]) && !tag.ends_with('/') {
            open.push(name.clone());
        }
        all.push(name);
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    all
}

#[test]
fn a_hostile_text_stays_text() {
    let html = page_of(HOSTILE, "<b onclick='x'>\u{202e}\0&amp;.txt");
    let elements = balanced(&html);
    for forbidden in ["script", "img", "b onclick", "link", "iframe"] {
        assert!(!elements.iter().any(|name| name == forbidden), "{forbidden}");
    }
    assert_eq!(html.matches("<style>").count(), 1);
    let hidden = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}' | '\u{202e}' | '\u{202c}' | '\u{feff}' | '\u{e0100}')
    };
    assert_eq!(html.chars().find(|c| hidden(*c)), None);
    for shown in [
        "U+0000",
        "U+001B",
        "U+202E",
        "U+200B",
        "&lt;b onclick=&#39;x&#39;&gt;",
        "👩\u{200d}👩\u{200d}👧",
        "❤\u{fe0f}",
    ] {
        assert!(html.contains(shown), "{shown}");
    }
    // Every character of the text is there, in order.
    let body = &html[html.find("<div class=\"text").unwrap()..];
    let body = &body[..body.find("</div>").unwrap()];
    let mut plain = String::new();
    let mut inside = false;
    for c in body.chars() {
        match c {
            '<' => inside = true,
            '>' => inside = false,
            _ if !inside => plain.push(c),
            _ => {}
        }
    }
    for word in ["alert", "evil", "zero", "width", "سلام", "onerror"] {
        assert!(plain.contains(word), "{word} is missing in {plain}");
    }
}

#[test]
fn a_page_is_whole_and_always_the_same() {
    let text = "The keeper climbed the tower. He lit the lamp. The keeper climbed the tower.";
    let html = page_of(text, "keeper.txt");
    assert_eq!(html, page_of(text, "keeper.txt"));
    let elements = balanced(&html);
    for landmark in ["header", "main", "footer", "nav", "h1"] {
        assert_eq!(elements.iter().filter(|name| *name == landmark).count(), 1, "{landmark}");
    }
    // Nothing is fetched and nothing runs.
    for outside in ["http:", "https:", "//", "url(", "@import", "src=", "<script", "javascript"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("default-src 'none'"));
    for said in [
        "Not detected is not the same as human-written",
        "team",
        "3.17 × 10<sup>−5</sup>",
        greenmark::document::sha256_hex(text.as_bytes()).as_str(),
        env!("CARGO_PKG_VERSION"),
        "@media print",
        "prefers-color-scheme: dark",
        "lang=\"en\"",
    ] {
        assert!(html.contains(said), "{said}");
    }
    // Every link leads somewhere.
    for part in html.split("href=\"#").skip(1) {
        let target = &part[..part.find('"').unwrap()];
        assert!(html.contains(&format!("id=\"{target}\"")), "#{target}");
    }
}

#[test]
fn every_verdict_has_its_words() {
    let text = "Too short.";
    let mut report = judged(SchemeParameters::default(), text);
    assert_eq!(report.verdict, Verdict::Insufficient);
    let page = |report: &Report| {
        let html = render(&Page { report, text: Some(text), name: "t" }).unwrap();
        balanced(&html);
        html
    };
    assert!(page(&report).contains("too little text to conclude anything"));
    assert!(page(&report).contains("A conclusion takes at least 15, even if all"));
    report.verdict = Verdict::NotDetected;
    assert!(page(&report).contains("not evidence that a person wrote the text"));
    report.verdict = Verdict::Watermarked;
    report.corrected_log10_p = -349.437;
    report.hypotheses = 2;
    report.warnings.push(Warning { code: "a_code", text: "a <warning>".into() });
    let html = page(&report);
    for said in [
        "carries the watermark",
        "about 1 in 10<sup>349</sup>",
        "3.66 × 10<sup>−350</sup>",
        "all 2 tests",
        "a &lt;warning&gt;",
        "a_code",
    ] {
        assert!(html.contains(said), "{said}");
    }
    // Without details and sentences, and for ids without text, the rest stands.
    report.token_details = None;
    report.sentences = None;
    balanced(&render(&Page { report: &report, text: None, name: "ids" }).unwrap());
    page(&report);
}

#[test]
fn rare_is_said_in_words() {
    let text = "Too short.";
    let mut report = judged(SchemeParameters::default(), text);
    report.verdict = Verdict::NotDetected;
    for (log10_p, words) in [
        (0.0, "appears in nearly all"),
        (-0.3, "about 50 in 100"),
        (-1.5, "about 1 in 32"),
        (-4.499, "about 1 in 32,000"),
        (-7.52, "about 1 in 33 million"),
        (-9.7, "about 1 in 5 billion"),
        (-14.0, "about 1 in 100 trillion"),
        (-30.4, "about 1 in 10<sup>30</sup>"),
    ] {
        report.corrected_log10_p = log10_p;
        let html = render(&Page { report: &report, text: Some(text), name: "t" }).unwrap();
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn regions_are_labelled_in_the_text_and_framed_in_the_course() {
    let text = "The keeper climbed the tower. He lit the lamp. Then he slept until noon.";
    let mut report = judged(SchemeParameters::default(), text);
    let details = report.token_details.clone().unwrap();
    let (from, to) = (details[5].bytes.unwrap()[0], details[20].bytes.unwrap()[0]);
    let region = |tokens: [usize; 2], bytes: [usize; 2]| Region {
        normalization: "none".into(),
        tokens,
        bytes: Some(bytes),
        chars: Some(bytes),
        scored: 15,
        green: Some(15),
        z: 3.87,
        p_value: LogProbability::from_ln(-10.4).p_value(),
        p_status: None,
        log10_p: -4.515,
        corrected_log10_p: -1.5,
        windows: 100,
        hypotheses: 200,
        correction: Correction::UnionBound,
    };
    report.spans = vec![region([5, 20], [from, to]), region([20, 25], [to, text.len()])];
    report.windows = vec![report.spans[0].clone()];
    let html = render(&Page { report: &report, text: Some(text), name: "t" }).unwrap();
    balanced(&html);
    for said in ["region 1 starts", "region 1 ends", "region 2 starts", "region 2 ends", "5–20"] {
        assert_eq!(html.matches(said).count(), if said == "5–20" { 2 } else { 1 }, "{said}");
    }
    let (first, second) =
        (html.find("region 1 ends").unwrap(), html.find("region 2 starts").unwrap());
    assert!(html.find("region 1 starts").unwrap() < first && first < second);
    assert_eq!(html.matches("<rect class=\"span\"").count(), 2);
}

#[test]
fn uncertainty_is_shown_where_it_was_measured() {
    let text = "The keeper climbed the tower. He lit the lamp. Then he slept until noon.";
    let detector = detector(SchemeParameters::default(), options());
    let chances =
        Chances { spike_entropy: 0.7, probability: 0.25, step_green: 0.6, token_green: 0.7 };
    let known = TokenUncertainty { entropy: 1.234, chances: Some(chances) };
    let tokens = vec![Some(known); detector.pieces(text).unwrap().len()];
    let source = EntropySource::Model("<model>".into());
    let circumstances = Circumstances {
        entropy: Some(EntropyInput { source, sampling: None, tokens }),
        ..Circumstances::default()
    };
    let report = detector.text(text, &circumstances).unwrap();
    let html = render(&Page { report: &report, text: Some(text), name: "t" }).unwrap();
    balanced(&html);
    let sentence = &report.entropy.as_ref().unwrap().sentence;
    for said in [sentence, "&lt;model&gt;", "likelihood ratio", "; entropy 1.23 nats, weight "] {
        assert!(html.contains(said), "{said}");
    }
}

#[test]
fn an_entropy_weighted_p_that_decides_is_called_an_upper_bound() {
    let text = "The keeper climbed the tower. He lit the lamp. Then he slept until noon.";
    let options = DetectOptions { alpha: Alpha::new(0.1).unwrap(), ..options() };
    let detector = detector(SchemeParameters::default(), options);
    let plain = detector.text(text, &Circumstances::default()).unwrap();
    // Only the green tokens have a weight, so that the likelihood ratio decides.
    let chances =
        Chances { spike_entropy: 0.7, probability: 0.25, step_green: 0.6, token_green: 0.7 };
    let known = TokenUncertainty { entropy: 1.2, chances: Some(chances) };
    let details = plain.token_details.as_ref().unwrap();
    let tokens = details.iter().map(|token| (token.colour == "green").then_some(known)).collect();
    let source = EntropySource::Model("m".into());
    let circumstances = Circumstances {
        entropy: Some(EntropyInput { source, sampling: None, tokens }),
        ..Circumstances::default()
    };
    let weighted = detector.text(text, &circumstances).unwrap();
    let page = |report| render(&Page { report, text: Some(text), name: "t" }).unwrap();
    let (exact, bound) =
        ("exact, for the deciding test alone", "an upper bound, for the deciding test alone");
    let (plain, weighted) = (page(&plain), page(&weighted));
    assert!(plain.contains(exact) && !plain.contains(bound));
    assert!(weighted.contains(bound) && !weighted.contains(exact));
}

#[test]
fn the_text_of_another_report_is_refused() {
    let report = judged(SchemeParameters::default(), "One text.");
    let error = render(&Page { report: &report, text: Some("Another."), name: "t" }).unwrap_err();
    assert!(error.to_string().contains("text SHA-256 disagrees"), "{error}");
}

#[test]
fn a_scheme_of_scores_and_a_second_look_are_explained() {
    let text = "The keeper climbed\r\nthe tower every evening and lit the lamp of the house.";
    let circumstances =
        Circumstances { normalizers: &[Normalizer::Newlines], ..Circumstances::default() };
    let report =
        detector(SchemeParameters::Gumbel {}, options()).text(text, &circumstances).unwrap();
    let html = render(&Page { report: &report, text: Some(text), name: "t" }).unwrap();
    balanced(&html);
    assert!(html.contains("high score") && html.contains("Sum of scores"));
    assert!(!html.contains(">green<"));
}

#[test]
fn a_megabyte_makes_a_page_that_can_be_used() {
    let mut state = 1u32;
    let text: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ     .\n"[(state >> 16) as usize % 33])
    })
    .take(1 << 20)
    .collect();
    let html = page_of(&text, "long.txt");
    let spans = balanced(&html).iter().filter(|name| *name == "span").count();
    // Half a million tokens; neighbours are joined and no token is listed alone.
    assert!(html.len() < 16 << 20, "{} bytes", html.len());
    assert!(spans < 300_000, "{spans} spans");
    assert!(!html.contains("data-t=") && !html.contains("<section id=\"tokens\""));
}

#[test]
fn colours_have_the_contrast_of_wcag_aa() {
    let html = page_of("Some text to colour.", "t");
    let channel = |hex: &str| {
        let value = f64::from(u8::from_str_radix(hex, 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = |c: &str| {
        0.2126 * channel(&c[1..3]) + 0.7152 * channel(&c[3..5]) + 0.0722 * channel(&c[5..7])
    };
    let themes: Vec<&str> = html.split(":root {").skip(1).collect();
    assert_eq!(themes.len(), 3, "light, dark, print");
    for theme in themes {
        let colour = |name: &str| {
            let at = theme.find(&format!("--{name}: ")).unwrap() + name.len() + 4;
            luminance(&theme[at..at + 7])
        };
        for (ink, paper) in [
            ("ink", "paper"),
            ("faint", "paper"),
            ("faint", "card"),
            ("ink", "card"),
            ("link", "paper"),
            ("for-ink", "for"),
            ("against-ink", "against"),
            ("mixed-ink", "mixed"),
            ("found", "found-card"),
            ("ink", "found-card"),
            ("caution", "caution-card"),
            ("faint", "caution-card"),
        ] {
            let (a, b) = (colour(ink), colour(paper));
            let ratio = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(ratio >= 4.5, "{ink} on {paper}: {ratio:.2}");
        }
    }
}

#[test]
fn an_index_lists_pages() {
    let report = judged(SchemeParameters::default(), "Too short.");
    let row = index_row("a <b>.txt", "0001-a.html", &report);
    let html = format!("{}{row}{row}{INDEX_FOOT}", index_head());
    balanced(&html);
    assert!(html.contains("<a href=\"0001-a.html\">a &lt;b&gt;.txt</a>"));
    assert!(html.contains("insufficient"));
}

#[test]
fn hidden_characters_are_named_and_needed_ones_are_left() {
    let cases = [
        ("plain ASCII\n\ttext", "plain ASCII  text"),
        ("a\u{200b}b", "a<U+200B>b"),
        ("a\u{200b}\u{200b}\u{200b}b", "a<U+200B ×3>b"),
        ("a\u{200b}\u{200c}b", "a<U+200B U+200C>b"),
        ("\u{1b}[31m", "<U+001B>[31m"),
        ("x\u{202e}y\u{2066}", "x<U+202E>y<U+2066>"),
        // Families, flags, keycaps, hearts, Persian and Devanagari need theirs.
        ("👩\u{200d}👧", "👩\u{200d}👧"),
        ("1\u{fe0f}\u{20e3} ❤\u{fe0f}", "1\u{fe0f}\u{20e3} ❤\u{fe0f}"),
        ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ("क्\u{200d}ष", "क्\u{200d}ष"),
        ("🏴\u{e0067}\u{e007f}", "🏴\u{e0067}\u{e007f}"),
        ("a\u{200d}b", "a<U+200D>b"),
        ("a\u{e0067}b", "a<U+E0067>b"),
        // One selector chooses a form, more carry data.
        ("A\u{fe0f}", "A<U+FE0F>"),
        ("❤\u{fe0f}\u{fe01}", "❤\u{fe0f}<U+FE01>"),
        ("a\r\nb\rc", "a b<U+000D>c"),
    ];
    for (text, shown) in cases {
        assert_eq!(one_line(text), shown);
    }
    assert_eq!(label("\u{fe00}\u{fe01}\u{fe02}\u{fe03}\u{fe04}"), "U+FE00 and 4 more hidden");
}

proptest! {
    #[test]
    fn parts_are_the_text(text in any::<String>()) {
        let whole: String = parts(&text)
            .iter()
            .map(|part| match part { Part::Shown(text) | Part::Hidden(text) => *text })
            .collect();
        prop_assert_eq!(whole, text.replace("\r\n", "\n"));
    }

    #[test]
    fn stretches_are_the_text_and_hold_every_token_once(text in "[a-cé日👩\u{200d}\u{301}\r\n ]{0,60}") {
        let report = judged(SchemeParameters::default(), &text);
        let details = report.token_details.unwrap();
        let all = stretches(&text, &details);
        for found in [&all, &merged(&all)] {
            let (mut byte, mut token) = (0, 0);
            for stretch in found {
                prop_assert_eq!((stretch.bytes.start, stretch.tokens.start), (byte, token));
                prop_assert!(text.get(stretch.bytes.clone()).is_some_and(|part| !part.is_empty()));
                (byte, token) = (stretch.bytes.end, stretch.tokens.end);
            }
            prop_assert_eq!((byte, token), (text.len(), details.len()));
        }
        prop_assert!(merged(&all).windows(2).all(|pair| pair[0].mark != pair[1].mark));
    }
}

#[test]
fn tokens_of_one_character_are_shown_together() {
    let text = "x👩y";
    let report = judged(SchemeParameters::default(), text);
    let details = report.token_details.unwrap();
    let found = stretches(text, &details);
    let bytes: Vec<_> = found.iter().map(|stretch| stretch.bytes.clone()).collect();
    assert_eq!(bytes, [0..1, 1..5, 5..6]);
    assert!(found[1].tokens.len() > 1, "the tiny vocabulary spells an emoji in bytes");
    assert_eq!(found[0].mark, Mark::Unscored);
}
