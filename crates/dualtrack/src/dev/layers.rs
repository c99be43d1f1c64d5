//! Settings in layers: the embedded defaults, a file, the environment, flags. Whatever is not known
//! is refused by name, so that a typing error never leaves a default in force.

use std::collections::BTreeMap;
use std::path::PathBuf;

use config::{Config, Environment, File, FileFormat};

use super::{DevError, Settings};

/// The defaults, with what each of them means.
pub(super) const DEFAULTS: &str = include_str!("config.default.toml");

/// Prefix of settings in the environment.
pub(super) const PREFIX: &str = "DUALTRACK_";

/// Variables with the prefix that are no settings: they belong to the command line itself.
const OTHERS: [&str; 4] = ["DUALTRACK_URL", "DUALTRACK_PROFILE", "DUALTRACK_LOG", "DUALTRACK_CONFIG"];

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
    /// [`DevError::Layer`] names the file, variable or key.
    pub fn load(&self) -> Result<Settings, DevError> {
        let layer = |why: config::ConfigError| DevError::Layer(why.to_string());
        let mut layers = Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        if let Some(file) = &self.file {
            layers = layers.add_source(File::from(file.as_path()).format(FileFormat::Toml).required(true));
        }
        let environment = Environment::with_prefix("DUALTRACK").prefix_separator("_").separator("__");
        layers = layers.add_source(environment.try_parsing(true).source(Some(self.variables()?)));
        for (key, value) in &self.flags {
            layers = layers.set_override(key.as_str(), value.as_str()).map_err(layer)?;
        }
        layers.build().map_err(layer)?.try_deserialize().map_err(layer)
    }

    fn variables(&self) -> Result<config::Map<String, String>, DevError> {
        let mut settings = config::Map::default();
        for (name, value) in &self.environment {
            let Some(key) = name.strip_prefix(PREFIX).filter(|_| !OTHERS.contains(&name.as_str())) else { continue };
            // One underscore instead of two would be taken for nothing at all.
            if !key.contains("__") {
                let text = format!("the variable {name} is not known: a setting is {PREFIX}SECTION__KEY");
                return Err(DevError::Layer(text));
            }
            settings.insert(name.clone(), value.clone());
        }
        Ok(settings)
    }
}

impl Settings {
    /// The embedded defaults.
    ///
    /// # Errors
    /// None outside of development: a test loads them.
    pub fn defaults() -> Result<Self, DevError> {
        Sources::default().load()
    }

    /// As TOML, with every key.
    pub fn to_toml(&self) -> String {
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

#[cfg(test)]
mod tests {
    use coordinator::owner::OwnerConfig;
    use task_core::decide::RetryPolicy;
    use task_engine::EngineConfig;
    use task_events::Incarnation;

    use super::*;

    fn flags(flags: &[(&str, &str)]) -> Sources {
        let flags = flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Sources { flags, ..Sources::default() }
    }

    fn refusal(sources: &Sources) -> String {
        sources.load().and_then(|settings| settings.validate()).expect_err("refused").to_string()
    }

    #[test]
    fn the_documented_defaults_are_those_of_the_code() {
        let settings = Settings::defaults().expect("the defaults load");
        settings.validate().expect("and are valid");
        assert_eq!(settings.owner(), OwnerConfig::default());
        let engine: EngineConfig = settings.engine("e".into(), Incarnation(1));
        assert_eq!(engine.policy, RetryPolicy::default());
        assert_eq!(format!("http://{}", settings.dev.listen), crate::dev::DEFAULT_URL);
    }

    #[test]
    fn later_layers_win_and_print_as_they_are_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "[coordinator]\nlease_ms = 70000\nheartbeat_ms = 9000\n[dev]\npartitions = 3\n")
            .expect("a file");
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment = BTreeMap::from([
            variable("DUALTRACK_COORDINATOR__LEASE_MS", "80000"),
            variable("DUALTRACK_DEV__PARTITIONS", "5"),
            variable("DUALTRACK_LOCK__ON_UNAVAILABLE", "pause"),
            variable("DUALTRACK_LOG", "info"),
            variable("HOME", "/root"),
        ]);
        let sources = Sources {
            file: Some(file),
            environment,
            ..flags(&[("dev.partitions", "7"), ("archive.enabled", "false")])
        };
        let settings = sources.load().expect("settings");
        let c = settings.coordinator;
        assert_eq!((c.lease_ms, c.heartbeat_ms, settings.dev.partitions), (80_000, 9_000, 7));
        assert_eq!((settings.lock.on_unavailable, settings.archive.enabled), (crate::dev::OnUnavailable::Pause, false));
        let printed = dir.path().join("printed.toml");
        std::fs::write(&printed, settings.to_toml()).expect("a file");
        assert_eq!(Sources { file: Some(printed), ..Sources::default() }.load().expect("settings"), settings);
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let typo = refusal(&flags(&[("coordinator.leese_ms", "1")]));
        assert!(typo.contains("leese_ms"), "{typo}");
        let section = refusal(&flags(&[("kordinator.lease_ms", "1")]));
        assert!(section.contains("kordinator"), "{section}");
        let environment = BTreeMap::from([("DUALTRACK_COORDINATOR_LEASE_MS".to_owned(), "1".to_owned())]);
        let variable = refusal(&Sources { environment, ..Sources::default() });
        assert!(variable.contains("DUALTRACK_COORDINATOR_LEASE_MS") && variable.contains("SECTION__KEY"), "{variable}");
        let file = refusal(&Sources { file: Some("/no/such.toml".into()), ..Sources::default() });
        assert!(file.contains("/no/such.toml"), "{file}");
        let text = refusal(&flags(&[("coordinator.lease_ms", "soon")]));
        assert!(text.contains("lease_ms") && text.contains("soon"), "{text}");
    }

    #[test]
    fn a_lease_that_cannot_be_renewed_is_refused_with_both_keys() {
        for (lease, fine) in [("30000", false), ("59000", false), ("90000", true)] {
            let sources = flags(&[("coordinator.heartbeat_ms", "30000"), ("coordinator.lease_ms", lease)]);
            if fine {
                sources.load().and_then(|settings| settings.validate()).expect("90 s are three heartbeats");
                continue;
            }
            let text = refusal(&sources);
            assert!(text.contains(&format!("lease_ms = {lease}")) && text.contains("heartbeat_ms = 30000"), "{text}");
        }
    }

    #[test]
    fn ranges_are_named() {
        for (key, value, word) in [
            ("dev.partitions", "0", "1 to 1024"),
            ("dev.partitions", "1025", "1 to 1024"),
            ("dev.instances", "3", "1 or 2"),
            ("dev.worker_threads", "0", "1 to 64"),
            ("dev.listen", "nowhere", "IP:PORT"),
            ("dev.listen", "0.0.0.0:7420", "--insecure"),
            ("dev.listen", "[::]:7420", "--insecure"),
            ("lock.ttl_ms", "60001", "coordinator.lease_ms"),
            ("task_engine.backoff_base_ms", "300001", "cap_ms"),
        ] {
            let text = refusal(&flags(&[(key, value)]));
            assert!(text.contains(word) && text.contains(value), "{key}: {text}");
        }
        let two = refusal(&flags(&[("dev.instances", "2"), ("dev.listen", "127.0.0.1:65535")]));
        assert!(two.contains("next port"), "{two}");
        flags(&[("dev.listen", "0.0.0.0:7420"), ("dev.insecure", "true")])
            .load()
            .expect("settings")
            .validate()
            .expect("said so");
    }
}
