//! A detection request, checked: which profiles, which options, what kind of reply.

use std::num::NonZeroU64;

use super::capped::Capped;
use super::input::{Input, RawInput};
use super::request::{DetectRequest, Names, RawDetail, RawForm};
use crate::detect::{Alpha, DetectOptions, Sentences, TokenDetails, WindowSearch};
use crate::document::Detector;
use crate::server::access::{Caller, Role};
use crate::server::error::ApiError;
use crate::server::profiles::{Profiles, Served};
use crate::server::state::State;
use crate::text::Normalizer;

/// Longest heading of a page, in characters.
const LONGEST_NAME: usize = 200;

/// Where a request came in; some fields have no meaning everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Entrance {
    /// `POST /v1/detect`.
    Single,
    /// A line of `POST /v1/detect/batch`.
    Batch,
    /// The options of `POST /v1/detect/file`, whose files are the inputs.
    File,
}

/// How much of a report a reply holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Detail {
    /// The verdict alone.
    Verdict,
    /// The report, with what the options ask for.
    Report,
}

/// The form of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum Form {
    /// JSON.
    Json,
    /// A page with this heading.
    Html(String),
}

/// What a request holds to judge.
#[derive(Debug)]
pub(in crate::server) enum Inputs {
    /// `text` or `tokens`.
    One(Input),
    /// `inputs`; one that is wrong is its own error.
    Several(Vec<Result<Input, ApiError>>),
    /// Nothing: they come as files.
    None,
}

/// A profile to hold texts against, under the options of the request.
#[derive(Clone, Debug)]
pub(in crate::server) struct Chosen {
    pub(in crate::server) name: String,
    pub(in crate::server) detector: Detector,
}

/// What to do with every input of a request.
#[derive(Clone, Debug)]
pub(in crate::server) struct Plan {
    pub(super) state: State,
    /// Never empty.
    pub(super) profiles: Vec<Chosen>,
    /// Whether the reply speaks of several profiles, also if it is a list of one.
    pub(super) joins: bool,
    pub(super) detail: Detail,
    pub(in crate::server) form: Form,
    pub(super) normalizers: Vec<Normalizer>,
    pub(super) sentences: bool,
    /// Whether the model reads the text for the tests that weigh tokens.
    pub(super) entropy: bool,
    pub(super) prompt: Option<String>,
}

impl Plan {
    /// Checks a request.
    ///
    /// # Errors
    /// 403 for a field that the caller's role does not open, 4xx naming the field at fault
    /// otherwise, 503 while the service starts.
    pub(in crate::server) fn resolve(
        state: &State,
        caller: &Caller,
        entrance: Entrance,
        mut request: DetectRequest,
    ) -> Result<(Self, Inputs), ApiError> {
        request.admit(caller)?;
        let inputs = inputs(&mut request, entrance, state.limits().inputs)?;
        let entropy = request.entropy == Some(true);
        if entropy && state.ready()?.generator.is_none() {
            return Err(engine_absent());
        }
        if entropy && (entrance == Entrance::Batch || matches!(inputs, Inputs::Several(_))) {
            let message = "the model reads one text a request; send it alone";
            return Err(ApiError::invalid("entropy", message));
        }
        let form = form(&request, entrance, &inputs)?;
        let served = profiles(&state.ready()?.profiles, &request)?;
        // A public key always pays for every profile: were the price of its choice, the choice
        // would move the threshold and so tell a score.
        let paid = match caller.role {
            Role::Public => state.ready()?.profiles.all().len(),
            Role::Reviewer | Role::Operator => served.len(),
        };
        let count = NonZeroU64::new(paid as u64).unwrap_or(NonZeroU64::MIN);
        let profiles = served
            .into_iter()
            .map(|served| {
                let options = options(&request, &form, *served.detector.options(), count)?;
                let detector = served.detector.with_options(options);
                Ok(Chosen { name: served.name.clone(), detector })
            })
            .collect::<Result<_, ApiError>>()?;
        let normalizers = normalizers(&request)?;
        let plan = Self {
            state: state.clone(),
            profiles,
            joins: request.profiles.is_some(),
            detail: match request.detail {
                _ if caller.role == Role::Public => Detail::Verdict,
                Some(RawDetail::Verdict) => Detail::Verdict,
                Some(RawDetail::Report | RawDetail::Tokens) | None => Detail::Report,
            },
            form,
            normalizers,
            sentences: request.sentences == Some(true),
            entropy,
            prompt: request.prompt,
        };
        Ok((plan, inputs))
    }

    /// Whether the model reads the text, which takes seconds.
    pub(in crate::server) fn reads_with_the_model(&self) -> bool {
        self.entropy
    }

    /// The names of the profiles, in the order of the reply.
    pub(in crate::server) fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|chosen| chosen.name.as_str())
    }
}

