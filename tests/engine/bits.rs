//! Logits whose bits depend on nothing but the row: batch, threads, prompt cuts, instruction
//! level. Cases S32 and S33.

use greenmark::engine::linear::Isa;
use greenmark::engine::{KvCache, Logits, LogitsAt, Model, Sequence};
use proptest::prelude::*;

use crate::fixtures::{CHECKPOINTS, Noise, argmax, bits, checkpoint, every, greedy, load, step};

fn prompts(lengths: &[usize]) -> Vec<Vec<u32>> {
    let mut noise = Noise(20);
    lengths.iter().map(|&length| noise.ids(length, 300)).collect()
}

/// Logits at every position of every prompt, all in one batch.
fn together(model: &Model, prompts: &[Vec<u32>]) -> Vec<Vec<Vec<u32>>> {
    let mut caches: Vec<_> = prompts.iter().map(|_| model.new_cache(256).unwrap()).collect();
    let mut batch: Vec<Sequence<'_>> = prompts
        .iter()
        .zip(&mut caches)
        .map(|(ids, cache)| Sequence { ids, cache, logits: LogitsAt::Every })
        .collect();
    let logits = model.forward(&mut batch).unwrap();
    logits
        .iter()
        .map(|l| bits(&(0..l.rows()).map(|i| l.row(i).unwrap().to_vec()).collect::<Vec<_>>()))
        .collect()
}

#[test]
fn batches_of_1_2_and_8_give_the_same_bits() {
    for name in CHECKPOINTS {
        let model = load(checkpoint(name));
        let prompts = prompts(&[3, 17, 60, 1, 40, 2, 33, 100]);
        let alone: Vec<_> = prompts.iter().map(|ids| bits(&every(&model, ids))).collect();
        assert_eq!(together(&model, &prompts[..2]), alone[..2], "{name}");
        assert_eq!(together(&model, &prompts), alone, "{name}");
    }
}

#[test]
fn threads_change_no_bit() {
    for name in CHECKPOINTS {
        let model = load(checkpoint(name));
        let prompts = prompts(&[3, 90, 40]);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| together(&model, &prompts))
        };
        let one = on(1);
        assert_eq!(on(2), one, "{name}");
        assert_eq!(on(5), one, "{name}");
    }
}

