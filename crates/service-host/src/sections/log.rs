//! `[log]`: the event track on Kafka.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use event_log::{KafkaConfig, TopicSpec};
use serde::{Deserialize, Serialize};
use task_events::MAX_PARTITIONS;

use super::{are_addresses, certificate_and_key, private_key};
use crate::Secret;
use crate::settings::{Rule, SettingsError};

/// `[log]`: the topic, and the way to its brokers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSection {
    /// `HOST:PORT[,HOST:PORT…]` of brokers.
    pub bootstrap: String,
    /// The topic.
    pub topic: String,
    /// Its partitions, 1 to 1,024; fixed for its life.
    pub partitions: u16,
    /// Copies of each partition.
    pub replication: u16,
    /// Copies that must have a record before it counts as written.
    pub min_insync: u16,
    /// How long records are kept at least, days.
    pub retention_days: u32,
    /// How the brokers are spoken to.
    pub security: Security,
    /// How the user proves who it is.
    pub sasl_mechanism: SaslMechanism,
    /// User; empty: none.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// Or the file that holds it.
    pub password_file: PathBuf,
    /// Authority that signed the brokers' certificates; empty: those of the system.
    pub ca_file: PathBuf,
    /// Client certificate; empty: none.
    pub certificate_file: PathBuf,
    /// Its key.
    pub key_file: PathBuf,
    /// `none`, `lz4`, `zstd` or `gzip`.
    pub compression: String,
    /// Silence after which a member is dropped from its group, ms.
    pub session_timeout_ms: u64,
    /// After this an append that was not acknowledged is unknown, ms.
    pub delivery_timeout_ms: u64,
    /// How long any single request may take, ms.
    pub request_timeout_ms: u64,
}

/// `log.security`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Security {
    /// TLS if `ca_file` is set, SASL if `user` is.
    #[serde(rename = "auto")]
    Auto,
    /// Neither.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without TLS.
    SaslPlaintext,
    /// Both.
    SaslSsl,
}

/// `log.sasl_mechanism`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SaslMechanism {
    /// The password itself; with TLS only.
    #[serde(rename = "PLAIN")]
    Plain,
    /// SCRAM with SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// SCRAM with SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl SaslMechanism {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl fmt::Display for LogSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topic {} at {}", self.topic, self.bootstrap)
    }
}

impl LogSection {
    /// Its rules.
    pub fn rules(&self) -> Vec<Rule> {
        let within = |key: &str, value: u64, low: u64, high: u64, rule| {
            Rule::one((low..=high).contains(&value), format!("log.{key}"), value, rule)
        };
        let (tls, sasl) = self.secured();
        let security = self.protocol();
        vec![
            Rule::one(
                are_addresses(&self.bootstrap),
                "log.bootstrap",
                format!("{:?}", self.bootstrap),
                "HOST:PORT, several separated by commas",
            ),
            Rule::one(
                is_topic(&self.topic),
                "log.topic",
                format!("{:?}", self.topic),
                "1 to 249 letters, digits, '.', '_' and '-'",
            ),
            within("partitions", self.partitions.into(), 1, MAX_PARTITIONS.into(), "1 to 1024"),
            within("replication", self.replication.into(), 1, 16, "1 to 16"),
            Rule::two(
                (1..=self.replication).contains(&self.min_insync),
                ("log.min_insync", self.min_insync),
                ("log.replication", self.replication),
                "at least one copy, and no more than there are",
            ),
            within(
                "retention_days",
                self.retention_days.into(),
                60,
                36_500,
                "60 to 36500: payloads can be replayed for 60 days",
            ),
            Rule::one(
                ["none", "lz4", "zstd", "gzip"].contains(&self.compression.as_str()),
                "log.compression",
                format!("{:?}", self.compression),
                "none, lz4, zstd or gzip",
            ),
            within("session_timeout_ms", self.session_timeout_ms, 1_000, 60_000, "1000 to 60000"),
            within("delivery_timeout_ms", self.delivery_timeout_ms, 1_000, 120_000, "1000 to 120000"),
            within("request_timeout_ms", self.request_timeout_ms, 100, 60_000, "100 to 60000"),
            Rule::two(
                !sasl || !self.user.is_empty(),
                ("log.security", security),
                ("log.user", format!("{:?}", self.user)),
                "SASL needs a user",
            ),
            Rule::two(
                !sasl || tls || self.sasl_mechanism != SaslMechanism::Plain,
                ("log.security", security),
                ("log.sasl_mechanism", self.sasl_mechanism.name()),
                "PLAIN sends the password as it is, so it needs TLS",
            ),
            certificate_and_key("log", &self.certificate_file, &self.key_file),
        ]
    }

