//! Which tokens count, against golden sequences and the field cases.

use greenmark::detect::{Outcome, Skip, Test, gather};
use greenmark::prf::{ChaCha8Stream, ContextSeeder, Key, PrfTag, hex, neg_ln_one_minus_uniform};
use greenmark::profile::{ContextWidth, Delta, Gamma};
use greenmark::scheme::{GreenList, Gumbel, Null, Scheme};
use greenmark::stats::ln_binomial_upper;
use greenmark::token::TokenSet;
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/data/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

fn green_list(key: &Key, gamma: f64, width: u64) -> GreenList {
    GreenList::new(
        key,
        Gamma::new(gamma).unwrap(),
        Delta::DEFAULT,
        ContextWidth::new(width).unwrap(),
    )
}

fn nothing() -> TokenSet {
    TokenSet::empty(200_000)
}

#[test]
fn golden_sequences_have_their_counts_and_z() {
    let vectors = vectors("green_list.json");
    let cases = vectors["sequences"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let scheme = green_list(
            &Key::from_hex(case["key"].as_str().unwrap()).unwrap(),
            case["gamma"].as_f64().unwrap(),
            case["context_width"].as_u64().unwrap(),
        );
        let evidence = gather(&scheme, &nothing(), &[], &ids(&case["ids"]));
        assert_eq!(evidence.scored, case["scored"].as_u64().unwrap());
        assert_eq!(evidence.sum, case["green"].as_f64().unwrap());
        assert_eq!(evidence.skipped.prefix, case["skipped_prefix"].as_u64().unwrap());
        assert_eq!(evidence.skipped.repeated, case["skipped_repeated"].as_u64().unwrap());
        let z = Test::new(scheme.null(), &evidence).z.unwrap();
        assert!((z - case["z"].as_f64().unwrap()).abs() < 1e-9);
    }
}

#[test]
fn golden_gumbel_scores_and_sums_hold() {
    let vectors = vectors("draw.json");
    let close = |actual: f64, expected: f64| {
        assert!((actual / expected - 1.0).abs() < 1e-12, "{actual} {expected}");
    };
    for case in vectors["gumbel"].as_array().unwrap() {
        let key = Key::from_hex(case["key"].as_str().unwrap()).unwrap();
        let seed = ContextSeeder::new(&key, PrfTag::new("greenmark/gumbel/1"))
            .seed(&ids(&case["context"]));
        assert_eq!(hex(&seed), case["seed"].as_str().unwrap());
        for (id, score) in case["score"].as_object().unwrap() {
            let bits = ChaCha8Stream::new(&seed).word_pair(id.parse().unwrap());
            close(neg_ln_one_minus_uniform(bits), score.as_f64().unwrap());
        }
    }
    let sequences = vectors["gumbel_sequences"].as_array().unwrap();
    assert_eq!(sequences.len(), 2);
    for case in sequences {
        let key = Key::from_hex(case["key"].as_str().unwrap()).unwrap();
        let width = ContextWidth::new(case["context_width"].as_u64().unwrap()).unwrap();
        let scheme = Gumbel::new(&key, width);
        let evidence = gather(&scheme, &nothing(), &[], &ids(&case["ids"]));
        assert_eq!(evidence.scored, case["scored"].as_u64().unwrap());
        close(evidence.sum, case["sum"].as_f64().unwrap());
    }
}

#[test]
fn w05_the_first_width_tokens_are_not_scored_without_a_prompt() {
    let key = Key::from_bytes([3; 32]);
    let tokens: Vec<u32> = (10..20).collect();
    for (width, scored) in [(0, 10), (1, 9), (4, 6), (16, 0)] {
        let evidence = gather(&green_list(&key, 0.5, width), &nothing(), &[], &tokens);
        assert_eq!((evidence.scored, evidence.skipped.prefix), (scored, 10 - scored));
        assert_eq!(gather(&green_list(&key, 0.5, width), &nothing(), &[], &[]).scored, 0);
    }
}

