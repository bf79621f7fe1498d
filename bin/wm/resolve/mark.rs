//! The profile that a command line makes: a file's, or the defaults with the flags laid over.

use greenmark::profile::{
    Context, ContextWidth, Delta, Gamma, KeyIdentity, Profile, PromptContext, Repeats,
    SchemeParameters, TokenizerIdentity,
};
use greenmark::{Error, Result};

use super::NamedKey;
use crate::args::{MarkArgs, PromptContextName, RepeatsName, SchemeName};

/// What to do about a flag that disagrees with a profile.
const FOLLOW: &str = "leave the flag out to follow it";

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

    /// The profile for a tokenizer where the key does not matter: the base's, else `stand_in`.
    pub(crate) fn profile_of_any_key(
        self,
        tokenizer: TokenizerIdentity,
        stand_in: KeyIdentity,
    ) -> Result<Profile> {
        let Some((name, base)) = self.base else {
            return Profile::new(self.scheme, self.context, tokenizer, stand_in);
        };
        base.require_tokenizer(&name, &tokenizer)?;
        let effective = Profile::new(self.scheme, self.context, tokenizer, base.key().clone())?;
        effective.agree_fully("the command line", &base, &name, FOLLOW)?;
        Ok(effective)
    }

    /// The profile for a tokenizer and a key, which must be the ones that the base names. The
    /// key's name is the flag's, else the base's, else the file's.
    pub(crate) fn profile(self, tokenizer: TokenizerIdentity, key: &NamedKey) -> Result<Profile> {
        let Some((name, base)) = self.base else {
            return Profile::new(self.scheme, self.context, tokenizer, key.identity(None));
        };
        base.require(&name, &tokenizer, key.key.fingerprint())?;
        let identity = key.identity(Some(&base.key().id));
        let effective = Profile::new(self.scheme, self.context, tokenizer, identity)?;
        effective.agree_fully("the command line", &base, &name, FOLLOW)?;
        Ok(effective)
    }
}

/// The whole way in one call.
pub(crate) fn resolve_profile(
    args: &MarkArgs,
    tokenizer: TokenizerIdentity,
    key: &NamedKey,
) -> Result<Profile> {
    ExplicitMark::resolve(args)?.profile(tokenizer, key)
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
