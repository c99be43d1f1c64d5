//! Settings of a program: layers ([`Sources`]), where each value came from ([`Setting`]), and the
//! rules that must hold ([`Rule`]). What the settings are, only the program knows.

mod error;
mod layers;
mod origins;
mod page;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::SettingsError;
pub use layers::{LayerArgs, Sources};
pub use origins::{Origin, Setting, variable};
pub use page::{Documented, documented, table};

/// All settings of a program, section by section.
pub trait ProgramSettings: Serialize + DeserializeOwned {
    /// Every key with its default and a comment above it, as TOML.
    const DEFAULTS: &'static str;

    /// Every rule, whether it holds or not.
    fn rules(&self) -> Vec<Rule>;

    /// The documented defaults.
    ///
    /// # Errors
    /// None outside of development: a test of each program loads them.
    fn defaults() -> Result<Self, SettingsError> {
        Sources::default().load()
    }

    /// Refuses what contradicts itself; the first broken rule is named with keys and values.
    ///
    /// # Errors
    /// That of the rule.
    fn validate(&self) -> Result<(), SettingsError> {
        Rule::hold(self.rules())
    }

    /// As TOML, with every key; secrets are `***`.
    fn to_toml(&self) -> String {
        let sections = serde_json::to_value(self).unwrap_or_default();
        let mut text = String::new();
        for (section, keys) in sections.as_object().into_iter().flatten() {
            text += &format!("[{section}]\n");
            // JSON's strings, numbers and booleans are TOML's as well.
            for (key, value) in keys.as_object().into_iter().flatten() {
                text += &format!("{key} = {value}\n");
            }
            text.push('\n');
        }
        text
    }
}

/// A rule, held against settings.
#[derive(Debug)]
pub struct Rule {
    /// It holds.
    pub holds: bool,
    /// The rule with keys and values, as an error says it.
    pub broken: SettingsError,
}

impl Rule {
    /// A rule about one key.
    pub fn one(holds: bool, key: impl Into<String>, value: impl ToString, rule: &'static str) -> Self {
        Self { holds, broken: SettingsError::Setting { key: key.into(), value: value.to_string(), rule } }
    }

    /// A rule between two keys.
    pub fn two(holds: bool, one: (&str, impl ToString), other: (&str, impl ToString), rule: &'static str) -> Self {
        let ((key, value), (other, other_value)) = (one, other);
        let broken = SettingsError::Between {
            key: key.into(),
            value: value.to_string(),
            other: other.into(),
            other_value: other_value.to_string(),
            rule,
        };
        Self { holds, broken }
    }

    /// Whether all of these hold.
    ///
    /// # Errors
    /// The first that does not.
    pub fn hold(rules: Vec<Self>) -> Result<(), SettingsError> {
        rules.into_iter().find(|rule| !rule.holds).map_or(Ok(()), |rule| Err(rule.broken))
    }

    /// A rule that a value broke when it was read.
    pub const fn broken(broken: SettingsError) -> Self {
        Self { holds: false, broken }
    }
}
