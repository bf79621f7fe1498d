//! Calibration over passages and keys: against direct computation, closed forms and itself.

use greenmark::detect::calibration::{Block, Calibration, Corpus, Passage, Plan, fixed_keys};
use greenmark::detect::{Alpha, Outcome, Scorable, Test, gather};
use greenmark::prf::{ChaCha8Stream, Key};
use greenmark::profile::{
    Context, ContextWidth, Delta, Gamma, KeyIdentity, Profile, PromptContext, Repeats,
    SchemeParameters, TokenizerIdentity,
};
use greenmark::scheme::build;
use greenmark::token::TokenSet;
use proptest::prelude::*;

fn profile(scheme: SchemeParameters, width: u64) -> Profile {
    let context = Context {
        width: ContextWidth::new(width).unwrap(),
        prompt: PromptContext::Tail,
        repeats: Repeats::Mark,
    };
    let tokenizer =
        TokenizerIdentity { fingerprint: "ab".repeat(32), never_marked: "cd".repeat(32) };
    let key = Key::from_bytes([1; 32]).fingerprint();
    Profile::new(scheme, context, tokenizer, KeyIdentity { id: "k".to_owned(), fingerprint: key })
        .unwrap()
}

fn green_list(gamma: f64, width: u64) -> Profile {
    let gamma = Gamma::new(gamma).unwrap();
    profile(SchemeParameters::GreenList { gamma, delta: Delta::DEFAULT }, width)
}

fn plan(pairs: u64, lengths: &[u32], alphas: &[f64]) -> Plan {
    let alphas = alphas.iter().map(|alpha| Alpha::new(*alpha).unwrap()).collect();
    Plan::new(pairs, 7, lengths.to_vec(), alphas).unwrap()
}

fn nothing() -> TokenSet {
    TokenSet::empty(1000)
}

/// `documents` of `passages` passages of `tokens` tokens that repeat themselves as text does: the
/// square of a uniform number favours small ids.
fn texts(documents: u32, passages: u32, tokens: usize) -> (Vec<String>, Vec<Passage>) {
    let mut all = Vec::new();
    for document in 0..documents {
        let words = ChaCha8Stream::new(&[document as u8; 32]).words(passages as usize * tokens);
        let id = |word: &u32| ((f64::from(*word) / 2f64.powi(32)).powi(2) * 900.0) as u32;
        for (index, words) in words.chunks(tokens).enumerate() {
            let (offset, ids) = (index as u64 * 1000, words.iter().map(id).collect());
            all.push(Passage { document, offset, ids });
        }
    }
    ((0..documents).map(|document| format!("text {document}")).collect(), all)
}

fn all_blocks(calibration: &Calibration) -> Vec<Block> {
    (0..calibration.blocks()).map(|index| calibration.block(index)).collect()
}

#[test]
fn fixed_keys_are_counted_as_a_detection_counts() {
    let (names, passages) = texts(5, 40, 60);
    let keys = fixed_keys(3, 4);
    let (lengths, alphas) = ([25, 60], [0.2, 0.05, 0.01]);
    let gumbel = profile(SchemeParameters::Gumbel {}, 2);
    for profile in [green_list(0.5, 0), green_list(0.25, 1), gumbel] {
        let calibration = Calibration::new(
            Corpus::new(&names, passages.clone()),
            plan(0, &lengths, &alphas),
            profile.clone(),
            nothing(),
            &keys,
        );
        let summary = calibration.summary(&all_blocks(&calibration));
        for (row, length) in summary.fixed_keys.iter().zip(lengths) {
            assert_eq!((row.tokens, row.passages, row.keys), (length, 200, 4));
            for (rate, alpha) in row.rates.iter().zip(alphas) {
                for (of_key, key) in rate.keys.iter().zip(&keys) {
                    let scheme = build(&profile, key);
                    let fires = |passage: &&Passage| {
                        let ids = &passage.ids[..length as usize];
                        let evidence = gather(&*scheme, &nothing(), &[], ids);
                        Test::new(scheme.null(), &evidence).p <= Alpha::new(alpha).unwrap().log()
                    };
                    let count = passages.iter().filter(fires).count() as u64;
                    assert_eq!((of_key.count, of_key.key_fingerprint), (count, key.fingerprint()));
                    assert!(of_key.interval.0 <= of_key.rate && of_key.rate <= of_key.interval.1);
                }
                assert_eq!(rate.count, rate.keys.iter().map(|key| key.count).sum::<u64>());
                assert_eq!(rate.rate, rate.count as f64 / 800.0);
            }
            assert!(row.rates[0].count > 0, "something fires at 0.2");
        }
    }
}

