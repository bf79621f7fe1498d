//! Streaming decode and stop strings.

use greenmark::text::{StopMatcher, StopOutput, StreamDecoder, Utf8Stream};
use proptest::prelude::*;

use crate::fixtures::smollm2;

#[test]
fn s25_characters_come_out_as_soon_as_they_are_complete() {
    let tokenizer = smollm2();
    for text in ["!!!\n\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "end.\n"] {
        let mut decoder = StreamDecoder::new(tokenizer);
        for id in tokenizer.encode_ids(text).unwrap() {
            // ASCII tokens are whole, so each comes out at once.
            let bytes = tokenizer.token_bytes(id).unwrap();
            assert_eq!(decoder.push(id).as_bytes(), bytes);
        }
        assert_eq!(decoder.finish(), "");
    }
    // An emoji of several tokens comes out with its last token, before the next begins.
    let emoji = "👩🎉🚀🌍🐢🦀🎲🧪📚🔑🌱🏔🎧🧩🛰🧭🪁🫖🦉🐙";
    let mut decoder = StreamDecoder::new(tokenizer);
    let mut text = String::new();
    let mut parts = Vec::new();
    for id in tokenizer.encode_ids(emoji).unwrap() {
        let part = decoder.push(id);
        assert!(!part.contains('\u{fffd}'));
        text.push_str(&part);
        parts.push(part);
    }
    assert_eq!(text, emoji);
    assert!(parts[..5].concat().starts_with('👩'));
    assert_eq!(decoder.finish(), "");
}

#[test]
fn s25_an_unfinished_character_is_not_lost() {
    let mut decoder = StreamDecoder::new(smollm2());
    let ids = smollm2().encode_ids("a👩").unwrap();
    let cut = &ids[..ids.len() - 1];
    let text: String = cut.iter().map(|&id| decoder.push(id)).collect();
    assert_eq!(text, "a");
    assert_eq!(decoder.finish(), "\u{fffd}");
    // Afterwards the decoder is empty.
    assert_eq!(decoder.finish(), "");
}

#[test]
fn control_tokens_add_nothing_to_a_stream() {
    let mut decoder = StreamDecoder::new(smollm2());
    let parts: Vec<String> = [1, 28120, 2, 99_999].iter().map(|&id| decoder.push(id)).collect();
    assert_eq!(parts, ["", "hello", "", ""]);
}

proptest! {
    #[test]
    fn any_bytes_stream_as_they_decode(
        bytes in proptest::collection::vec(prop_oneof![
            any::<u8>(), Just(0xF0), Just(0x9F), Just(0x91), Just(0xA9), Just(0xED), Just(0xA0),
            Just(0xC3), Just(0xE2), Just(0x82), Just(b'a'),
        ], 0..60),
        cuts in proptest::collection::vec(0usize..60, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut stream = Utf8Stream::new();
        let mut text = String::new();
        for pair in cuts.windows(2) {
            text.push_str(&stream.push(&bytes[pair[0]..pair[1]]));
        }
        text.push_str(&stream.finish());
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_ids_stream_as_they_decode(ids in proptest::collection::vec(0u32..49_200, 0..40)) {
        let mut decoder = StreamDecoder::new(smollm2());
        let mut text: String = ids.iter().map(|&id| decoder.push(id)).collect();
        text.push_str(&decoder.finish());
        prop_assert_eq!(text, smollm2().decode_lossy(&ids));
    }
}

/// What a client gets of a text in parts, and which stop ended it.
fn run(stops: &[&str], parts: &[&str]) -> (String, Option<usize>) {
    let mut matcher = StopMatcher::new(stops.iter().copied()).unwrap();
    let mut text = String::new();
    for part in parts {
        let StopOutput { text: fresh, stop } = matcher.push(part);
        text.push_str(&fresh);
        if stop.is_some() {
            assert_eq!(matcher.finish(), "");
            return (text, stop);
        }
    }
    text.push_str(&matcher.finish());
    (text, None)
}

#[test]
fn s21_a_stop_string_across_parts_is_found_and_not_sent() {
    let parts = ["The", " quick", " brown", " fox"];
    assert_eq!(run(&["own fox"], &parts), ("The quick br".to_owned(), Some(0)));
    assert_eq!(run(&["own fox"], &[&parts.concat()]), ("The quick br".to_owned(), Some(0)));
    assert_eq!(run(&["\nUser:"], &["Hi\n", "User", ": x"]), ("Hi".to_owned(), Some(0)));
    // One stop begins with the other, in either order.
    assert_eq!(run(&["ab", "abc"], &["xa", "bc"]), ("x".to_owned(), Some(0)));
    assert_eq!(run(&["abc", "ab"], &["xabc"]), ("x".to_owned(), Some(1)));
    // Of several, the first that is complete.
    assert_eq!(run(&["fox", "quick"], &parts), ("The ".to_owned(), Some(1)));
    assert_eq!(run(&["é!"], &["caf", "é", "!"]), ("caf".to_owned(), Some(0)));
    assert_eq!(run(&[], &parts), ("The quick brown fox".to_owned(), None));

    let error = StopMatcher::new(["a", ""]).unwrap_err().to_string();
    assert!(error.contains("stop") && error.contains("at least one character"), "{error}");
}

#[test]
fn s21_only_what_may_become_a_stop_is_held_back() {
    let mut matcher = StopMatcher::new(["own fox"]).unwrap();
    assert_eq!(matcher.push("The").text, "The");
    assert_eq!(matcher.push(" quick").text, " quick");
    assert_eq!(matcher.push(" brown").text, " br");
    assert_eq!(matcher.push(" f").text, "");
    assert_eq!(matcher.push("ee").text, "own fee");
    assert_eq!(matcher.push("own fox and more").stop, Some(0));
    assert_eq!(matcher.push("swallowed"), StopOutput { text: String::new(), stop: Some(0) });
}

#[test]
fn s22_a_possible_stop_is_sent_when_the_text_ends() {
    assert_eq!(run(&["assistant"], &["ple", "as"]), ("pleas".to_owned(), None));
}

proptest! {
    #[test]
    fn stops_do_not_depend_on_the_parts(
        text in "[abc]{0,30}",
        stops in proptest::collection::vec("[abc]{1,4}", 0..4),
        cuts in proptest::collection::vec(0usize..30, 0..8),
    ) {
        let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= text.len()).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let parts: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        let found = run(&stops, &parts);
        // From the definition: the first end at which a stop is complete, its longest stop.
        let end = (0..=text.len())
            .find(|&end| stops.iter().any(|stop| text[..end].ends_with(stop)));
        let expected = match end {
            None => text.clone(),
            Some(end) => {
                let longest = stops.iter().filter(|stop| text[..end].ends_with(**stop));
                text[..end - longest.map(|stop| stop.len()).max().unwrap()].to_owned()
            }
        };
        prop_assert_eq!(&found.0, &expected);
        prop_assert_eq!(found.1.is_some(), end.is_some());
    }
}
