//! Each setting with its value and the layer it came from.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::layers::{PREFIX, Sources};
use super::{ProgramSettings, SettingsError};

/// Last words of keys whose values nobody gets to see.
const SECRETS: [&str; 4] = ["secret", "password", "token", "credentials"];

/// A setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// `section.key`.
    pub key: String,
    /// Its value; `"***"` for a secret that is set.
    pub value: Value,
    /// The layer that won.
    pub from: Origin,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The embedded defaults.
    Default,
    /// The file.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// A flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(file) => write!(f, "file {}", file.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// The variable of the environment that sets a key.
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

impl Sources {
    /// Every setting with its value and where that came from.
    ///
    /// # Errors
    /// As [`Sources::load`].
    pub fn explain<S: ProgramSettings>(&self) -> Result<Vec<Setting>, SettingsError> {
        let settings = serde_json::to_value(self.load::<S>()?).unwrap_or_default();
        let file = self.table()?;
        let mut all = Vec::new();
        for (section, keys) in settings.as_object().into_iter().flatten() {
            for (name, value) in keys.as_object().into_iter().flatten() {
                let key = format!("{section}.{name}");
                let in_file = file.get(section).is_some_and(|section| section.get(name).is_some());
                let from = self.origin(&key, in_file);
                let hidden = is_secret(name) && value != "";
                let value = if hidden { "***".into() } else { value.clone() };
                all.push(Setting { key, value, from });
            }
        }
        Ok(all)
    }

    fn origin(&self, key: &str, in_file: bool) -> Origin {
        let variable = variable(key);
        if self.flags.iter().any(|(flag, _)| flag == key) {
            return Origin::Flag;
        }
        if let Some(name) = self.environment.keys().find(|name| name.eq_ignore_ascii_case(&variable)) {
            return Origin::Variable(name.clone());
        }
        match (&self.file, in_file) {
            (Some(file), true) => Origin::File(file.clone()),
            (Some(_) | None, _) => Origin::Default,
        }
    }
}

/// Whether the value of a key, with or without its section, is a secret.
pub(super) fn is_secret(key: &str) -> bool {
    SECRETS.contains(&key.rsplit(['_', '.']).next().unwrap_or(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_the_end_of_their_name() {
        assert!(is_secret("sasl_password") && is_secret("token") && is_secret("log.password"));
        assert!(!is_secret("token_ttl_ms") && !is_secret("bootstrap") && !is_secret("log.password_file"));
    }
}
