//! `wm inspect tokens`: how a text is cut, and what each token would hold as evidence.

use anyhow::Result;
use greenmark::detect::{DetectOptions, TokenDetail, TokenDetails};
use greenmark::document::{Circumstances, Detector, identify};
use serde::Serialize;

use crate::args::TokensArgs;
use crate::exit::Exit;
use crate::output;
use crate::resolve::{KeySource, read_input, resolve_key, resolve_profile, resolve_tokenizer};

#[derive(Serialize)]
struct TokenRow {
    #[serde(flatten)]
    detail: TokenDetail,
    /// The vocabulary's own spelling.
    piece: String,
    /// The part of the text, where its bytes are whole characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub(crate) fn run(args: &TokensArgs) -> Result<Exit> {
    let bytes = read_input(&args.file)?;
    let key = resolve_key(&args.key, KeySource::Existing)?;
    let tokenizer = resolve_tokenizer(&args.tokenizer)?;
    let profile = resolve_profile(&args.mark, identify(&tokenizer), &key)?;
    let options = DetectOptions { details: TokenDetails::Include, ..DetectOptions::default() };
    let detector = Detector::new(tokenizer, profile, &key.key, options)?;
    let report = detector.bytes(&args.file, &bytes, &Circumstances::default())?;
    let rows: Vec<TokenRow> = report
        .token_details
        .unwrap_or_default()
        .into_iter()
        .map(|detail| TokenRow {
            piece: detector.tokenizer().piece_text(detail.id).unwrap_or_default().to_owned(),
            text: detail
                .bytes
                .and_then(|[start, end]| bytes.get(start..end))
                .and_then(|part| std::str::from_utf8(part).ok())
                .map(str::to_owned),
            detail,
        })
        .collect();
    if args.json {
        output::json(&rows)?;
        return Ok(Exit::Success);
    }
    output::line("index       id  bytes          chars          colour   piece")?;
    for row in rows {
        let range = |range: Option<[usize; 2]>| {
            range.map_or_else(String::new, |[start, end]| format!("{start}..{end}"))
        };
        output::line(&format!(
            "{:<6} {:>7}  {:<13}  {:<13}  {:<7}  {}",
            row.detail.index,
            row.detail.id,
            range(row.detail.bytes),
            range(row.detail.chars),
            row.detail.colour,
            row.piece,
        ))?;
    }
    Ok(Exit::Success)
}