#[test]
fn instruction_levels_change_no_bit() {
    for name in CHECKPOINTS {
        let ids = Noise(21).ids(50, 300);
        let levels: Vec<_> = Isa::available()
            .into_iter()
            .map(|isa| bits(&every(&Model::load_on_cpu(checkpoint(name), isa).unwrap(), &ids)))
            .collect();
        for level in &levels[1..] {
            assert_eq!(level, &levels[0], "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_cut_of_a_prompt_gives_the_same_bits(
        cuts in prop::collection::vec(1usize..30, 1..12),
        mixed in any::<bool>(),
    ) {
        let model = load(checkpoint("qwen3"));
        let ids = Noise(22).ids(cuts.iter().sum(), 300);
        let whole = bits(&every(&model, &ids));
        let mut cache = model.new_cache(ids.len()).unwrap();
        let mut other = model.new_cache(256).unwrap();
        let mut rows = Vec::new();
        let mut rest = ids.as_slice();
        for &cut in &cuts {
            let (piece, tail) = rest.split_at(cut);
            rest = tail;
            if mixed && other.len() < 250 {
                // Another sequence decodes beside the pieces.
                let mut batch = [
                    Sequence { ids: &[5], cache: &mut other, logits: LogitsAt::Last },
                    Sequence { ids: piece, cache: &mut cache, logits: LogitsAt::Every },
                ];
                let logits = model.forward(&mut batch).unwrap();
                rows.extend((0..cut).map(|i| logits[1].row(i).unwrap().to_vec()));
            } else {
                rows.extend(step(&model, &mut cache, piece, LogitsAt::Every));
            }
        }
        prop_assert_eq!(bits(&rows), whole);
        prop_assert_eq!(cache.len(), ids.len());
    }
}

#[test]
fn logits_come_where_they_are_asked_for() {
    let model = load(checkpoint("llama"));
    let ids = Noise(23).ids(20, 300);
    let all = every(&model, &ids);
    let mut caches: Vec<_> = (0..4).map(|_| model.new_cache(20).unwrap()).collect();
    let wanted = [LogitsAt::None, LogitsAt::Last, LogitsAt::Every, LogitsAt::Last];
    let pieces = [&ids[..], &ids[..], &ids[..], &[]];
    let mut batch: Vec<Sequence<'_>> = caches
        .iter_mut()
        .zip(wanted)
        .zip(pieces)
        .map(|((cache, logits), ids)| Sequence { ids, cache, logits })
        .collect();
    let logits = model.forward(&mut batch).unwrap();
    assert_eq!(logits.iter().map(Logits::rows).collect::<Vec<_>>(), [0, 1, 20, 0]);
    assert_eq!(logits[1].last(), Some(&*all[19]));
    assert_eq!(logits[2].last(), Some(&*all[19]));
    assert_eq!((logits[0].last(), logits[0].row(0)), (None, None));
    assert_eq!(caches.iter().map(KvCache::len).collect::<Vec<_>>(), [20, 20, 20, 0]);
}

#[test]
fn long_batches_are_cut_without_a_trace() {
    // More rows than one pass takes.
    let model = load(checkpoint("llama"));
    let prompts = prompts(&[250, 200, 256, 30]);
    let alone: Vec<_> = prompts.iter().map(|ids| bits(&every(&model, ids))).collect();
    assert_eq!(together(&model, &prompts), alone);
}

#[test]
fn s32_prompts_of_3_17_and_60_continue_alone_as_in_one_batch() {
    for name in CHECKPOINTS {
        let model = load(checkpoint(name));
        let prompts = prompts(&[3, 17, 60]);
        let alone: Vec<_> = prompts.iter().map(|ids| greedy(&model, ids, 30)).collect();
        let mut caches: Vec<_> = prompts.iter().map(|_| model.new_cache(100).unwrap()).collect();
        let mut next = prompts.clone();
        let mut texts = vec![Vec::new(); 3];
        for _ in 0..30 {
            let mut batch: Vec<Sequence<'_>> = next
                .iter()
                .zip(&mut caches)
                .map(|(ids, cache)| Sequence { ids, cache, logits: LogitsAt::Last })
                .collect();
            let logits = model.forward(&mut batch).unwrap();
            next = logits.iter().map(|l| vec![argmax(l.last().unwrap())]).collect();
            for (text, id) in texts.iter_mut().zip(&next) {
                text.push(id[0]);
            }
        }
        assert_eq!(texts, alone, "{name}");
    }
}

#[test]
fn s33_requests_leave_nothing_behind() {
    let fresh = |ids: &[u32]| greedy(&load(checkpoint("qwen2")), ids, 20);
    let prompts = prompts(&[12, 30]);
    let (a, b) = (fresh(&prompts[0]), fresh(&prompts[1]));
    let model = load(checkpoint("qwen2"));
    assert_eq!(greedy(&model, &prompts[0], 20), a);
    assert_eq!(greedy(&model, &prompts[1], 20), b);
    assert_eq!(greedy(&model, &prompts[0], 20), a);
    // Two at once.
    let (left, right) = std::thread::scope(|scope| {
        let left = scope.spawn(|| greedy(&model, &prompts[0], 20));
        let right = scope.spawn(|| greedy(&model, &prompts[1], 20));
        (left.join().unwrap(), right.join().unwrap())
    });
    assert_eq!((left, right), (a.clone(), b));
    // A cache that was abandoned midway and cut back is as good as new.
    let mut cache = model.new_cache(80).unwrap();
    step(&model, &mut cache, &prompts[1], LogitsAt::Last);
    cache.truncate(7);
    assert_eq!(cache.len(), 7);
    cache.clear();
    assert!(cache.is_empty());
    let row = step(&model, &mut cache, &prompts[0], LogitsAt::Last).pop().unwrap();
    assert_eq!(argmax(&row), a[0]);
    // Cutting back to a prefix goes on as if the rest had never been.
    cache.truncate(5);
    let rows = step(&model, &mut cache, &prompts[0][5..], LogitsAt::Every);
    assert_eq!(bits(&rows), bits(&every(&model, &prompts[0])[5..]));
}
