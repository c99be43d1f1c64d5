//! `dualtrack version`: of this program, and who answers at the server.

use std::time::Duration;

use clap::Args;
use rest_client::{Client, Timeouts};

use super::{Common, Failure, say};

/// How long a server may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// Arguments of `dualtrack version`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  dualtrack version --url http://127.0.0.1:7420")]
pub struct VersionArgs {
    #[command(flatten)]
    common: Common,
}

/// Prints both; that no server answers is no failure.
pub async fn run(args: VersionArgs) -> Result<(), Failure> {
    say(&format!("client {}", env!("CARGO_PKG_VERSION")));
    let timeouts = Timeouts { connect: PATIENCE, answer: PATIENCE };
    let client = Client::with_timeouts(&args.common.url()?, timeouts).map_err(|error| Failure::call(error, ""))?;
    match client.health().await {
        Ok(health) => say(&format!("server {}: {}", client.url(), health.body)),
        Err(why) => say(&format!("server {}: none ({why})", client.url())),
    }
    Ok(())
}
