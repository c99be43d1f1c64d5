//! The noun `store`: the tables of the snapshot track on Cassandra or ScyllaDB, and its rows anew from the
//! log.

mod rebuild;

use std::future::Future;

use clap::{Args, Subcommand};
use dualtrack_coordinator::Settings;
use service_host::settings::LayerArgs;
use service_host::{Rule, SettingsError};
use snapshot_store::{CassandraConfig, ConnectError, Schema, check, migrate};

use super::failure::{complain, hint};
use super::{Failure, Output, say};

/// Name of the client, in the brokers' logs.
const CLIENT: &str = "dualtrack-store";

/// What the help says of exit codes.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; the tables are as this program needs them
  1  failed
  2  settings that cannot be used
  3  the tables are missing or of another program
  4  no node or broker answers";

/// Arguments of `dualtrack store`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
    /// How to print
    #[arg(long, global = true, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Debug, Subcommand)]
enum StoreCommand {
    /// Make the keyspace and the tables that are missing; safe to repeat, and while services run
    #[command(
        after_help = "Example:\n  dualtrack store migrate --set store.contact_points=10.0.0.1:9042 --set store.local_dc=dc1"
    )]
    Migrate {
        #[command(flatten)]
        layers: LayerArgs,
    },
    /// Say whether the tables are there; changes nothing
    #[command(after_help = "Example:\n  dualtrack store check --config coordinator.toml --output json")]
    Check {
        #[command(flatten)]
        layers: LayerArgs,
    },
    /// Write every row of the log anew, with the timestamps it had; also beside running services
    #[command(after_help = "Example:\n  dualtrack store rebuild --config coordinator.toml --partition 3")]
    Rebuild {
        #[command(flatten)]
        layers: LayerArgs,
        /// Only these partitions [default: all]
        #[arg(long, value_name = "N")]
        partition: Vec<u16>,
    },
}

/// Runs it.
///
/// # Errors
/// Settings, engines, tables.
pub fn run(args: &StoreArgs) -> Result<(), Failure> {
    match &args.command {
        StoreCommand::Migrate { layers } => {
            let config = store_of(&settings(layers)?)?;
            let schema = block_on(async { migrate(&config).await.map_err(refused) })?;
            let applied = schema.migrations.clone();
            tell(args.output, &config.keyspace, &schema, || match &applied[..] {
                [] => "nothing to do".to_owned(),
                applied => format!("applied {}", listed(applied)),
            })
        }
        StoreCommand::Check { layers } => {
            let config = store_of(&settings(layers)?)?;
            let schema = block_on(async { check(&config).await.map_err(refused) })?;
            tell(args.output, &config.keyspace, &schema, || match &schema.migrations[..] {
                [] => "as this program needs it".to_owned(),
                missing => format!("migrations are missing: {}", listed(missing)),
            })?;
            if schema.migrations.is_empty() {
                return Ok(());
            }
            hint("`dualtrack store migrate` applies them");
            Err(Failure::Said(3))
        }
        StoreCommand::Rebuild { layers, partition } => {
            let settings = settings(layers)?;
            let log = Rule::hold(settings.log.rules()).and_then(|()| settings.log.kafka(CLIENT)).map_err(unusable)?;
            block_on(rebuild::run(store_of(&settings)?, log, partition, args.output))
        }
    }
}

// Those of a coordinator: all services share one log and one store.
fn settings(layers: &LayerArgs) -> Result<Settings, Failure> {
    layers.sources().and_then(|sources| sources.load()).map_err(unusable)
}

fn store_of(settings: &Settings) -> Result<CassandraConfig, Failure> {
    Rule::hold(settings.store.rules()).and_then(|()| settings.store.cassandra()).map_err(unusable)
}

fn unusable(why: SettingsError) -> Failure {
    Failure::Usage(why.to_string())
}

fn tell(output: Output, keyspace: &str, schema: &Schema, words: impl FnOnce() -> String) -> Result<(), Failure> {
    let Schema { version, needed, migrations } = schema;
    match output {
        Output::Table => say(&format!("keyspace {keyspace}: schema version {version} of {needed}, {}", words())),
        Output::Json => {
            let told = serde_json::json!({
                "keyspace": keyspace, "version": version, "needed": needed, "migrations": migrations,
            });
            say(&told.to_string())
        }
    }
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

// The driver works on several threads.
fn block_on<T>(run: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|why| Failure::Local(format!("cannot start the network: {why}")))?.block_on(run)
}

/// A store that cannot be used, with what to do next.
pub(super) fn refused(why: ConnectError) -> Failure {
    let (code, next) = match &why {
        ConnectError::Refused(_) => return Failure::Usage(format!("store.{why}")),
        ConnectError::Unavailable(_) => {
            (4, "is it running? store.contact_points, store.user and store.ca_file say how to reach it")
        }
        // It says so itself.
        ConnectError::Schema { .. } => (3, ""),
    };
    complain(&why.to_string());
    if !next.is_empty() {
        hint(next);
    }
    Failure::Said(code)
}