    /// Settings of a client of this name, and what the topic must be like.
    ///
    /// # Errors
    /// The password's file cannot be used.
    pub fn kafka(&self, client_id: &str) -> Result<(KafkaConfig, TopicSpec), SettingsError> {
        let password = self.password.or_file("log.password_file", &self.password_file)?;
        // The client reads it by itself; that nobody else can is looked at here.
        private_key("log.key_file", &self.key_file)?;
        let mut config = KafkaConfig::new(&self.bootstrap, &self.topic, self.partitions);
        client_id.clone_into(&mut config.client_id);
        config.compression.clone_from(&self.compression);
        config.session_timeout = Duration::from_millis(self.session_timeout_ms);
        config.delivery_timeout = Duration::from_millis(self.delivery_timeout_ms);
        config.request_timeout = Duration::from_millis(self.request_timeout_ms);
        let (_, sasl) = self.secured();
        let mut extra = |name: &str, value: &str| config.extra.push((name.to_owned(), value.to_owned()));
        extra("security.protocol", self.protocol());
        if sasl {
            extra("sasl.mechanism", self.sasl_mechanism.name());
            extra("sasl.username", &self.user);
            extra("sasl.password", password.expose());
        }
        let files = [
            ("ssl.ca.location", &self.ca_file),
            ("ssl.certificate.location", &self.certificate_file),
            ("ssl.key.location", &self.key_file),
        ];
        for (name, file) in files.into_iter().filter(|(_, file)| !file.as_os_str().is_empty()) {
            extra(name, &file.to_string_lossy());
        }
        let retention = Duration::from_secs(u64::from(self.retention_days) * 24 * 3600);
        Ok((config, TopicSpec { replication: self.replication, min_insync: self.min_insync, retention }))
    }

    // Whether there is TLS, and SASL.
    fn secured(&self) -> (bool, bool) {
        match self.security {
            Security::Auto => (!self.ca_file.as_os_str().is_empty(), !self.user.is_empty()),
            Security::Plaintext => (false, false),
            Security::Ssl => (true, false),
            Security::SaslPlaintext => (false, true),
            Security::SaslSsl => (true, true),
        }
    }

    fn protocol(&self) -> &'static str {
        match self.secured() {
            (false, false) => "PLAINTEXT",
            (true, false) => "SSL",
            (false, true) => "SASL_PLAINTEXT",
            (true, true) => "SASL_SSL",
        }
    }
}

fn is_topic(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
    (1..=249).contains(&name.len()) && ![".", ".."].contains(&name) && name.chars().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> LogSection {
        toml::from_str(
            "bootstrap = '127.0.0.1:9092'\ntopic = 't'\npartitions = 4\nreplication = 3\nmin_insync = 2\n\
             retention_days = 90\nsecurity = 'auto'\nsasl_mechanism = 'SCRAM-SHA-512'\nuser = ''\npassword = ''\n\
             password_file = ''\nca_file = ''\ncertificate_file = ''\nkey_file = ''\ncompression = 'lz4'\n\
             session_timeout_ms = 6000\ndelivery_timeout_ms = 30000\nrequest_timeout_ms = 10000\n",
        )
        .expect("a section")
    }

    fn broken(section: &LogSection) -> Vec<String> {
        section.rules().into_iter().filter(|rule| !rule.holds).map(|rule| rule.broken.to_string()).collect()
    }

    #[test]
    fn security_follows_from_what_is_given() {
        let protocol = |change: fn(&mut LogSection)| {
            let mut section = section();
            change(&mut section);
            let (config, _) = section.kafka("c").expect("a client");
            let of = |name: &str| config.extra.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
            (of("security.protocol").expect("always said"), of("sasl.username"), of("ssl.ca.location"))
        };
        let said = |protocol: &str, user: Option<&str>, ca: Option<&str>| {
            (protocol.to_owned(), user.map(str::to_owned), ca.map(str::to_owned))
        };
        assert_eq!(protocol(|_| {}), said("PLAINTEXT", None, None));
        assert_eq!(protocol(|s| s.ca_file = "/ca".into()), said("SSL", None, Some("/ca")));
        assert_eq!(protocol(|s| s.security = Security::Ssl), said("SSL", None, None));
        assert_eq!(protocol(|s| s.user = "u".into()), said("SASL_PLAINTEXT", Some("u"), None));
        let both = protocol(|s| (s.user, s.ca_file) = ("u".into(), "/ca".into()));
        assert_eq!(both, said("SASL_SSL", Some("u"), Some("/ca")));
    }

    #[test]
    fn what_cannot_work_is_named() {
        assert_eq!(broken(&section()), Vec::<String>::new());
        type Change = fn(&mut LogSection);
        let cases: [(Change, &str); 9] = [
            (|s| s.bootstrap = "nowhere".into(), "log.bootstrap"),
            (|s| s.topic = "a b".into(), "log.topic"),
            (|s| s.partitions = 0, "1 to 1024"),
            (|s| s.min_insync = 4, "log.min_insync = 4 contradicts log.replication = 3"),
            (|s| s.retention_days = 7, "log.retention_days = 7"),
            (|s| s.compression = "rar".into(), "log.compression"),
            (|s| s.security = Security::SaslSsl, "SASL needs a user"),
            (|s| (s.user, s.sasl_mechanism) = ("u".into(), SaslMechanism::Plain), "needs TLS"),
            (|s| s.key_file = "/key".into(), "log.certificate_file"),
        ];
        for (change, word) in cases {
            let mut section = section();
            change(&mut section);
            let broken = broken(&section);
            assert!(broken.len() == 1 && broken[0].contains(word), "{word}: {broken:?}");
        }
    }
}
