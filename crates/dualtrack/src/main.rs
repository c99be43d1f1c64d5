//! `dualtrack`: the command line.

mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Event-sourced, resumable, auditable task execution.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the main job on real input: one task per file, killed half-way, resumed, proved complete
    Demo(Box<demo::DemoArgs>),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error")),
        )
        .with_writer(std::io::stderr)
        .init();
    let outcome = match Cli::parse().command {
        Command::Demo(args) => demo::run(*args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say_error(&why);
            ExitCode::FAILURE
        }
    }
}

// On stderr, with every cause, for people and for scripts alike.
#[expect(clippy::print_stderr, reason = "the one place where the program says why it failed")]
fn say_error(why: &anyhow::Error) {
    eprintln!("dualtrack: {why:#}");
}
