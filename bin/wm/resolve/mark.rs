//! The profile that a command line makes: a file's, or the defaults with the flags laid over.

use greenmark::profile::{
    Context, ContextWidth, Delta, Gamma, KeyIdentity, Profile, PromptContext, Repeats,
    SchemeParameters, TokenizerIdentity,
};
use greenmark::{Error, Result};

use crate::args::{MarkArgs, PromptContextName, RepeatsName, SchemeName};

/// The mark as the flags give it, before tokenizer and key are known.
pub(crate) struct ExplicitMark {
    scheme: SchemeParameters,
    context: Context,
    /// The profile that the flags were laid over, and its name.
    base: Option<(String, Profile)>,
}

impl ExplicitMark {
    /// Lays the flags over the profile file or the defaults. A flag that disagrees with the
    /// file is an error, never a silent override.
    pub(crate) fn resolve(args: &MarkArgs) -> Result<Self> {
        match &args.profile {
            Some(path) => Self::over(args, path.display().to_string(), Profile::read(path)?),
            None => Self::lay(args, None),
        }
    }

    /// Lays the flags over `profile`, which is called `name`.
    pub(crate) fn over(args: &MarkArgs, name: String, profile: Profile) -> Result<Self> {
        Self::lay(args, Some((name, profile)))
    }

    fn lay(args: &MarkArgs, base: Option<(String, Profile)>) -> Result<Self> {
        let scheme = scheme(args, base.as_ref().map(|(_, profile)| profile.scheme()))?;
        let rule = match &base {
            Some((_, profile)) => *profile.context(),
            None => scheme.default_context(),
        };
        let context = Context {
            width: args.context_width.map_or(Ok(rule.width), ContextWidth::new)?,
            prompt: match args.context_prompt {
                None => rule.prompt,
                Some(PromptContextName::Tail) => PromptContext::Tail,
                Some(PromptContextName::None) => PromptContext::None,
            },
            repeats: match args.repeats {
                None => rule.repeats,
                Some(RepeatsName::Mark) => Repeats::Mark,
                Some(RepeatsName::Skip) => Repeats::Skip,
            },
        };
        Ok(Self { scheme, context, base })
    }

    /// The profile for a tokenizer and a key, which must be the ones a profile file names.
    pub(crate) fn profile(self, tokenizer: TokenizerIdentity, key: KeyIdentity) -> Result<Profile> {
        let effective = Profile::new(self.scheme, self.context, tokenizer, key)?;
        let Some((name, base)) = self.base else { return Ok(effective) };
        let remedy = "leave the flag out to follow the profile, or use another profile";
        effective.agree("the command line", &base, &name, remedy)?;
        require("delta", &delta_text(&effective), &name, &delta_text(&base), remedy)?;
        let repeats = |profile: &Profile| format!("{:?}", profile.context().repeats).to_lowercase();
        require("context repeats", &repeats(&effective), &name, &repeats(&base), remedy)?;
        let prompt = |profile: &Profile| format!("{:?}", profile.context().prompt).to_lowercase();
        require("context prompt", &prompt(&effective), &name, &prompt(&base), remedy)?;
        Ok(effective)
    }
}

/// The whole way in one call.
pub(crate) fn resolve_profile(
    args: &MarkArgs,
    tokenizer: TokenizerIdentity,
    key: KeyIdentity,
) -> Result<Profile> {
    ExplicitMark::resolve(args)?.profile(tokenizer, key)
}

fn require(field: &'static str, ours: &str, name: &str, theirs: &str, remedy: &str) -> Result<()> {
    if ours == theirs {
        return Ok(());
    }
    Err(Error::Mismatch {
        field,
        left_name: "the command line".to_owned(),
        left: ours.to_owned(),
        right_name: name.to_owned(),
        right: theirs.to_owned(),
        remedy: remedy.to_owned(),
    })
}

fn delta_text(profile: &Profile) -> String {
    match profile.scheme() {
        SchemeParameters::GreenList { delta, .. } => delta.to_string(),
        SchemeParameters::Gumbel {} => "none".to_owned(),
    }
}

fn scheme(args: &MarkArgs, base: Option<&SchemeParameters>) -> Result<SchemeParameters> {
    let base = base.copied();
    let name = args.scheme.unwrap_or(match base {
        Some(SchemeParameters::Gumbel {}) => SchemeName::Gumbel,
        Some(SchemeParameters::GreenList { .. }) | None => SchemeName::GreenList,
    });
    match name {
        SchemeName::GreenList => {
            let (gamma, delta) = match base {
                Some(SchemeParameters::GreenList { gamma, delta }) => (gamma, delta),
                _ => (Gamma::DEFAULT, Delta::DEFAULT),
            };
            Ok(SchemeParameters::GreenList {
                gamma: args.gamma.map_or(Ok(gamma), Gamma::new)?,
                delta: args.delta.map_or(Ok(delta), Delta::new)?,
            })
        }
        SchemeName::Gumbel => {
            for (name, value) in [("gamma", args.gamma), ("delta", args.delta)] {
                if let Some(value) = value {
                    return Err(Error::parameter(
                        name,
                        value,
                        "nothing: the scheme gumbel has no such parameter; leave the flag out",
                    ));
                }
            }
            Ok(SchemeParameters::Gumbel {})
        }
    }
}
