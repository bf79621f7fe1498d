//! Golden bits per preset with every member on, and the same steps by the reference in f64.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use greenmark::prf::{ChaCha8Stream, PrfTag, draw_seed};
use greenmark::sample::{Chain, Draw, History, MEMBERS, Preset, SamplingOptions, Scratch, Trace};
use greenmark::scheme::{Action, Gate, Membership, Scope, Step, Uniforms};
use greenmark::token::{TokenId, TokenSet};
use serde_json::{Value, json};

use crate::reference;
use crate::support::{logits, options};

const VOCAB: usize = 1_000;
const END_IDS: [TokenId; 2] = [2, 0];
const STEPS: u64 = 12;
const PROMPT: [TokenId; 12] = [5, 6, 7, 5, 6, 7, 900, 12, 13, 14, 5, 6];

/// Every member but Mirostat, which replaces the truncation.
pub(crate) fn all_members() -> Value {
    json!({
        "temperature": 1.3, "top_k": 300, "top_p": 0.97, "min_p": 0.004, "typical_p": 0.98,
        "epsilon_cutoff": 0.004, "eta_cutoff": 0.02, "top_n_sigma": 3,
        "repetition_penalty": 1.15, "presence_penalty": 0.25, "frequency_penalty": 0.125,
        "no_repeat_ngram_size": 3,
        "dry": { "multiplier": 0.8, "sequence_breakers": [[900, 12]] },
        "xtc": { "probability": 0.5, "threshold": 0.02 },
        "logit_bias": { "7": 1.5, "11": "-inf", "30": -2 },
        "bad_words": [[40], [5, 6, 41]],
        "allowed_tokens": (0..VOCAB).filter(|id| id % 10 != 9).collect::<Vec<_>>(),
        "min_tokens": 5,
    })
}

fn with(base: &Value, changes: &Value) -> SamplingOptions {
    let mut merged = base.clone();
    for (name, value) in changes.as_object().expect("an object") {
        merged[name] = value.clone();
    }
    options(merged)
}

