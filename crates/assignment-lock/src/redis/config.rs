//! Settings of the Redis adapter, checked before anything is connected.

use std::fmt;
use std::time::Duration;

use redis::{ClientTlsConfig, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion, RedisError, TlsCertificates};
use secrecy::{ExposeSecret as _, SecretString};

/// Longest key prefix, bytes: it stands before the key of every lock.
const MAX_PREFIX: usize = 64;

/// Settings of a connection to Redis; see each field for its range.
#[derive(Clone)]
pub struct RedisConfig {
    /// `redis://HOST[:PORT][/DATABASE]`, or `rediss://…` for TLS. Without user and password: those are
    /// fields of their own, so that an address can be printed.
    pub url: String,
    /// User of an access control list. Default: Redis' own default user.
    pub user: Option<String>,
    /// Password; never printed. Default: none.
    pub password: Option<SecretString>,
    /// Certificates of the authorities a server's certificate is checked against, PEM, with `rediss`.
    /// Default: those of the machine.
    pub ca_pem: Option<Vec<u8>>,
    /// This side's certificate, with `rediss`. Default: none.
    pub client: Option<RedisClient>,
    /// A connection stands within this, 10 ms – 30 s. Default 1 s.
    pub connect_timeout: Duration,
    /// A request is answered within this, 10 ms – 30 s; what is not answered has an unknown outcome.
    /// Hand-outs wait for it once when the server goes away. Default 500 ms.
    pub response_timeout: Duration,
    /// Stands before every key, at most 64 visible ASCII characters, for servers that several
    /// installations share. Default: empty, so that the lock of a task is `task:ID:assignee`.
    pub key_prefix: String,
}

/// The certificate by which this side shows who it is.
#[derive(Clone)]
pub struct RedisClient {
    /// Certificate chain, PEM.
    pub cert_pem: Vec<u8>,
    /// Its private key, PEM; never printed.
    pub key_pem: SecretString,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: {rule}")]
pub struct RedisRefused {
    /// Field of [`RedisConfig`].
    pub field: &'static str,
    /// Its value, or what may be shown of it.
    pub value: String,
    /// What must hold.
    pub rule: String,
}

impl RedisConfig {
    /// The defaults for a server.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            user: None,
            password: None,
            ca_pem: None,
            client: None,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_millis(500),
            key_prefix: String::new(),
        }
    }

    /// Checks every field by itself and against the others; nothing is connected.
    ///
    /// # Errors
    /// [`RedisRefused`] names the first field that cannot be used.
    pub fn validate(&self) -> Result<(), RedisRefused> {
        self.client().map(|_| ())
    }

    /// What connects by these settings.
    pub(super) fn client(&self) -> Result<redis::Client, RedisRefused> {
        let info = self.connection()?;
        within("connect_timeout", self.connect_timeout)?;
        within("response_timeout", self.response_timeout)?;
        if self.key_prefix.len() > MAX_PREFIX || !self.key_prefix.bytes().all(|b| b.is_ascii_graphic()) {
            let rule = format!("at most {MAX_PREFIX} visible ASCII characters");
            return Err(refused("key_prefix", format!("{:?}", self.key_prefix), rule));
        }
        if !self.is_tls() {
            for (field, given) in [("ca_pem", self.ca_pem.is_some()), ("client", self.client.is_some())] {
                if given {
                    let rule = format!("certificates are for rediss://, but url = {}", self.url);
                    return Err(refused(field, "given", rule));
                }
            }
            return redis::Client::open(info).map_err(|why| refused("url", &self.url, text(&why)));
        }
        // Several providers of cryptography may be linked; the first to be named is used by all.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client_tls = self.client.as_ref().map(|client| ClientTlsConfig {
            client_cert: client.cert_pem.clone(),
            client_key: client.key_pem.expose_secret().as_bytes().to_vec(),
        });
        self.check_pem()?;
        let certificates = TlsCertificates { client_tls, root_cert: self.ca_pem.clone() };
        redis::Client::build_with_tls(info, certificates)
            .map_err(|why| refused("ca_pem, client", "certificates", text(&why)))
    }

    /// The server's address, for messages.
    pub(super) fn address(&self) -> &str {
        &self.url
    }

    fn is_tls(&self) -> bool {
        self.url.starts_with("rediss://")
    }

    fn connection(&self) -> Result<ConnectionInfo, RedisRefused> {
        let form = "redis://HOST[:PORT][/DATABASE] or rediss://…";
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return Err(refused("url", &self.url, form));
        };
        if rest.contains('@') {
            let rule = "user and password are settings of their own, not part of the address";
            return Err(refused("url", format!("{scheme}://…@…"), rule));
        }
        if !["redis", "rediss"].contains(&scheme) || rest.contains(['?', '#']) {
            return Err(refused("url", &self.url, form));
        }
        let info = self.url.as_str().into_connection_info();
        let info = info.map_err(|why| refused("url", &self.url, format!("{form}: {}", text(&why))))?;
        // RESP3 tells of a connection that ended while nothing was asked on it.
        let mut redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        // One right less that the user needs.
        redis = redis.set_skip_set_lib_name();
        if let Some(user) = &self.user {
            if self.password.is_none() {
                return Err(refused("user", user, "a user needs a password"));
            }
            redis = redis.set_username(user);
        }
        if let Some(password) = &self.password {
            if password.expose_secret().is_empty() {
                return Err(refused("password", "empty", "leave it out if the server asks for none"));
            }
            redis = redis.set_password(password.expose_secret());
        }
        Ok(info.set_redis_settings(redis))
    }

    // The library takes a text without any certificate for an empty list of authorities.
    fn check_pem(&self) -> Result<(), RedisRefused> {
        let lacks = |pem: &[u8], label: &str| !String::from_utf8_lossy(pem).contains(label);
        let certificate = "-----BEGIN CERTIFICATE-----";
        if self.ca_pem.as_ref().is_some_and(|pem| lacks(pem, certificate)) {
            return Err(refused("ca_pem", "given", "holds no PEM certificate"));
        }
        match &self.client {
            Some(client) if lacks(&client.cert_pem, certificate) => {
                Err(refused("client.cert_pem", "given", "holds no PEM certificate"))
            }
            Some(client) if lacks(client.key_pem.expose_secret().as_bytes(), "PRIVATE KEY-----") => {
                Err(refused("client.key_pem", "hidden", "holds no PEM private key"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("url", &self.url)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "hidden"))
            .field("key_prefix", &self.key_prefix)
            .finish_non_exhaustive()
    }
}

fn within(field: &'static str, value: Duration) -> Result<(), RedisRefused> {
    if (Duration::from_millis(10)..=Duration::from_secs(30)).contains(&value) {
        return Ok(());
    }
    Err(refused(field, format!("{} ms", value.as_millis()), "10 to 30000 ms"))
}

fn refused(field: &'static str, value: impl ToString, rule: impl ToString) -> RedisRefused {
    RedisRefused { field, value: value.to_string(), rule: rule.to_string() }
}

fn text(why: &RedisError) -> String {
    why.to_string()
}
