//! The profiles that a service holds texts against, by name.

use crate::document::Detector;
use crate::error::{Error, Result};

/// Whether new texts may still get the mark of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Generation may use it, detection knows it.
    #[default]
    Active,
    /// Detection knows it: texts of its time stay detectable after the key was changed.
    Retired,
}

/// One profile with its key, ready to judge.
#[derive(Clone, Debug)]
pub struct Served {
    /// The operator's name for it, which requests use.
    pub name: String,
    /// Whether new texts may get its mark.
    pub standing: Standing,
    /// Profile, key and tokenizer, under the default options.
    pub detector: Detector,
}

/// All of them, in the operator's order; never empty.
#[derive(Clone, Debug)]
pub struct Profiles(Vec<Served>);

impl Profiles {
    /// Checks the names.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no profile at all, a name that is not plain, or a name twice.
    pub fn new(served: Vec<Served>) -> Result<Self> {
        if served.is_empty() {
            return Err(Error::parameter("profiles", "none", "at least one profile"));
        }
        for (index, profile) in served.iter().enumerate() {
            check_name("profile name", &profile.name, "all")?;
            if served[..index].iter().any(|earlier| earlier.name == profile.name) {
                let value = format!("{} twice", profile.name);
                return Err(Error::parameter("profiles", value, "each name once"));
            }
        }
        Ok(Self(served))
    }

    /// The one that is used when a request names none: the first.
    #[must_use]
    pub fn first(&self) -> &Served {
        // `new` refuses an empty list.
        &self.0[0]
    }

    /// The one with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Served> {
        self.0.iter().find(|served| served.name == name)
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Served] {
        &self.0
    }
}

/// A name goes into addresses, headers and logs; `reserved` means something else there.
///
/// # Errors
/// [`Error::Parameter`].
pub(super) fn check_name(what: &'static str, name: &str, reserved: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(plain) && name != reserved {
        return Ok(());
    }
    let allowed = format!("1 to 64 letters, digits, `.`, `_` and `-`, other than `{reserved}`");
    Err(Error::parameter(what, name.escape_debug(), allowed))
}
