//! What is wrong with settings: by key, value and what must hold.

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A setting is beyond its range.
    #[error("settings: {key} = {value} is not allowed: {rule}")]
    Setting {
        /// `section.key`.
        key: String,
        /// Its value.
        value: String,
        /// What must hold.
        rule: &'static str,
    },
    /// Two settings contradict each other.
    #[error("settings: {key} = {value} contradicts {other} = {other_value}: {rule}")]
    Between {
        /// `section.key`.
        key: String,
        /// Its value.
        value: String,
        /// The other key.
        other: String,
        /// Its value.
        other_value: String,
        /// What must hold.
        rule: &'static str,
    },
    /// A layer of settings cannot be read, or sets what is not known.
    #[error("settings: {0}")]
    Layer(String),
}

impl SettingsError {
    /// The rule with its keys and values, whether it is broken or not; for what is no rule, the error.
    pub fn rule(&self) -> String {
        match self {
            Self::Setting { key, value, rule } => format!("`{key}` = {value}: {rule}"),
            Self::Between { key, value, other, other_value, rule } => {
                format!("`{key}` = {value}, `{other}` = {other_value}: {rule}")
            }
            Self::Layer(_) => self.to_string(),
        }
    }
}
