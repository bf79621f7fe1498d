//! What a reply says of a judged input.

use std::convert::Infallible;
use std::future::ready;
use std::time::SystemTime;

use axum::body::Body;
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use serde_json::Value;

use super::plan::{Detail, Plan};
use super::work::Judged;
use crate::detect::{Report, Verdict};
use crate::error::Error;
use crate::server::error::ApiError;
use crate::signature::sign;

/// Parts of a reply that are sent in one piece when they are ready together.
const TOGETHER: usize = 64;

/// The version of the form of a verdict without figures.
const VERDICT_SCHEMA: &str = "greenmark/verdict/1";

/// A report as far as the caller may see it. The only place where the service writes one.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in crate::server) enum Shown<'a> {
    /// The verdict alone.
    Verdict {
        /// [`VERDICT_SCHEMA`].
        schema: &'static str,
        /// The conclusion.
        verdict: Verdict,
    },
    /// The library's report.
    Report(&'a Report),
    /// The same with a signature.
    Signed(Value),
}

/// What became of one input: the field of its name in an item of a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::server) enum Outcome<'a> {
    /// Judged under one profile.
    Report(Shown<'a>),
    /// Judged under several.
    Result(Several<'a>),
    /// Not judged: the value of `error` of an error reply.
    Error(Value),
}

/// The reports of several profiles and what they conclude together.
#[derive(Debug, Serialize)]
pub(in crate::server) struct Several<'a> {
    object: &'static str,
    verdict: Verdict,
    /// The name of the profile whose report decides. Beside a bare verdict it is told of a mark
    /// only: which of several misses comes closest is a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a str>,
    #[serde(flatten)]
    figures: Option<Figures>,
    results: Vec<Named<'a>>,
}

/// The figures of the deciding report.
#[derive(Debug, Serialize)]
struct Figures {
    corrected_log10_p: f64,
    hypotheses: u64,
    alpha: f64,
}

/// The report of one profile.
#[derive(Debug, Serialize)]
struct Named<'a> {
    profile: &'a str,
    report: Shown<'a>,
}

impl Outcome<'_> {
    /// What is said of an input that was not judged.
    pub(in crate::server) fn of(error: &ApiError) -> Self {
        let mut body = error.body();
        Self::Error(body.get_mut("error").map(Value::take).unwrap_or(body))
    }
}

impl Plan {
    /// What the caller may see of a judged input.
    ///
    /// # Errors
    /// Those of signing.
    pub(in crate::server) fn outcome<'a>(
        &'a self,
        judged: &'a Judged,
    ) -> Result<Outcome<'a>, Error> {
        let mut results = self.profiles.iter().zip(&judged.reports).map(|(chosen, report)| {
            Ok(Named { profile: &chosen.name, report: self.shown(report)? })
        });
        let joined = judged.joined;
        if !self.joins {
            // A plan has a profile, and a judged input a report for each.
            if let Some(only) = results.next() {
                return only.map(|only: Named<'_>| Outcome::Report(only.report));
            }
        }
        Ok(Outcome::Result(Several {
            object: "greenmark.profiles",
            verdict: joined.verdict,
            profile: self
                .profiles
                .get(joined.deciding)
                .filter(|_| self.detail == Detail::Report || joined.verdict == Verdict::Watermarked)
                .map(|chosen| chosen.name.as_str()),
            figures: (self.detail == Detail::Report).then_some(Figures {
                corrected_log10_p: joined.corrected_log10_p,
                hypotheses: joined.hypotheses,
                alpha: joined.alpha,
            }),
            results: results.collect::<Result<_, Error>>()?,
        }))
    }

    /// The whole reply for one input: the report as the command line prints it, or the object of
    /// several profiles.
    ///
    /// # Errors
    /// [`Error::Backend`], which no report is known to cause.
    pub(in crate::server) fn document(&self, judged: &Judged) -> Result<Vec<u8>, Error> {
        match self.outcome(judged)? {
            Outcome::Report(Shown::Report(report)) => report.document(),
            Outcome::Report(Shown::Signed(document)) => pretty(&document),
            Outcome::Report(shown) => Ok(json(&shown)),
            Outcome::Result(several) => Ok(json(&several)),
            Outcome::Error(error) => Ok(json(&error)),
        }
    }

    fn shown<'a>(&self, report: &'a Report) -> Result<Shown<'a>, Error> {
        Ok(match (self.detail, self.state.signer()) {
            (Detail::Verdict, _) => {
                Shown::Verdict { schema: VERDICT_SCHEMA, verdict: report.verdict }
            }
            (Detail::Report, None) => Shown::Report(report),
            (Detail::Report, Some(signer)) => {
                let document = serde_json::to_value(report)
                    .map_err(|source| Error::backend("writing a report", source))?;
                Shown::Signed(sign(signer, document, SystemTime::now())?)
            }
        })
    }
}

/// Writes a signed report as the command line writes one without a signature.
fn pretty(document: &Value) -> Result<Vec<u8>, Error> {
    let mut bytes = serde_json::to_vec_pretty(document)
        .map_err(|source| Error::backend("writing a report", source))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes a value on one line.
pub(in crate::server) fn json(value: &impl Serialize) -> Vec<u8> {
    // Texts, numbers and lists of them are always JSON; a reply stays well-formed all the same.
    serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec())
}

/// The body of a list, sent while its items are made: none of them waits for the last. `held` is
/// kept until the end.
pub(in crate::server) fn list<T: Send + 'static>(
    items: impl Stream<Item = Vec<u8>> + Send + 'static,
    held: T,
) -> Body {
    let items = items.enumerate().map(
        |(index, item)| {
            if index == 0 { item } else { [b",", &item[..]].concat() }
        },
    );
    let parts = stream::once(ready(br#"{"object":"list","data":["#.to_vec())).chain(items).chain(
        stream::once(async move {
            drop(held);
            b"]}".to_vec()
        }),
    );
    in_pieces(parts)
}

/// A body of parts that are sent as they come; those that are ready together go in one piece.
pub(in crate::server) fn in_pieces(parts: impl Stream<Item = Vec<u8>> + Send + 'static) -> Body {
    let pieces = parts.ready_chunks(TOGETHER).map(|parts| Ok::<_, Infallible>(parts.concat()));
    Body::from_stream(pieces)
}