/// Takes what is to be judged out of a request.
fn inputs(
    request: &mut DetectRequest,
    entrance: Entrance,
    most: usize,
) -> Result<Inputs, ApiError> {
    let (text, tokens) = (request.text.take(), request.tokens.take());
    let list = request.inputs.take().map(|Capped(list)| list);
    let refuse = |field: &'static str, message: &str| Err(ApiError::invalid(field, message));
    if entrance != Entrance::Batch && request.id.is_some() {
        return refuse("id", "`id` belongs to the lines of /v1/detect/batch");
    }
    if entrance == Entrance::Batch && list.is_some() {
        return refuse("inputs", "a line of a batch is one text; put each on a line of its own");
    }
    if entrance == Entrance::File {
        return match (text, tokens, list) {
            (None, None, None) => Ok(Inputs::None),
            (Some(_), ..) => refuse("text", "the files are what is judged; leave out `text`"),
            (_, Some(_), _) => refuse("tokens", "the files are what is judged; leave out `tokens`"),
            _ => refuse("inputs", "the files are what is judged; leave out `inputs`"),
        };
    }
    match (list, text.is_some() || tokens.is_some()) {
        (Some(_), true) => refuse("inputs", "give `text`, `tokens` or `inputs`, one of them"),
        (Some(list), false) if list.is_empty() => refuse("inputs", "the list of texts is empty"),
        (Some(list), false) if list.len() > most => {
            let found = list.len();
            let message = format!(
                "{found} inputs are more than the {most} of one request; send them as lines of \
                 /v1/detect/batch"
            );
            refuse("inputs", &message)
        }
        (Some(list), false) => {
            Ok(Inputs::Several(list.into_iter().map(RawInput::resolve).collect()))
        }
        (None, _) => RawInput::new(text, tokens).resolve().map(Inputs::One),
    }
}

fn form(request: &DetectRequest, entrance: Entrance, inputs: &Inputs) -> Result<Form, ApiError> {
    let refuse = |field: &'static str, message: &str| Err(ApiError::invalid(field, message));
    if request.format.is_some() && entrance != Entrance::Single {
        return refuse("format", "pages are made by /v1/detect only, one text at a time");
    }
    if request.format != Some(RawForm::Html) {
        return match request.name {
            Some(_) => refuse("name", "`name` is the heading of a page: give `format` as `html`"),
            None => Ok(Form::Json),
        };
    }
    if !matches!(inputs, Inputs::One(_)) {
        return refuse("format", "a page shows one text; send each of `inputs` by itself");
    }
    if request.detail == Some(RawDetail::Verdict) {
        return refuse("detail", "a page shows the whole report; leave out `detail`");
    }
    let name = request.name.as_deref().unwrap_or("text");
    if name.chars().count() > LONGEST_NAME {
        return refuse("name", &format!("a heading has at most {LONGEST_NAME} characters"));
    }
    Ok(Form::Html(name.to_owned()))
}

/// Each change once: a list of a million names would be a name of many megabytes in the report.
fn normalizers(request: &DetectRequest) -> Result<Vec<Normalizer>, ApiError> {
    let mut found = Vec::new();
    for name in request.normalize.iter().flat_map(|Capped(names)| names) {
        let next = Normalizer::parse(name)?;
        if found.contains(&next) {
            let message = format!("{} stands twice; give each change once", next.name());
            return Err(ApiError::invalid("normalize", message));
        }
        found.push(next);
    }
    Ok(found)
}

fn profiles<'a>(
    served: &'a Profiles,
    request: &DetectRequest,
) -> Result<Vec<&'a Served>, ApiError> {
    let unknown = |field: String, name: &str| {
        let known: Vec<&str> = served.all().iter().map(|served| served.name.as_str()).collect();
        let name: String = name.chars().take(64).collect();
        let message = format!("there is no profile {name:?}; there are: {}", known.join(", "));
        ApiError::bad_request("unknown_profile", message).param(field)
    };
    match (&request.profile, &request.profiles) {
        (Some(_), Some(_)) => {
            Err(ApiError::invalid("profiles", "give `profile` or `profiles`, not both"))
        }
        (None, None) => Ok(vec![served.first()]),
        (Some(name), None) => match served.get(name) {
            Some(found) => Ok(vec![found]),
            None => Err(unknown("profile".to_owned(), name)),
        },
        (None, Some(Names::All)) => Ok(served.all().iter().collect()),
        (None, Some(Names::These(names))) => {
            if names.is_empty() {
                return Err(ApiError::invalid("profiles", "the list of profiles is empty"));
            }
            let mut found: Vec<&Served> = Vec::new();
            for (index, name) in names.iter().enumerate() {
                let field = format!("profiles[{index}]");
                let next = served.get(name).ok_or_else(|| unknown(field.clone(), name))?;
                if found.iter().any(|known| known.name == next.name) {
                    let message = format!("{name} stands twice; each profile is paid for once");
                    return Err(ApiError::invalid(field, message));
                }
                found.push(next);
            }
            Ok(found)
        }
    }
}

fn options(
    request: &DetectRequest,
    form: &Form,
    base: DetectOptions,
    profiles: NonZeroU64,
) -> Result<DetectOptions, ApiError> {
    let is_page = matches!(form, Form::Html(_));
    Ok(DetectOptions {
        alpha: match (request.alpha, request.z_threshold) {
            (Some(_), Some(_)) => {
                let message = "give `alpha` or `z_threshold`, not both";
                return Err(ApiError::invalid("z_threshold", message));
            }
            (Some(alpha), None) => Alpha::new(alpha)?,
            (None, Some(z)) => Alpha::from_z(z)?,
            (None, None) => base.alpha,
        },
        min_scored: request.min_scored.unwrap_or(base.min_scored),
        windows: if request.windows == Some(true) { WindowSearch::On } else { base.windows },
        details: if is_page || request.detail == Some(RawDetail::Tokens) {
            TokenDetails::Include
        } else {
            TokenDetails::Omit
        },
        sentences: if is_page || request.sentences == Some(true) {
            Sentences::Include
        } else {
            Sentences::Omit
        },
        profiles,
    })
}

/// Entropies need the model, which this service does not run.
fn engine_absent() -> ApiError {
    let message = "this service runs no model, and `entropy` needs one; leave it out";
    ApiError::bad_request("engine_absent", message).param("entropy")
}
