//! Settings in layers: the embedded defaults, a file, the environment, flags. Whatever is not known
//! is refused by name, so that a typing error never leaves a default in force. Secrets come from the
//! environment only, or from files of their own ([`crate::sections`]): arguments are seen by every
//! process of the machine, and a file of settings is passed around.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use config::{Config, Environment, File, FileFormat};

use super::origins::{is_secret, variable};
use super::page::documented;
use super::{ProgramSettings, SettingsError};

/// Prefix of settings in the environment.
pub(super) const PREFIX: &str = "DUALTRACK_";

/// Variables with the prefix that are no settings: they belong to the command line itself.
const OTHERS: [&str; 4] = ["DUALTRACK_URL", "DUALTRACK_PROFILE", "DUALTRACK_LOG", "DUALTRACK_CONFIG"];

/// Sections of all programs. One environment may serve them all: of a section that a program does not
/// have it takes no variable.
const SECTIONS: [&str; 10] =
    ["service", "log", "store", "lock", "telemetry", "coordinator", "task_engine", "auto_replay", "dev", "archive"];

/// Layers of settings above the defaults, as flags beside the environment.
#[derive(Clone, Debug, Default, Args)]
pub struct LayerArgs {
    /// File of settings (TOML)
    #[arg(long, value_name = "FILE", env = "DUALTRACK_CONFIG")]
    config: Option<PathBuf>,
    /// Any other setting, such as coordinator.lease_ms=90000
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

impl LayerArgs {
    /// These layers and the environment.
    ///
    /// # Errors
    /// Only of builds with fail points: one that is not known.
    pub fn sources(&self) -> Result<Sources, SettingsError> {
        // Names that are not UTF-8 are none of ours.
        let environment = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        let environment = environment.collect();
        #[cfg(feature = "failpoints")]
        let environment = crate::kill_at::arm(environment)?;
        Ok(Sources { file: self.config.clone(), environment, flags: self.set.clone() })
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it must be KEY=VALUE, such as coordinator.lease_ms=90000")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// What lies above the defaults.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// Variables of the environment; those without the prefix are ignored.
    pub environment: BTreeMap<String, String>,
    /// Flags: key (`section.key`) and value. The last one wins.
    pub flags: Vec<(String, String)>,
}

impl Sources {
    /// The settings that these layers make, not validated yet.
    ///
    /// # Errors
    /// [`SettingsError::Layer`] names the file, variable or key.
    pub fn load<S: ProgramSettings>(&self) -> Result<S, SettingsError> {
        let layer = |why: config::ConfigError| SettingsError::Layer(why.to_string());
        let mut layers = Config::builder().add_source(File::from_str(S::DEFAULTS, FileFormat::Toml));
        if let Some(file) = &self.file {
            self.refuse_secrets_in_file()?;
            layers = layers.add_source(File::from(file.as_path()).format(FileFormat::Toml).required(true));
        }
        let (plain, secret) = self.variables(S::DEFAULTS)?;
        let environment = Environment::with_prefix("DUALTRACK").prefix_separator("_").separator("__");
        layers = layers.add_source(environment.try_parsing(true).source(Some(plain)));
        for (key, value) in secret {
            // As it is: a password of digits is no number.
            layers = layers.set_override(key, value).map_err(layer)?;
        }
        for (key, value) in &self.flags {
            if is_secret(key) {
                return Err(SettingsError::Layer(format!(
                    "{key} is a secret, and arguments are seen by every process: use the variable {} or {key}_file",
                    variable(key)
                )));
            }
            layers = layers.set_override(key.as_str(), value.as_str()).map_err(layer)?;
        }
        layers.build().map_err(layer)?.try_deserialize().map_err(layer)
    }

    /// The file as a table; an empty one without a file.
    pub(super) fn table(&self) -> Result<toml::Table, SettingsError> {
        let Some(file) = &self.file else { return Ok(toml::Table::new()) };
        let unreadable = |why: String| SettingsError::Layer(format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|why| unreadable(why.to_string()))?;
        toml::from_str(&text).map_err(|why| unreadable(why.to_string()))
    }

    fn refuse_secrets_in_file(&self) -> Result<(), SettingsError> {
        let table = self.table()?;
        let sections = table.iter().filter_map(|(section, keys)| Some((section, keys.as_table()?)));
        let mut all = sections.flat_map(|(section, keys)| keys.iter().map(move |(key, value)| (section, key, value)));
        // Empty is what a printed configuration says of a secret that is not set.
        let found = all.find(|(_, key, value)| is_secret(key) && value.as_str() != Some(""));
        let Some((section, key, _)) = found else { return Ok(()) };
        let key = format!("{section}.{key}");
        Err(SettingsError::Layer(format!(
            "{key} is a secret and does not belong into a file of settings: use the variable {} or {key}_file",
            variable(&key)
        )))
    }