fn steps() -> [(&'static str, Step); 3] {
    let stream = ChaCha8Stream::new(&[42; 32]);
    let membership = Membership::ChaCha8 { stream: stream.clone(), threshold: 1 << 31 };
    let bias = Action::Bias { membership, delta: 2.0, scope: Scope::Survivors };
    let race = Action::Race { uniforms: Uniforms::ChaCha8 { stream } };
    [
        ("keep", Step::KEEP),
        ("bias", Step { gate: Gate::Always, action: bias }),
        ("race", Step { gate: Gate::Always, action: race }),
    ]
}

fn xtc_acts(draw: Draw, probability: f64) -> bool {
    let tag = PrfTag::new("greenmark/xtc/1");
    let seed = draw_seed(tag, draw.seed, draw.sample, draw.step);
    let word = ChaCha8Stream::new(&seed).word_pair(0);
    (word >> 11) as f64 / 2f64.powi(53) < probability
}

/// Runs a request step by step; each step is compared with the reference and printed.
fn run(
    name: &str,
    options: &SamplingOptions,
    step: &Step,
    out: &mut String,
    acted: &mut BTreeSet<&'static str>,
) {
    let never_marked = Arc::new(TokenSet::from_ids(VOCAB, END_IDS).expect("ids"));
    let chain = Chain::new(options.clone(), VOCAB, &END_IDS, never_marked).expect("valid");
    let mut history = History::new(&PROMPT);
    let mut scratch = Scratch::new();
    let (mut generated, mut mu) = (Vec::new(), options.mirostat.map_or(0.0, |m| 2.0 * m.tau));
    writeln!(out, "{name}: {}", chain.effective().order.join(" ")).expect("a string");
    for index in 0..STEPS {
        let draw = Draw { seed: 11, sample: 1, step: index };
        let logits = logits(u8::try_from(index).expect("few steps"), VOCAB);
        let inputs = reference::Inputs {
            options,
            prompt: &PROMPT,
            generated: &generated,
            end_ids: &END_IDS,
            xtc_acts: options.xtc.is_some_and(|xtc| xtc_acts(draw, xtc.probability)),
            mu,
        };
        let expected = reference::apply(&inputs, &logits);
        let trace =
            chain.trace(&logits, &history, step.clone(), draw, &mut scratch).expect("a token");
        let outcome = trace.outcome;
        assert_eq!(
            outcome,
            chain.step(&logits, &history, step.clone(), draw, &mut scratch).expect("a token")
        );

        note_changes(&logits, &trace, acted);
        let kept: Vec<TokenId> = expected.iter().map(|&(id, _)| id).collect();
        let last = trace.stages.last().expect("a stage");
        assert_eq!(last.kept, kept, "{name}, step {index}");
        let p = reference::softmax(&expected);
        let entropy: f64 = p.iter().map(|p| -p * p.ln()).sum();
        assert!((outcome.entropy - entropy).abs() < 1e-5, "{name}, step {index}");
        let chosen = kept.binary_search(&outcome.token).expect("a survivor");
        assert!((outcome.surprisal + p[chosen].ln()).abs() < 2e-5, "{name}, step {index}");
        let marked = marked(step, &expected);
        let p = reference::softmax(&marked);
        assert!((f64::from(outcome.logprob) - p[chosen].ln()).abs() < 2e-5, "{name}, step {index}");
        for (index, p) in p.iter().enumerate() {
            assert!((trace.probabilities[&kept[index]] - p).abs() < 1e-6, "{name}");
        }

        chain.accept(&mut history, &outcome);
        if let Some(mirostat) = options.mirostat {
            let bits = outcome.surprisal / std::f64::consts::LN_2;
            mu -= mirostat.eta * (bits - mirostat.tau);
        }
        generated.push(outcome.token);
        writeln!(
            out,
            "  {:3} {:08x} {:3}",
            outcome.token,
            outcome.logprob.to_bits(),
            outcome.survivors
        )
        .expect("a string");
    }
}

/// Records which members changed something.
fn note_changes(logits: &[f32], trace: &Trace, acted: &mut BTreeSet<&'static str>) {
    let ids: Vec<TokenId> = (0..).take(logits.len()).collect();
    let mut before = (ids.as_slice(), logits);
    for stage in &trace.stages {
        let after = (stage.kept.as_slice(), stage.logits.as_slice());
        if after != before {
            acted.insert(stage.processor);
        }
        before = after;
    }
}

fn marked(step: &Step, left: &reference::Logits) -> reference::Logits {
    let mut left = left.clone();
    if let Action::Bias { membership, delta, .. } = &step.action {
        let mut membership = membership.clone();
        for (id, logit) in &mut left {
            if !END_IDS.contains(id) && membership.contains(*id) {
                *logit += f64::from(*delta);
            }
        }
    }
    left
}

#[test]
fn golden_bits_of_every_preset_with_every_member_on() {
    let (mut out, mut acted) = (String::new(), BTreeSet::new());
    for preset in Preset::ALL {
        for (mark, step) in steps() {
            let options = with(&all_members(), &json!({ "order": preset.name() }));
            run(&format!("{} {mark}", preset.name()), &options, &step, &mut out, &mut acted);
        }
        for mode in [1, 2] {
            let mirostat = json!({ "mode": mode, "tau": 3, "eta": 0.3 });
            let changes = json!({ "order": preset.name(), "mirostat": mirostat });
            let name = format!("{} mirostat {mode}", preset.name());
            run(&name, &with(&all_members(), &changes), &Step::KEEP, &mut out, &mut acted);
        }
    }
    // A member whose value never binds would not be held by these bits.
    for member in MEMBERS {
        assert!(acted.contains(member.name), "{} never acted", member.name);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn all_members_are_on() {
    let chain =
        Chain::new(options(all_members()), VOCAB, &END_IDS, Arc::new(TokenSet::empty(VOCAB)))
            .expect("valid");
    for member in MEMBERS.iter().filter(|member| member.name != "mirostat") {
        assert!(chain.effective().order.iter().any(|name| name == member.name), "{}", member.name);
    }
}
