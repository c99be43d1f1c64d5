//! `[service]`: the process.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::settings::{Rule, SettingsError};

/// `[service]`: the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSection {
    /// Name among the instances of the service; empty: the machine's name.
    pub instance: String,
    /// Where HTTP answers, `IP:PORT`.
    pub listen: String,
    /// Where others reach it; empty: `http://` and the address.
    pub advertised_url: String,
    /// Addresses other than loopback are served.
    pub insecure: bool,
    /// Threads, 1 to 64.
    pub worker_threads: usize,
}

impl ServiceSection {
    /// Its rules.
    pub fn rules(&self) -> Vec<Rule> {
        let name = self.name();
        let named = !name.is_empty() && name.len() <= 64 && !name.contains(|c: char| c == '|' || c.is_control());
        let url = &self.advertised_url;
        let mut rules = vec![
            Rule::one(named, "service.instance", format!("{name:?}"), "1 to 64 bytes without | and control characters"),
            Rule::one(
                (1..=64).contains(&self.worker_threads),
                "service.worker_threads",
                self.worker_threads,
                "1 to 64",
            ),
            Rule::one(
                url.is_empty() || url.starts_with("http://") && !url.contains('|'),
                "service.advertised_url",
                format!("{url:?}"),
                "http://HOST:PORT, or empty",
            ),
        ];
        match self.address() {
            Err(broken) => rules.push(Rule::broken(broken)),
            Ok(address) => {
                rules.push(Rule::two(
                    self.insecure || address.ip().is_loopback(),
                    ("service.listen", &self.listen),
                    ("service.insecure", self.insecure),
                    "only loopback addresses are served without insecure = true, since nobody is authenticated yet",
                ));
                rules.push(Rule::two(
                    !url.is_empty() || !address.ip().is_unspecified(),
                    ("service.listen", &self.listen),
                    ("service.advertised_url", format!("{url:?}")),
                    "nobody can be told to come to an unspecified address: say where others reach this instance",
                ));
            }
        }
        rules
    }

    /// Where to listen.
    ///
    /// # Errors
    /// What is no address.
    pub fn address(&self) -> Result<SocketAddr, SettingsError> {
        let refuse = |rule| SettingsError::Setting { key: "service.listen".into(), value: self.listen.clone(), rule };
        let listen = self.listen.replacen("localhost:", "127.0.0.1:", 1);
        listen.parse().map_err(|_| refuse("it must be IP:PORT, such as 127.0.0.1:7420 or [::1]:7420"))
    }

    /// Name of the instance.
    pub fn name(&self) -> String {
        match self.instance.as_str() {
            "" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
            name => name.to_owned(),
        }
    }

    /// Where others reach an instance that is bound to this address.
    pub fn url(&self, bound: SocketAddr) -> String {
        match self.advertised_url.trim_end_matches('/') {
            "" => format!("http://{bound}"),
            url => url.to_owned(),
        }
    }
}
