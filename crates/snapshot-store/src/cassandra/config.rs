//! Settings of the Cassandra adapter, checked before anything is connected.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use crate::Clock;

/// Longest name of a keyspace, characters: Cassandra's own limit.
const MAX_KEYSPACE: usize = 48;

/// Settings of a session with Cassandra or ScyllaDB; see each field for its range.
#[derive(Clone)]
pub struct CassandraConfig {
    /// `HOST[:PORT]` of nodes that are asked for the others; port 9042 where none is named.
    pub contact_points: Vec<String>,
    /// The keyspace: 1 to 48 lower-case letters, digits and `_`, a letter first.
    pub keyspace: String,
    /// The data centre whose nodes are asked; no other one's ever are.
    pub local_dc: String,
    /// Copies of each row in that data centre, 1 to 16: used where [`migrate`](super::migrate) makes
    /// the keyspace, never to change one. Default 3.
    pub replication: u16,
    /// User. Default: none.
    pub user: Option<String>,
    /// Its password; never printed.
    pub password: Option<SecretString>,
    /// TLS. Default: none, which is for loopback.
    pub tls: Option<CassandraTls>,
    /// How many copies must have answered. Default [`CassandraConsistency::LocalQuorum`].
    pub consistency: CassandraConsistency,
    /// A connection stands within this, 10 ms – 60 s. Default 5 s.
    pub connect_timeout: Duration,
    /// A request that is not answered within this is `Unavailable`, 100 ms – 60 s; it may have been
    /// applied. Default 2 s.
    pub request_timeout: Duration,
    /// Requests on their way at a time, 1 to 4,096; more wait. Default 256: throughput falls beyond.
    pub max_in_flight: usize,
    /// By what things expire, and what is written without a row clock is stamped.
    pub clock: Clock,
}

/// How many copies must have answered before a write is acknowledged or a read is answered. Nothing
/// weaker is offered: what was acknowledged is what the next reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CassandraConsistency {
    /// Most copies in the local data centre.
    LocalQuorum,
    /// Most copies over all data centres.
    Quorum,
}

/// How connections are encrypted. Certificates of nodes must name the addresses by which they are
/// reached (IP addresses, as the nodes announce them).
#[derive(Clone)]
pub struct CassandraTls {
    /// Certificates of the authorities that signed those of the nodes, PEM.
    pub ca_pem: Vec<u8>,
    /// This side's certificate. Default: none.
    pub client: Option<CassandraClient>,
}

/// The certificate by which this side shows who it is.
#[derive(Clone)]
pub struct CassandraClient {
    /// Certificate chain, PEM.
    pub cert_pem: Vec<u8>,
    /// Its private key, PEM; never printed.
    pub key_pem: SecretString,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: {rule}")]
pub struct CassandraRefused {
    /// Field of [`CassandraConfig`].
    pub field: &'static str,
    /// Its value, or what may be shown of it.
    pub value: String,
    /// What must hold.
    pub rule: String,
}

impl CassandraConfig {
    /// The defaults for a keyspace. The clock tells Unix ms.
    pub fn new(
        contact_points: impl IntoIterator<Item = impl Into<String>>,
        keyspace: impl Into<String>,
        local_dc: impl Into<String>,
        clock: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            contact_points: contact_points.into_iter().map(Into::into).collect(),
            keyspace: keyspace.into(),
            local_dc: local_dc.into(),
            replication: 3,
            user: None,
            password: None,
            tls: None,
            consistency: CassandraConsistency::LocalQuorum,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            max_in_flight: 256,
            clock: Arc::new(clock),
        }
    }

    /// Checks every field by itself and against the others; nothing is connected.
    ///
    /// # Errors
    /// [`CassandraRefused`] names the first field that cannot be used.
    pub fn validate(&self) -> Result<(), CassandraRefused> {
        if self.contact_points.is_empty() {
            return Err(refused("contact_points", "[]", "at least one HOST[:PORT]"));
        }
        if let Some(bad) = self.contact_points.iter().find(|point| !is_contact_point(point)) {
            return Err(refused("contact_points", format!("{bad:?}"), "HOST[:PORT]"));
        }
        if !is_keyspace(&self.keyspace) {
            let rule = format!("1 to {MAX_KEYSPACE} lower-case letters, digits and '_', a letter first");
            return Err(refused("keyspace", format!("{:?}", self.keyspace), rule));
        }
        // It stands in the statement that makes the keyspace.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if self.local_dc.is_empty() || !self.local_dc.chars().all(plain) {
            let rule = "name of a data centre: letters, digits, '_', '-' and '.'";
            return Err(refused("local_dc", format!("{:?}", self.local_dc), rule));
        }
        if !(1..=16).contains(&self.replication) {
            return Err(refused("replication", self.replication, "1 to 16 copies"));
        }
        match (&self.user, &self.password) {
            (Some(user), None) => return Err(refused("user", user, "a user needs a password")),
            (None, Some(_)) => return Err(refused("password", "hidden", "a password needs a user")),
            (Some(user), Some(_)) if user.is_empty() => return Err(refused("user", "empty", "leave it out instead")),
            (Some(_), Some(_)) | (None, None) => {}
        }
        within("connect_timeout", self.connect_timeout, 10)?;
        within("request_timeout", self.request_timeout, 100)?;
        if !(1..=4_096).contains(&self.max_in_flight) {
            return Err(refused("max_in_flight", self.max_in_flight, "1 to 4096 requests"));
        }
        super::tls::client_config(self.tls.as_ref()).map(|_| ())
    }
}