#[test]
fn the_attainable_rate_is_the_exact_size_of_the_test() {
    // 25 different tokens: P(X >= 21) = 15,276 / 2^25 is the largest tail of at most 1e-3.
    let passage = Passage { document: 0, offset: 0, ids: (0..25).collect() };
    let calibration = Calibration::new(
        Corpus::new(&["t".to_owned()], vec![passage]),
        plan(50_000, &[25], &[1e-3, 1e-8]),
        green_list(0.5, 0),
        nothing(),
        &[],
    );
    let row = &calibration.summary(&all_blocks(&calibration)).validity[0];
    assert_eq!((row.pairs, row.mean_scored), (50_000, 25.0));
    let exact = 15_276.0 / 2f64.powi(25);
    assert!((row.rates[0].attainable / exact - 1.0).abs() < 1e-9, "{}", row.rates[0].attainable);
    // No count of 25 tokens is that rare: 2^-25 is 3e-8.
    assert_eq!((row.rates[1].attainable, row.rates[1].expected_count), (0.0, (0, 0)));
    assert!(row.rates[0].within && row.rates[1].within, "{row:?}");
}

#[test]
fn fresh_keys_agree_with_the_attainable_rate() {
    let (names, passages) = texts(10, 40, 50);
    let gumbel = profile(SchemeParameters::Gumbel {}, 1);
    for profile in [green_list(0.5, 0), green_list(0.25, 1), green_list(0.5, 4), gumbel] {
        let calibration = Calibration::new(
            Corpus::new(&names, passages.clone()),
            plan(20_000, &[25, 50], &[0.1, 0.01]),
            profile,
            nothing(),
            &[],
        );
        for row in calibration.summary(&all_blocks(&calibration)).validity {
            assert_eq!(row.pairs, 20_000);
            assert!(row.rates.iter().all(|rate| rate.within), "{row:?}");
            // The central 99.9% of the p-value of a true null.
            assert!(row.ks_p_value > 5e-4, "{row:?}");
            for rate in row.rates {
                assert!(rate.attainable <= rate.alpha && rate.attainable > rate.alpha / 4.0);
                assert!(rate.interval.0 < rate.measured && rate.measured < rate.interval.1);
            }
        }
    }
}

#[test]
fn passages_that_share_their_words_widen_the_intervals_of_a_fixed_key() {
    // One text in 200 documents: under a key all copies fire or none does.
    let ids: Box<[u32]> = (100..150).collect();
    let names: Vec<String> = (0..200).map(|index| format!("copy {index}")).collect();
    let copies = (0..200).map(|document| Passage { document, offset: 0, ids: ids.clone() });
    let calibration = Calibration::new(
        Corpus::new(&names, copies.collect()),
        plan(0, &[50], &[0.2]),
        green_list(0.5, 1),
        nothing(),
        &fixed_keys(1, 20),
    );
    let blocks = all_blocks(&calibration);
    let rate = &calibration.summary(&blocks).fixed_keys[0].rates[0];
    assert!(rate.keys.iter().all(|key| key.count == 0 || key.count == 200));
    let firing = rate.keys.iter().filter(|key| key.count == 200).count();
    assert!((1..10).contains(&firing), "{firing}");
    assert!(rate.key_deviation.unwrap() > 5.0 * rate.independent_deviation, "{rate:?}");
    // Independent passages would give an interval narrower than 0.03.
    assert!(rate.interval.1 - rate.interval.0 > 0.15, "{rate:?}");

    let list = calibration.most_firing(&blocks, 3);
    assert_eq!(list.len(), 3);
    for (passage, name) in list.iter().zip(["copy 0", "copy 1", "copy 10"]) {
        assert_eq!((passage.document.as_str(), passage.fired), (name, firing as u64));
        assert_eq!((passage.keys, passage.rate), (20, firing as f64 / 20.0));
    }
}

#[test]
fn order_threads_and_stored_blocks_change_nothing() {
    let (names, passages) = texts(6, 50, 30);
    let calibration = |names: &[String], passages: Vec<Passage>| {
        let corpus = Corpus::new(names, passages);
        let plan = plan(60_000, &[10, 30], &[0.1, 0.001]);
        Calibration::new(corpus, plan, green_list(0.25, 1), nothing(), &fixed_keys(1, 3))
    };
    let result = |calibration: &Calibration, blocks: &[Block]| {
        let list = calibration.most_firing(blocks, 20);
        serde_json::to_string(&(calibration.summary(blocks), list)).unwrap()
    };
    let ours = calibration(&names, passages.clone());
    assert!(ours.blocks() > 2, "{}", ours.blocks());
    let blocks = all_blocks(&ours);
    let expected = result(&ours, &blocks);

    let backwards: Vec<String> = names.iter().rev().cloned().collect();
    let last = names.len() as u32 - 1;
    let turned = passages
        .iter()
        .rev()
        .map(|passage| Passage { document: last - passage.document, ..passage.clone() });
    let other = calibration(&backwards, turned.collect());
    assert_eq!(other.fingerprint(), ours.fingerprint());
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut blocks = pool.install(|| all_blocks(&other));
        blocks.reverse();
        assert_eq!(pool.install(|| result(&other, &blocks)), expected);
    }

    let stored = blocks.iter().map(|block| serde_json::to_string(block).unwrap());
    let read: Vec<Block> = stored.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(read, blocks);
}

