//! Marked text of the default model.

use std::sync::Arc;

use greenmark::engine::{Finish, Observe, Request, Session};
use greenmark::error::Error;
use greenmark::prf::Key;
use greenmark::profile::{ContextWidth, SchemeParameters};
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::scheme::{Gumbel, Marker, Scheme};
use greenmark::text::Tokenizer;
use greenmark::token::TokenSet;

use crate::real_model::MODEL;
use crate::support::default_model;

#[test]
fn w19_a_keyed_draw_runs_to_the_limit_no_more_often_than_an_unmarked_one() {
    let tokenizer = Tokenizer::open(default_model()).unwrap();
    let prompts = include_str!("../../data/prompts/raw.txt");
    let end_ids = vec![0, 2];
    let never_marked = TokenSet::from_ids(49_152, tokenizer.control_ids()).unwrap();
    let chain = Arc::new(
        Chain::new(SamplingOptions::default(), 49_152, &end_ids, Arc::new(never_marked)).unwrap(),
    );
    let rule = SchemeParameters::Gumbel {}.default_context();
    let scheme: Arc<dyn Scheme> =
        Arc::new(Gumbel::new(&Key::from_bytes([19; 32]), ContextWidth::new(4).unwrap()));
    let at_limit = |marked: bool| {
        let requests = prompts
            .lines()
            .zip(0..)
            .map(|(prompt, sample)| Request {
                prompt: tokenizer.prompt_ids(prompt).unwrap(),
                chain: Arc::clone(&chain),
                marker: marked.then(|| Marker::new(Arc::clone(&scheme), rule)),
                seed: 19,
                sample,
                max_tokens: 256,
                stop: Vec::new(),
                end_ids: end_ids.clone(),
                observe: Observe::default(),
            })
            .collect();
        let texts =
            Session::new(&MODEL, &tokenizer).run(requests, |_, _| Ok::<(), Error>(())).unwrap();
        assert_eq!(texts.len(), 20);
        texts.iter().filter(|text| text.finish == Finish::Length).count()
    };
    let (plain, marked) = (at_limit(false), at_limit(true));
    println!("at the limit of 256 tokens: {plain} of 20 unmarked, {marked} of 20 marked");
    // Five points are one text of twenty.
    assert!(marked <= plain + 1, "{plain} unmarked, {marked} marked");
}
