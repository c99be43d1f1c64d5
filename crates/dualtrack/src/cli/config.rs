//! `dualtrack config`: what a program would be started with, and whether it could be.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use dualtrack::dev;
use dualtrack_auto_replay::ReplayProgram;
use dualtrack_coordinator::CoordinatorProgram;
use dualtrack_task_engine::EngineProgram;
use service_host::settings::LayerArgs;
use service_host::{EngineError, Program, ProgramSettings, RunError, Setting, check, complain, print, tell_rules};

/// Arguments of `dualtrack config`.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ConfigCommand {
    /// Hold the settings against every rule; exit code 2 if one does not hold
    #[command(after_help = "Example:\n  dualtrack config check --service coordinator --config production.toml --live")]
    Check {
        #[command(flatten)]
        of: Of,
        /// Look at the engines, too; exit code 3 if one is not as it must be
        #[arg(long)]
        live: bool,
    },
    /// Print each setting, its value, and where that came from
    #[command(after_help = "Example:\n  DUALTRACK_LOCK__TTL_MS=20000 dualtrack config print --service coordinator")]
    Print {
        #[command(flatten)]
        of: Of,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Debug, Args)]
struct Of {
    /// Whose settings
    #[arg(long, value_enum, default_value = "dev")]
    service: Service,
    #[command(flatten)]
    layers: LayerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Service {
    /// `dualtrack dev`
    Dev,
    /// `dualtrack-coordinator`
    Coordinator,
    /// `dualtrack-task-engine`
    TaskEngine,
    /// `dualtrack-auto-replay`
    AutoReplay,
}

/// Runs it. Exit codes: 0; 1 for an answer that cannot be printed; 2 for settings that cannot work, 3 for
/// engines that are not as they must be, 4 for engines that cannot be reached.
pub fn run(args: &ConfigArgs) -> ExitCode {
    let outcome = match &args.command {
        ConfigCommand::Check { of, live } => check_of(of, *live),
        ConfigCommand::Print { of, json } => print_of(of, *json),
    };
    outcome.unwrap_or_else(|why: RunError| {
        complain("dualtrack", &why.to_string());
        match why {
            RunError::Settings(_) | RunError::Otlp(_) | RunError::Engine(EngineError::Settings(_)) => ExitCode::from(2),
            RunError::Engine(why) if why.is_final() => ExitCode::from(3),
            RunError::Output(_) => ExitCode::from(1),
            RunError::Engine(_)
            | RunError::Listen { .. }
            | RunError::Threads(_)
            | RunError::Ended { .. }
            | RunError::Late(_) => ExitCode::from(4),
        }
    })
}

fn check_of(Of { service, layers }: &Of, live: bool) -> Result<ExitCode, RunError> {
    match service {
        Service::Dev => {
            let settings: dev::Settings = layers.sources()?.load()?;
            Ok(if tell_rules("dualtrack", &settings.rules())? { ExitCode::SUCCESS } else { ExitCode::from(2) })
        }
        Service::Coordinator => check_program::<CoordinatorProgram>(layers, live),
        Service::TaskEngine => check_program::<EngineProgram>(layers, live),
        Service::AutoReplay => check_program::<ReplayProgram>(layers, live),
    }
}

fn check_program<P: Program>(layers: &LayerArgs, live: bool) -> Result<ExitCode, RunError> {
    check::<P>(&layers.sources()?.load()?, live)
}

fn print_of(Of { service, layers }: &Of, json: bool) -> Result<ExitCode, RunError> {
    let sources = layers.sources()?;
    let settings = match service {
        Service::Dev => sources.explain::<dev::Settings>(),
        Service::Coordinator => sources.explain::<dualtrack_coordinator::Settings>(),
        Service::TaskEngine => sources.explain::<dualtrack_task_engine::Settings>(),
        Service::AutoReplay => sources.explain::<dualtrack_auto_replay::Settings>(),
    }?;
    print(&if json { Setting::as_json(&settings) } else { Setting::as_toml(&settings) })?;
    Ok(ExitCode::SUCCESS)
}
