//! Each setting with its value and the layer it came from.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::DevError;
use super::layers::{PREFIX, Sources};

/// Last words of keys whose values nobody gets to see.
const SECRETS: [&str; 4] = ["secret", "password", "token", "credentials"];

/// A setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// `section.key`.
    pub key: String,
    /// Its value; `"***"` for a secret.
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
    pub fn explain(&self) -> Result<Vec<Setting>, DevError> {
        let settings = serde_json::to_value(self.load()?).unwrap_or_default();
        let file: toml::Table = match &self.file {
            Some(file) => {
                let unreadable = |why: String| DevError::Layer(format!("{}: {why}", file.display()));
                let text = std::fs::read_to_string(file).map_err(|why| unreadable(why.to_string()))?;
                toml::from_str(&text).map_err(|why| unreadable(why.to_string()))?
            }
            None => toml::Table::new(),
        };
        let mut all = Vec::new();
        for (section, keys) in settings.as_object().into_iter().flatten() {
            for (name, value) in keys.as_object().into_iter().flatten() {
                let key = format!("{section}.{name}");
                let in_file = file.get(section).is_some_and(|section| section.get(name).is_some());
                let from = self.origin(&key, in_file);
                let value = if is_secret(name) { "***".into() } else { value.clone() };
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

fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name.rsplit('_').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_says_where_it_came_from() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "[coordinator]\nlease_ms = 70000\nheartbeat_ms = 9000\n[dev]\npartitions = 3\n")
            .expect("a file");
        let sources = Sources {
            file: Some(file.clone()),
            environment: [("DUALTRACK_COORDINATOR__LEASE_MS".to_owned(), "80000".to_owned())].into(),
            flags: vec![("dev.partitions".to_owned(), "7".to_owned())],
        };
        let all = sources.explain().expect("settings");
        let of = |key: &str| all.iter().find(|setting| setting.key == key).expect("known");
        assert_eq!(of("dev.partitions").from, Origin::Flag);
        assert_eq!(of("coordinator.lease_ms").from, Origin::Variable("DUALTRACK_COORDINATOR__LEASE_MS".to_owned()));
        assert_eq!(of("coordinator.lease_ms").value, 80_000);
        assert_eq!(of("coordinator.heartbeat_ms").from, Origin::File(file));
        assert_eq!(of("lock.ttl_ms").from, Origin::Default);
    }

    #[test]
    fn secrets_are_known_by_the_end_of_their_name() {
        assert!(is_secret("sasl_password") && is_secret("token"));
        assert!(!is_secret("token_ttl_ms") && !is_secret("bootstrap"));
    }
}
