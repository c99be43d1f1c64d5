//! `dualtrack version`: of this program, and who answers at the server.

use std::time::Duration;

use clap::Args;
use rest_client::{Client, Timeouts};
use serde::Serialize;
use serde_json::Value;

use super::screen::plain;
use super::{Common, Failure, Output, say};

/// How long a server may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// Arguments of `dualtrack version`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  dualtrack version --url http://127.0.0.1:7420")]
pub struct VersionArgs {
    #[command(flatten)]
    common: Common,
}

/// Who answered.
#[derive(Debug, Serialize)]
struct Versions {
    client: &'static str,
    server: Option<Server>,
}

#[derive(Debug, Serialize)]
struct Server {
    url: String,
    /// Absent if it does not say.
    version: Option<String>,
    /// What it says of its health: JSON, or whatever else stands at that URL.
    health: Value,
}

impl Server {
    fn new(url: &str, health: &Value) -> Self {
        let version = health.get("version").and_then(Value::as_str).map(str::to_owned);
        Self { url: url.to_owned(), version, health: health.clone() }
    }
}

/// Prints both; what is known of this program also if no server answers.
///
/// # Errors
/// No server answers.
pub async fn run(args: VersionArgs) -> Result<(), Failure> {
    let common = args.common;
    let mut versions = Versions { client: env!("CARGO_PKG_VERSION"), server: None };
    let timeouts = Timeouts { connect: PATIENCE, answer: PATIENCE };
    let client = Client::with_timeouts(&common.url()?, timeouts).map_err(|error| Failure::call(error, ""))?;
    if common.output == Output::Table {
        say(&format!("client {}", versions.client))?;
    }
    let health = client.health().await;
    versions.server = health.as_ref().ok().map(|health| Server::new(client.url(), &health.body));
    match &versions.server {
        Some(Server { url, version, health }) if common.output == Output::Table => {
            let version = version.as_deref().unwrap_or("unknown");
            say(&format!("server {}", plain(&format!("{version} at {url}: {health}"))))?;
        }
        None if common.output == Output::Table => {}
        Some(_) | None => common.print(&versions, |_, _| String::new())?,
    }
    health.map(drop).map_err(|error| Failure::call(error, ""))
}