#[test]
fn everything_that_changes_the_result_changes_the_fingerprint() {
    let (names, passages) = texts(2, 3, 30);
    let corpus = || Corpus::new(&names, passages.clone());
    let base = || plan(10, &[10], &[0.1]);
    let of = |corpus, plan, profile: Profile, keys: u32| {
        let calibration = Calibration::new(corpus, plan, profile, nothing(), &fixed_keys(1, keys));
        calibration.fingerprint().to_owned()
    };
    let shorter = Corpus::new(&names, passages[1..].to_vec());
    let mut moved = passages.clone();
    moved[0].offset += 1;
    let alphas = vec![Alpha::new(0.1).unwrap()];
    let mut all = vec![
        of(corpus(), base(), green_list(0.5, 1), 2),
        of(shorter, base(), green_list(0.5, 1), 2),
        of(Corpus::new(&names, moved), base(), green_list(0.5, 1), 2),
        of(corpus(), plan(11, &[10], &[0.1]), green_list(0.5, 1), 2),
        of(corpus(), plan(10, &[11], &[0.1]), green_list(0.5, 1), 2),
        of(corpus(), plan(10, &[10], &[0.2]), green_list(0.5, 1), 2),
        of(corpus(), Plan::new(10, 8, vec![10], alphas).unwrap(), green_list(0.5, 1), 2),
        of(corpus(), base(), green_list(0.25, 1), 2),
        of(corpus(), base(), green_list(0.5, 2), 2),
        of(corpus(), base(), profile(SchemeParameters::Gumbel {}, 1), 2),
        of(corpus(), base(), green_list(0.5, 1), 3),
    ];
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn plans_outside_their_limits_are_refused() {
    let alphas = |count: usize| {
        (1..=count).map(|index| Alpha::new(index as f64 / 100.0).unwrap()).collect::<Vec<_>>()
    };
    for (pairs, lengths, count) in [
        (Plan::MOST_PAIRS + 1, vec![25], 1),
        (1, vec![], 1),
        (1, vec![0, 25], 1),
        (1, vec![Plan::LONGEST + 1], 1),
        (1, (1..=17).collect(), 1),
        (1, vec![25], 0),
        (1, vec![25], 17),
    ] {
        assert!(Plan::new(pairs, 0, lengths, alphas(count)).is_err());
    }
    let plan = Plan::new(1, 0, vec![50, 25, 50], alphas(2)).unwrap();
    assert_eq!(plan.lengths(), [25, 50]);
    assert!(plan.alphas()[0].value() > plan.alphas()[1].value());
}

proptest! {
    #[test]
    fn scores_found_once_are_those_of_every_key(
        ids in prop::collection::vec(0u32..30, 0..80),
        prompt in prop::collection::vec(0u32..30, 0..5),
        width in 0u64..5,
        end in 0usize..90,
    ) {
        let never = TokenSet::from_ids(1000, [0, 1]).unwrap();
        let profile = green_list(0.5, width);
        let keys = fixed_keys(9, 3);
        let schemes: Vec<_> = keys.iter().map(|key| build(&profile, key)).collect();
        let scorable = Scorable::new(&*schemes[0], &never, &prompt, &ids);
        for scheme in &schemes {
            let evidence = gather(&**scheme, &never, &prompt, &ids);
            prop_assert_eq!(&scorable.evidence(&**scheme), &evidence);
            let scored = evidence.outcomes.iter().enumerate().filter_map(|(index, outcome)| {
                match outcome {
                    Outcome::Scored(score) => Some((index, *score)),
                    Outcome::Skipped(_) => None,
                }
            });
            let scored: Vec<(usize, f64)> = scored.collect();
            let before = scored.iter().filter(|(index, _)| *index < end).count();
            prop_assert_eq!(scorable.scored_before(end), before);
            prop_assert_eq!(scorable.scores(&**scheme).collect::<Vec<_>>(), scored);
        }
    }
}
