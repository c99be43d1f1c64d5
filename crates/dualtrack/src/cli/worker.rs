//! `dualtrack worker …`.

use clap::{Args, Subcommand};

use super::fleet::{self, FleetCommand};
use super::{Common, Failure};

/// Arguments of `dualtrack worker`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct WorkerArgs {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: WorkerCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum WorkerCommand {
    #[command(flatten)]
    Fleet(FleetCommand),
}

/// Runs it.
pub async fn run(args: WorkerArgs) -> Result<(), Failure> {
    let WorkerArgs { common, command: WorkerCommand::Fleet(command) } = args;
    fleet::run(command, &common).await
}
