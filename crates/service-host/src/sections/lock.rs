//! `[lock]`: assignment locks on Redis.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use assignment_lock::{RedisClient, RedisConfig};
use serde::{Deserialize, Serialize, Serializer};

use super::{certificate_and_key, certificates, private_key};
use crate::Secret;
use crate::settings::{Rule, SettingsError};

/// `[lock]`: the way to the server, and what to do without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockSection {
    /// `redis://HOST:PORT[/DB]`, or `rediss://` for TLS.
    #[serde(serialize_with = "hidden")]
    pub url: String,
    /// User; empty: none.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// Or the file that holds it.
    pub password_file: PathBuf,
    /// Authority that signed the server's certificate; empty: those of the system.
    pub ca_file: PathBuf,
    /// Client certificate; empty: none.
    pub certificate_file: PathBuf,
    /// Its key.
    pub key_file: PathBuf,
    /// After this an unanswered request is unknown, ms.
    pub request_timeout_ms: u64,
    /// Time to live of a lock, ms; at most the lease.
    pub ttl_ms: u64,
    /// What to do while the server is away.
    pub on_unavailable: OnUnavailable,
}

/// `lock.on_unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnavailable {
    /// Hand out, fenced by the log.
    FenceOnly,
    /// Hand out nothing.
    Pause,
}

impl fmt::Display for LockSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "locks at {}", without_password(&self.url))
    }
}

impl LockSection {
    /// Its rules, those about the lease apart.
    pub fn rules(&self) -> Vec<Rule> {
        let scheme = self.url.starts_with("redis://") || self.url.starts_with("rediss://");
        let address = self.url.split_once("://").map_or("", |(_, rest)| rest);
        vec![
            Rule::one(
                scheme && !address.is_empty(),
                "lock.url",
                format!("{:?}", without_password(&self.url)),
                "redis://HOST:PORT, or rediss://HOST:PORT for TLS",
            ),
            Rule::one(
                !address.contains('@'),
                "lock.url",
                format!("{:?}", without_password(&self.url)),
                "user and password are settings of their own: lock.user, lock.password_file",
            ),
            Rule::one(
                (50..=10_000).contains(&self.request_timeout_ms),
                "lock.request_timeout_ms",
                self.request_timeout_ms,
                "50 to 10000",
            ),
            certificate_and_key("lock", &self.certificate_file, &self.key_file),
        ]
    }

    /// Settings of a connection.
    ///
    /// # Errors
    /// A file that they name cannot be used.
    pub fn redis(&self) -> Result<RedisConfig, SettingsError> {
        let mut config = RedisConfig::new(&self.url);
        config.user = (!self.user.is_empty()).then(|| self.user.clone());
        config.password = self.password.or_file("lock.password_file", &self.password_file)?.text();
        config.ca_pem = certificates("lock.ca_file", &self.ca_file)?;
        let key = private_key("lock.key_file", &self.key_file)?.text();
        let certificate = certificates("lock.certificate_file", &self.certificate_file)?;
        config.client = certificate.zip(key).map(|(cert_pem, key_pem)| RedisClient { cert_pem, key_pem });
        config.response_timeout = Duration::from_millis(self.request_timeout_ms);
        Ok(config)
    }
}

fn hidden<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&without_password(url))
}

// A URL that holds a password all the same is not to be printed with it.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://***@{host}"),
        (Some(_) | None, _) => url.to_owned(),
    }
}
