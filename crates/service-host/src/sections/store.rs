//! `[store]`: the snapshot track on Cassandra or ScyllaDB.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_kit::{Clock as _, SystemClock};
use snapshot_store::{CassandraClient, CassandraConfig, CassandraTls};

use super::{are_addresses, certificate_and_key, certificates, private_key};
use crate::Secret;
use crate::settings::{Rule, SettingsError};

/// `[store]`: the keyspace, and the way to its nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSection {
    /// `HOST:PORT[,HOST:PORT…]` of nodes.
    pub contact_points: String,
    /// The keyspace.
    pub keyspace: String,
    /// The data centre whose nodes are asked.
    pub local_dc: String,
    /// Copies of each row in that data centre, where the keyspace is made.
    pub replication: u16,
    /// User; empty: none.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// Or the file that holds it.
    pub password_file: PathBuf,
    /// Authority that signed the nodes' certificates; set: TLS.
    pub ca_file: PathBuf,
    /// Client certificate; empty: none.
    pub certificate_file: PathBuf,
    /// Its key.
    pub key_file: PathBuf,
    /// After this an unanswered request is given up, ms.
    pub request_timeout_ms: u64,
    /// Requests on their way at a time.
    pub max_in_flight: usize,
}

impl fmt::Display for StoreSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keyspace {} at {}", self.keyspace, self.contact_points)
    }
}

impl StoreSection {
    /// Its rules.
    pub fn rules(&self) -> Vec<Rule> {
        let keyspace = !self.keyspace.is_empty()
            && self.keyspace.len() <= 48
            && self.keyspace.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            && self.keyspace.starts_with(|c: char| c.is_ascii_lowercase());
        vec![
            Rule::one(
                are_addresses(&self.contact_points),
                "store.contact_points",
                format!("{:?}", self.contact_points),
                "HOST:PORT, several separated by commas",
            ),
            Rule::one(
                keyspace,
                "store.keyspace",
                format!("{:?}", self.keyspace),
                "1 to 48 lower-case letters, digits and '_', a letter first",
            ),
            Rule::one(
                !self.local_dc.is_empty(),
                "store.local_dc",
                format!("{:?}", self.local_dc),
                "a data centre's name",
            ),
            Rule::one((1..=16).contains(&self.replication), "store.replication", self.replication, "1 to 16"),
            Rule::one(
                (100..=60_000).contains(&self.request_timeout_ms),
                "store.request_timeout_ms",
                self.request_timeout_ms,
                "100 to 60000",
            ),
            Rule::one(
                (1..=4_096).contains(&self.max_in_flight),
                "store.max_in_flight",
                self.max_in_flight,
                "1 to 4096",
            ),
            certificate_and_key("store", &self.certificate_file, &self.key_file),
            Rule::two(
                self.certificate_file.as_os_str().is_empty() || !self.ca_file.as_os_str().is_empty(),
                ("store.certificate_file", format!("{:?}", self.certificate_file)),
                ("store.ca_file", format!("{:?}", self.ca_file)),
                "a client certificate is for TLS, which ca_file switches on",
            ),
        ]
    }

    /// Settings of a session.
    ///
    /// # Errors
    /// A file that they name cannot be used.
    pub fn cassandra(&self) -> Result<CassandraConfig, SettingsError> {
        let password = self.password.or_file("store.password_file", &self.password_file)?;
        let points = self.contact_points.split(',').map(str::trim);
        let mut config = CassandraConfig::new(points, &self.keyspace, &self.local_dc, || SystemClock.wall_ms());
        config.replication = self.replication;
        config.user = (!self.user.is_empty()).then(|| self.user.clone());
        config.password = password.text();
        config.request_timeout = Duration::from_millis(self.request_timeout_ms);
        config.max_in_flight = self.max_in_flight;
        if let Some(ca_pem) = certificates("store.ca_file", &self.ca_file)? {
            let key = private_key("store.key_file", &self.key_file)?.text();
            let certificate = certificates("store.certificate_file", &self.certificate_file)?;
            let client = certificate.zip(key).map(|(cert_pem, key_pem)| CassandraClient { cert_pem, key_pem });
            config.tls = Some(CassandraTls { ca_pem, client });
        }
        Ok(config)
    }
}
