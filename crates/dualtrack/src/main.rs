//! `dualtrack`: the command line.

mod bench;
mod cli;
mod demo;
mod worker;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use dualtrack::dev;
use tracing_subscriber::EnvFilter;

/// The system's allocator took a fifth of the server's CPU time (docs/benchmarks.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Event-sourced, resumable, auditable task execution.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything in this process: REST, durable log and store in one folder
    Dev(Box<dev::DevArgs>),
    /// Create, read, cancel and replay tasks
    Task(Box<cli::task::TaskArgs>),
    /// The log as it grows
    Events(Box<cli::events::EventsArgs>),
    /// Tasks of a trace
    Trace(cli::trace::TraceArgs),
    /// Run a program or call a URL for each task; see workers and drain them
    Worker(Box<cli::worker::WorkerArgs>),
    /// See queues, pause and resume them
    Queue(cli::fleet::QueueArgs),
    /// See which acceptance rules are active and who knows them; activate newer ones
    Rules(cli::rules::RulesArgs),
    /// Tasks that wait for somebody's decision
    Review(Box<cli::trace::ReviewArgs>),
    /// Tables of the snapshot track on Cassandra, and its rows anew from the log
    Store(Box<cli::store::StoreArgs>),
    /// Make and check the topic of the event track on Kafka
    Topic(Box<cli::topic::TopicArgs>),
    /// Check and print the settings of a program
    Config(Box<cli::config::ConfigArgs>),
    /// Version of this program, and who answers at the server
    Version(cli::version::VersionArgs),
    /// Completions for a shell, on standard output
    #[command(
        after_help = "Example:\n  dualtrack completions bash > ~/.local/share/bash-completion/completions/dualtrack"
    )]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Run the main job on real input: one task per file, killed half-way, resumed, proved complete
    Demo(Box<demo::DemoArgs>),
    /// Take the figures of this machine over HTTP, with real processes, each beside a baseline
    Bench(Box<bench::BenchArgs>),
}

impl Command {
    // What is logged unless DUALTRACK_LOG says otherwise.
    const fn log_level(&self) -> &'static str {
        match self {
            Self::Dev(_) => "info,fjall=warn,lsm_tree=warn",
            // Whoever watches a worker wants to know when its server is away.
            Self::Worker(_) => "warn",
            Self::Task(_)
            | Self::Events(_)
            | Self::Trace(_)
            | Self::Queue(_)
            | Self::Rules(_)
            | Self::Review(_)
            | Self::Store(_)
            | Self::Topic(_)
            | Self::Config(_)
            | Self::Version(_)
            | Self::Completions { .. }
            | Self::Demo(_)
            | Self::Bench(_) => "error",
        }
    }
}

impl Command {
    // How log lines look; of a server its settings say so.
    const fn log_format(&self) -> Option<telemetry::LogFormat> {
        match self {
            Self::Dev(_) => None,
            Self::Worker(args) => Some(args.log_format()),
            Self::Task(_)
            | Self::Events(_)
            | Self::Trace(_)
            | Self::Queue(_)
            | Self::Review(_)
            | Self::Rules(_)
            | Self::Store(_)
            | Self::Topic(_)
            | Self::Config(_)
            | Self::Version(_)
            | Self::Completions { .. }
            | Self::Demo(_)
            | Self::Bench(_) => Some(telemetry::LogFormat::Text),
        }
    }
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(Cli { command }) => command,
        Err(said) if said.use_stderr() => said.exit(),
        // Help and version are output too.
        Err(said) => return cli::end(said.print().or_else(cli::unwritten)),
    };
    let level = command.log_level();
    let named = || EnvFilter::try_from_env("DUALTRACK_LOG").ok();
    if let Some(format) = command.log_format() {
        let filter = named().unwrap_or_else(|| EnvFilter::new(level));
        telemetry::log::start(format, filter, std::io::stderr().is_terminal());
    }
    match command {
        Command::Dev(args) => dev::run(&args, named()),
        Command::Task(args) => cli::end(cli::block_on(cli::task::run(*args))),
        Command::Events(args) => cli::end(cli::block_on(cli::events::run(*args))),
        Command::Trace(args) => cli::end(cli::block_on(cli::trace::run(args))),
        Command::Worker(args) => cli::worker::run(*args),
        Command::Queue(args) => cli::end(cli::block_on(cli::fleet::queue(args))),
        Command::Rules(args) => cli::end(cli::block_on(cli::rules::run(args))),
        Command::Review(args) => cli::end(cli::block_on(cli::trace::review(*args))),
        Command::Store(args) => cli::end(cli::store::run(&args)),
        Command::Topic(args) => cli::end(cli::block_on(cli::topic::run(*args))),
        Command::Config(args) => cli::config::run(&args),
        Command::Version(args) => cli::end(cli::block_on(cli::version::run(args))),
        Command::Completions { shell } => {
            // Not straight to standard output: a reader that goes away would be a panic.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "dualtrack", &mut script);
            cli::end(cli::say(String::from_utf8_lossy(&script).trim_end()))
        }
        Command::Demo(args) => ended(demo::run(*args)),
        Command::Bench(args) => ended(bench::run(&args)),
    }
}

fn ended(outcome: anyhow::Result<()>) -> ExitCode {
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