impl fmt::Debug for CassandraConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassandraConfig")
            .field("contact_points", &self.contact_points)
            .field("keyspace", &self.keyspace)
            .field("local_dc", &self.local_dc)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "hidden"))
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

pub(super) fn refused(field: &'static str, value: impl ToString, rule: impl ToString) -> CassandraRefused {
    CassandraRefused { field, value: value.to_string(), rule: rule.to_string() }
}

fn within(field: &'static str, value: Duration, low_ms: u64) -> Result<(), CassandraRefused> {
    if (Duration::from_millis(low_ms)..=Duration::from_secs(60)).contains(&value) {
        return Ok(());
    }
    Err(refused(field, format!("{} ms", value.as_millis()), format!("{low_ms} to 60000 ms")))
}

fn is_keyspace(name: &str) -> bool {
    name.len() <= MAX_KEYSPACE
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

// `[::1]:9042` is one too.
fn is_contact_point(text: &str) -> bool {
    let host = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => match port.parse::<u16>() {
            Ok(1..) => host,
            Ok(0) | Err(_) => return false,
        },
        Some(_) | None => text,
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    bare.map_or_else(|| !host.is_empty() && host.chars().all(fits), |v6| v6.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> CassandraConfig {
        CassandraConfig::new(["10.0.0.1"], "dualtrack", "datacenter1", || 0)
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_value_and_rule() {
        assert_eq!(config().validate(), Ok(()));
        let secret = || Some(SecretString::from("obviously-fake"));
        type Change = Box<dyn Fn(&mut CassandraConfig)>;
        let bad: Vec<(&str, &str, Change)> = vec![
            ("contact_points", "[]", Box::new(|c| c.contact_points.clear())),
            ("contact_points", "\"a:0\"", Box::new(|c| c.contact_points.push("a:0".into()))),
            ("contact_points", "\"http://a\"", Box::new(|c| c.contact_points.push("http://a".into()))),
            ("contact_points", "\"\"", Box::new(|c| c.contact_points.push(String::new()))),
            ("keyspace", "\"Tasks\"", Box::new(|c| c.keyspace = "Tasks".into())),
            ("keyspace", "\"a; DROP\"", Box::new(|c| c.keyspace = "a; DROP".into())),
            ("keyspace", "\"\"", Box::new(|c| c.keyspace.clear())),
            ("local_dc", "\"a' b\"", Box::new(|c| c.local_dc = "a' b".into())),
            ("replication", "0", Box::new(|c| c.replication = 0)),
            ("user", "me", Box::new(|c| c.user = Some("me".into()))),
            ("password", "hidden", Box::new(move |c| c.password = secret())),
            ("connect_timeout", "9 ms", Box::new(|c| c.connect_timeout = Duration::from_millis(9))),
            ("request_timeout", "61000 ms", Box::new(|c| c.request_timeout = Duration::from_secs(61))),
            ("max_in_flight", "0", Box::new(|c| c.max_in_flight = 0)),
            ("tls.ca_pem", "given", Box::new(|c| c.tls = Some(CassandraTls { ca_pem: b"x".to_vec(), client: None }))),
        ];
        for (field, value, change) in bad {
            let mut config = config();
            change(&mut config);
            let why = config.validate().expect_err(field);
            assert_eq!((why.field, why.value.as_str()), (field, value), "{why}");
            assert!(!why.rule.is_empty());
        }
        for point in ["a", "a:9042", "10.0.0.1:1", "[::1]:9042", "[::1]", "node-1.example.com:9042"] {
            assert!(is_contact_point(point), "{point}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let mut config = config();
        (config.user, config.password) = (Some("me".into()), Some(SecretString::from("obviously-fake")));
        assert_eq!(config.validate(), Ok(()));
        assert!(!format!("{config:?}").contains("obviously"));
    }
}
