//! What has to be the same on every machine, tried on this one.

use std::sync::Arc;

use greenmark::Result;
use greenmark::detect::{DetectOptions, Report, Verdict};
use greenmark::document::{Circumstances, Detector, identify};
use greenmark::prf::{Key, hex};
use greenmark::profile::{ContextWidth, Delta, Gamma};
use greenmark::scheme::GreenList;
use greenmark::text::Tokenizer;

use super::Check;
use crate::args::MarkArgs;
use crate::resolve::{ExplicitMark, NamedKey};

/// What a wrong self test asks for.
const REMEDY: &str = "this build computes wrongly here: build it again, and report it";

/// The first case of `data/vectors/green_list.json`, which a program in another language made.
const VECTOR_KEY: &str = "79f1fd0518bec66ca50405acb71aa74b9f8f3928095de8da5f6d46f6e9908e0b";
const VECTOR_CONTEXT: u32 = 25_872;
const VECTOR_SEED: &str = "00c740edbe7ddf5b0534d7ea84b7f7fb49497c45d7b6f61a69a98b47ba1115ed";
const VECTOR_WORDS: [u32; 4] = [31_318_282, 4_105_272_535, 3_230_114_917, 2_238_619_192];

/// A tokenizer of 300 ids, in which capital letters are tokens.
const TOKENIZER: &[u8] = include_bytes!("../../../../data/models/tokenizer-300.json");
/// Letters, each green after the one before it under the key 00 01 02 … 1f and the default mark.
const MARKED: &str = "QTONIYMUFGYGJMXJBPJMOKJWOVUCIBOKCDAFBPSHZWXFLOEVWXCAFEDNLUEDUYBDKRRAHINFGSS\
                      GMBEFOOJTUGDRXYKBGYOTCIYDJBSHJKXVKRSSSRBOTLOF";
/// Distinct pairs of neighbours in it.
const SCORED: u64 = 101;

/// The pseudo-random function behind every mark, against a golden value.
pub(super) fn prf() -> Check {
    let name = "PRF";
    let found = || -> Result<(String, Vec<u32>)> {
        let (key, width) = (Key::from_hex(VECTOR_KEY)?, ContextWidth::new(1)?);
        let scheme = GreenList::new(&key, Gamma::DEFAULT, Delta::DEFAULT, width);
        Ok((hex(&scheme.seed(&[VECTOR_CONTEXT])), scheme.words(&[VECTOR_CONTEXT], 4)))
    };
    match found() {
        Ok((seed, words)) if seed == VECTOR_SEED && words == VECTOR_WORDS => {
            Check::ok(name, "equals the golden value")
        }
        Ok((seed, words)) => {
            Check::problem(name, format!("seed {seed}, words {words:?} are not the golden"), REMEDY)
        }
        Err(error) => Check::problem_of(name, &error),
    }
}

/// A short marked text, with its key and with another one.
pub(super) fn detection() -> Check {
    let name = "detection";
    let key: [u8; 32] = std::array::from_fn(|index| index.to_le_bytes()[0]);
    let reports = || -> Result<(Report, Report)> { Ok((judge(key)?, judge([0xff; 32])?)) };
    match reports() {
        Ok((own, other)) => {
            // All green: the exact p is one half to the power of the count.
            let expected = -(SCORED as f64) * std::f64::consts::LOG10_2;
            let holds = own.verdict == Verdict::Watermarked
                && own.scored == SCORED
                && (own.log10_p - expected).abs() < 1e-9
                && other.verdict == Verdict::NotDetected;
            let said = format!(
                "a built-in text of {} scored tokens: {}, log10 p {:.2}; with another key: {}",
                own.scored,
                own.verdict.words(),
                own.log10_p,
                other.verdict.words()
            );
            if holds { Check::ok(name, said) } else { Check::problem(name, said, REMEDY) }
        }
        Err(error) => Check::problem_of(name, &error),
    }
}

fn judge(key: [u8; 32]) -> Result<Report> {
    let key = NamedKey::new(Key::from_bytes(key), "self-test");
    let tokenizer = Arc::new(Tokenizer::from_json_bytes(TOKENIZER, "tokenizer-300.json")?);
    let mark = ExplicitMark::resolve(&MarkArgs::default())?;
    let profile = mark.profile(identify(&tokenizer), &key)?;
    let detector = Detector::new(tokenizer, profile, &key.key, DetectOptions::default())?;
    detector.text(MARKED, &Circumstances::default())
}
