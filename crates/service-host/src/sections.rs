//! Sections of settings that several programs have, each with its rules and what is made of it.

mod lock;
mod log;
mod service;
mod store;
mod telemetry;

use std::path::Path;

use crate::Secret;
use crate::settings::{Rule, SettingsError};

pub use lock::{LockSection, OnUnavailable};
pub use log::{LogSection, SaslMechanism, Security};
pub use service::ServiceSection;
pub use store::StoreSection;
pub use telemetry::TelemetrySection;

// A client certificate is nothing without its key, and the other way round.
fn certificate_and_key(section: &str, certificate: &Path, key: &Path) -> Rule {
    let (certificate_set, key_set) = (!certificate.as_os_str().is_empty(), !key.as_os_str().is_empty());
    Rule::two(
        certificate_set == key_set,
        (&format!("{section}.certificate_file"), format!("{certificate:?}")),
        (&format!("{section}.key_file"), format!("{key:?}")),
        "a client certificate and its key are given together, or neither",
    )
}

// Certificates of a PEM file; none if none is named.
fn certificates(key: &str, file: &Path) -> Result<Option<Vec<u8>>, SettingsError> {
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    let rule = "the file cannot be read";
    let refuse = |_| SettingsError::Setting { key: key.to_owned(), value: file.display().to_string(), rule };
    std::fs::read(file).map(Some).map_err(refuse)
}

// The key of a client certificate, which only its owner can read.
fn private_key(key: &str, file: &Path) -> Result<Secret, SettingsError> {
    if file.as_os_str().is_empty() { Ok(Secret::default()) } else { Secret::whole(key, file) }
}

// `HOST:PORT[,HOST:PORT…]`.
fn are_addresses(text: &str) -> bool {
    let one = |address: &str| {
        let parts = address.trim().rsplit_once(':');
        parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
    };
    !text.is_empty() && text.split(',').all(one)
}