#[test]
fn w06_the_prompt_gives_context_and_is_never_scored() {
    let scheme = green_list(&Key::from_bytes([4; 32]), 0.5, 2);
    let (prompt, tokens) = ([900, 901, 902], [5, 6, 7]);
    let evidence = gather(&scheme, &nothing(), &prompt, &tokens);
    assert_eq!((evidence.scored, evidence.outcomes.len()), (3, 3));
    let first = f64::from(u8::from(scheme.is_green(&[901, 902], 5)));
    assert_eq!(evidence.outcomes[0], Outcome::Scored(first));
}

#[test]
fn w08_repeated_text_is_not_flagged_more_often_than_stated() {
    // A 20-token sentence 15 times, 2,000 keys. At p < 0.01 the exact size at T = 20 is 0.0059;
    // the 99.9% quantile of Binomial(2000, 0.01) is 36.
    let sentence: Vec<u32> = (0..20).map(|i| 1000 + 37 * i).collect();
    let text: Vec<u32> = sentence.iter().copied().cycle().take(300).collect();
    let mut flagged = 0;
    let mut flagged_raw = 0;
    for index in 0..2000u32 {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&index.to_le_bytes());
        let scheme = green_list(&Key::from_bytes(bytes), 0.5, 1);
        let evidence = gather(&scheme, &nothing(), &[], &text);
        assert_eq!((evidence.scored, evidence.raw, evidence.skipped.repeated), (20, 299, 279));
        let level = 0.01f64.ln();
        flagged += u32::from(Test::new(scheme.null(), &evidence).p.ln() < level);
        let raw = ln_binomial_upper(evidence.raw, evidence.raw_sum as u64, 0.5);
        flagged_raw += u32::from(raw < level);
    }
    assert!(flagged <= 36, "{flagged} of 2000 keys flag an unmarked repetitive text");
    assert!(flagged_raw > 300, "without deduplication the fault of the case shows: {flagged_raw}");
}

#[test]
fn w33_each_item_is_judged_by_its_own_ids() {
    // The start token is skipped by what it is, not by what row 0 begins with.
    let scheme = green_list(&Key::from_bytes([6; 32]), 0.5, 1);
    let special = TokenSet::from_ids(49_152, [1]).unwrap();
    for (ids, scored) in [(vec![1, 19_556, 28], 2), (vec![19_556, 28, 905], 2)] {
        assert_eq!(gather(&scheme, &special, &[], &ids).scored, scored);
    }
    let evidence = gather(&scheme, &special, &[], &[7, 1, 8]);
    assert_eq!(evidence.outcomes[1], Outcome::Skipped(Skip::Special));
    assert_eq!((evidence.scored, evidence.skipped.special), (1, 1));
}

#[test]
fn the_null_of_the_gumbel_scheme_has_the_stated_moments() {
    let mut sums = Vec::new();
    for index in 0..400u32 {
        let mut bytes = [9; 32];
        bytes[..4].copy_from_slice(&index.to_le_bytes());
        let scheme = Gumbel::new(&Key::from_bytes(bytes), ContextWidth::new(2).unwrap());
        assert_eq!(scheme.null(), Null::Exponential);
        let text: Vec<u32> = (0..102).map(|i| i * i % 7919).collect();
        sums.push(gather(&scheme, &nothing(), &[], &text).sum);
    }
    let mean = sums.iter().sum::<f64>() / 400.0;
    let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / 399.0;
    // Sum of 100 Exp(1): mean 100 with standard error 0.5; variance 100 with standard error 7.3.
    assert!((mean - 100.0).abs() < 2.0, "{mean}");
    assert!((variance - 100.0).abs() < 30.0, "{variance}");
}

#[test]
fn w23_scoring_draws_no_permutation_of_the_vocabulary() {
    // One block of the key stream per token: a permutation of 128,256 ids for each of 200,000
    // contexts would take minutes. `benches/chain.rs` has the speed.
    let ids: Vec<u32> = (0..200_000u32).map(|i| i.wrapping_mul(2_654_435_761) % 128_256).collect();
    let scheme = green_list(&Key::from_bytes([23; 32]), 0.25, 4);
    let started = std::time::Instant::now();
    let evidence = gather(&scheme, &nothing(), &[], &ids);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert!(evidence.scored > 180_000, "{}", evidence.scored);
}