    // Those of our prefix and of the program's own sections: plain ones by name, secret ones by key.
    #[expect(clippy::type_complexity, reason = "the two kinds of variables, named where they are used")]
    fn variables(&self, defaults: &str) -> Result<(config::Map<String, String>, Vec<(String, String)>), SettingsError> {
        let own: Vec<String> = documented(defaults).into_iter().map(|setting| setting.section).collect();
        let (mut plain, mut secret) = (config::Map::default(), Vec::new());
        for (name, value) in &self.environment {
            let Some(key) = name.strip_prefix(PREFIX).filter(|_| !OTHERS.contains(&name.as_str())) else { continue };
            // One underscore instead of two would be taken for nothing at all.
            let Some((section, key)) = key.split_once("__") else {
                let text = format!("the variable {name} is not known: a setting is {PREFIX}SECTION__KEY");
                return Err(SettingsError::Layer(text));
            };
            let section = section.to_ascii_lowercase();
            if !own.contains(&section) && SECTIONS.contains(&section.as_str()) {
                continue;
            }
            let key = format!("{section}.{key}").to_ascii_lowercase();
            if is_secret(&key) {
                secret.push((key, value.clone()));
            } else {
                plain.insert(name.clone(), value.clone());
            }
        }
        Ok((plain, secret))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::settings::Rule;

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Toy {
        toy: ToySection,
    }

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ToySection {
        ms: u64,
        password: crate::Secret,
    }

    impl ProgramSettings for Toy {
        const DEFAULTS: &'static str = "[toy]\n# A time.\nms = 5\n# A word.\npassword = \"\"\n";

        fn rules(&self) -> Vec<Rule> {
            vec![Rule::one(self.toy.ms > 0, "toy.ms", self.toy.ms, "above 0")]
        }
    }

    fn variable(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_password_comes_from_the_environment_as_it_is() {
        let environment = BTreeMap::from([variable("DUALTRACK_TOY__PASSWORD", "007")]);
        let toy: Toy = Sources { environment, ..Sources::default() }.load().expect("settings");
        assert_eq!(toy.toy.password.expose(), "007");
        assert!(!format!("{toy:?}{}", toy.to_toml()).contains("007"), "{toy:?}");
    }

    #[test]
    fn variables_of_other_programs_are_theirs() {
        let environment = BTreeMap::from([
            variable("DUALTRACK_LOCK__URL", "redis://127.0.0.1:6379"),
            variable("DUALTRACK_STORE__PASSWORD", "x"),
            variable("DUALTRACK_TOY__MS", "9"),
        ]);
        let toy: Toy = Sources { environment, ..Sources::default() }.load().expect("settings");
        assert_eq!(toy.toy.ms, 9);
    }

    #[test]
    fn a_password_as_an_argument_or_in_a_file_of_settings_is_refused() {
        let flags = vec![variable("toy.password", "x")];
        let why = Sources { flags, ..Sources::default() }.load::<Toy>().expect_err("refused").to_string();
        assert!(why.contains("DUALTRACK_TOY__PASSWORD") && why.contains("toy.password_file"), "{why}");
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "[toy]\npassword = \"hunter2\"\n").expect("a file");
        let sources = Sources { file: Some(file.clone()), ..Sources::default() };
        let why = sources.load::<Toy>().expect_err("refused").to_string();
        assert!(why.contains("toy.password_file") && !why.contains("hunter2"), "{why}");
        std::fs::write(&file, "[toy]\npassword = \"\"\nms = 7\n").expect("a file");
        assert_eq!(sources.load::<Toy>().expect("an empty one is none").toy.ms, 7);
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let refusal = |sources: Sources| sources.load::<Toy>().expect_err("refused").to_string();
        let flag = |key: &str, value: &str| Sources { flags: vec![variable(key, value)], ..Sources::default() };
        let why = refusal(flag("toy.mss", "1"));
        assert!(why.contains("mss"), "{why}");
        let why = refusal(flag("tory.ms", "1"));
        assert!(why.contains("tory"), "{why}");
        let why = refusal(flag("toy.ms", "soon"));
        assert!(why.contains("ms") && why.contains("soon"), "{why}");
        let environment = BTreeMap::from([variable("DUALTRACK_TOY_MS", "1")]);
        let why = refusal(Sources { environment, ..Sources::default() });
        assert!(why.contains("DUALTRACK_TOY_MS") && why.contains("SECTION__KEY"), "{why}");
        let why = refusal(Sources { file: Some("/no/such.toml".into()), ..Sources::default() });
        assert!(why.contains("/no/such.toml"), "{why}");
    }
}
