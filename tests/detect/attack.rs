//! Attacks touch exactly what they say, and each place and replacement alike.

use greenmark::document::{Attack, AttackSeed, Share, distinct_ngrams};
use proptest::prelude::*;

fn seed(text: u32) -> AttackSeed {
    AttackSeed { seed: 1, text, attack: 0 }
}

fn share(value: f64) -> Share {
    Share::new(value).unwrap()
}

/// How often each of `values` came in `trials` texts of the same share must lie within 99.9% of
/// Binomial(trials, p), all of them together: 4.42 standard deviations for up to 100 of them.
fn all_alike(counts: &[u32], trials: u32, p: f64) {
    let deviation = (f64::from(trials) * p * (1.0 - p)).sqrt();
    for (place, &count) in counts.iter().enumerate() {
        let off = (f64::from(count) - f64::from(trials) * p) / deviation;
        assert!(off.abs() <= 4.42, "place {place} is {off} deviations off: {counts:?}");
    }
}

proptest! {
    #[test]
    fn deletions_keep_order_and_leave_out_the_share(n in 0usize..300, part in 0.0f64..=1.0, text: u32) {
        let ids: Vec<u32> = (0..n as u32).collect();
        let left = Attack::Deletion.apply(&ids, share(part), seed(text));
        prop_assert_eq!(left.len(), n - (part * n as f64).round() as usize);
        prop_assert!(left.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn substitutions_change_the_share_and_nothing_else(n in 0usize..300, part in 0.0f64..=1.0, text: u32) {
        let ids: Vec<u32> = (0..n as u32).map(|id| id % 7).collect();
        let pool = [1, 2, 2, 500];
        let changed = Attack::Substitution { pool: &pool }.apply(&ids, share(part), seed(text));
        prop_assert_eq!(changed.len(), n);
        let differing = ids.iter().zip(&changed).filter(|(old, new)| old != new);
        let new: Vec<u32> = differing.map(|(_, &new)| new).collect();
        prop_assert_eq!(new.len(), (part * n as f64).round() as usize);
        prop_assert!(new.iter().all(|id| pool.contains(id)));
    }

    #[test]
    fn crops_keep_one_stretch(n in 0usize..300, part in 0.0f64..=1.0, text: u32) {
        let ids: Vec<u32> = (0..n as u32).collect();
        let kept = Attack::Crop.apply(&ids, share(part), seed(text));
        prop_assert_eq!(kept.len(), n - (part * n as f64).round() as usize);
        prop_assert!(kept.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    }
}

#[test]
fn every_place_is_as_likely_as_any_other() {
    let ids: Vec<u32> = (0..20).collect();
    let trials = 20_000;
    let (mut deleted, mut substituted, mut started) = ([0; 20], [0; 20], [0; 11]);
    for text in 0..trials {
        let left = Attack::Deletion.apply(&ids, share(0.3), seed(text));
        let changed = Attack::Substitution { pool: &[99] }.apply(&ids, share(0.3), seed(text));
        for place in 0..20 {
            deleted[place] += u32::from(!left.contains(&(place as u32)));
            substituted[place] += u32::from(changed[place] == 99);
        }
        started[Attack::Crop.apply(&ids, share(0.5), seed(text))[0] as usize] += 1;
    }
    all_alike(&deleted, trials, 0.3);
    all_alike(&substituted, trials, 0.3);
    all_alike(&started, trials, 1.0 / 11.0);
}

#[test]
fn replacements_come_as_often_as_they_stand_in_the_pool() {
    let pool = [5, 6, 6, 6, 7, 7, 7, 7, 7, 7];
    let attack = Attack::Substitution { pool: &pool };
    // Not 5, so the others have 3 and 6 of 9.
    let changed = attack.apply(&vec![5; 30_000], share(1.0), seed(0));
    let count = |id| changed.iter().filter(|&&found| found == id).count() as u32;
    assert_eq!(count(5), 0);
    all_alike(&[count(6)], 30_000, 1.0 / 3.0);
    assert_eq!(count(6) + count(7), 30_000);
}

#[test]
fn seeds_decide_and_nothing_else() {
    let ids: Vec<u32> = (0..100).collect();
    let of = |seed| Attack::Deletion.apply(&ids, share(0.5), seed);
    let first = AttackSeed { seed: 1, text: 2, attack: 3 };
    assert_eq!(of(first), of(first));
    for other in [
        AttackSeed { seed: 2, ..first },
        AttackSeed { text: 3, ..first },
        AttackSeed { attack: 4, ..first },
    ] {
        assert_ne!(of(first), of(other), "{other:?}");
    }
}

#[test]
fn nothing_to_draw_from_changes_nothing() {
    for pool in [&[][..], &[4, 4]] {
        let attack = Attack::Substitution { pool };
        assert_eq!(attack.apply(&[4, 4, 4], share(1.0), seed(0)), [4, 4, 4]);
    }
    for wrong in [-0.1, 1.1, f64::NAN] {
        assert!(Share::new(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn distinct_ngrams_by_hand() {
    // 1 2, 2 1, 1 2, 2 3: three of four.
    assert_eq!(distinct_ngrams(&[1, 2, 1, 2, 3], 2), Some(0.75));
    assert_eq!(distinct_ngrams(&[7; 200], 4), Some(1.0 / 197.0));
    assert_eq!(distinct_ngrams(&[1, 2, 3], 3), Some(1.0));
    assert_eq!(distinct_ngrams(&[1, 2], 3), None);
    assert_eq!(distinct_ngrams(&[1, 2], 0), None);
}
