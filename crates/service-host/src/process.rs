//! A service program from its arguments to its exit code: settings, log of the process, listener,
//! signals, and an end within 15 s of the first one.

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser};
use futures::future::{Either, select};
use service_kit::{Clock as _, Entropy as _, Metrics, Shutdown, SystemClock, SystemEntropy, within};
use spans::Spans;
use task_events::Incarnation;
use telemetry::{Exporting, OtlpError};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::engines::{EngineError, connected};
use crate::print::{complain, print, say, tell_findings, tell_rules};
use crate::prover::{Finding, accept};
use crate::sections::{ServiceSection, TelemetrySection};
use crate::settings::{LayerArgs, ProgramSettings, Setting, SettingsError};
use crate::signals::Signals;

/// Time from the first signal to the end of the process at most, ms: design.md's 15 s with a second
/// for what is left to say.
const STOP_MS: u64 = 14_000;

/// What the runtime's threads get to end, ms.
const THREADS_MS: u64 = 500;

/// What the help says of exit codes.
const EXIT_CODES: &str = "\
Exit codes:
  0  ended as asked: everything handed over
  1  failed: an engine cannot be reached, the port is taken, the service cannot go on
  2  the settings cannot work; starting again changes nothing
  3  an engine is not as it must be; starting again changes nothing
  128 + number  ended at once by a second signal

Settings: `--print-config` shows each with its value and where that came from.";

/// A program around one service.
pub trait Program: 'static {
    /// Its name.
    const NAME: &'static str;
    /// What it does, in one line.
    const ABOUT: &'static str;
    /// Its settings.
    type Settings: ProgramSettings + Send + Sync + 'static;

    /// The sections that every program has.
    fn common(settings: &Self::Settings) -> (&ServiceSection, &TelemetrySection);

    /// What the engines are like that it would run on; empty: as they must be.
    fn prove(settings: &Self::Settings) -> impl Future<Output = Result<Vec<Finding>, EngineError>> + Send;

    /// Connects to engines that were just proven, and serves until shutdown is requested; then hands
    /// over, in order.
    fn serve(started: Started<Self::Settings>) -> impl Future<Output = Result<(), RunError>> + Send + 'static;
}

/// What a program starts with.
pub struct Started<S> {
    /// Settings, validated.
    pub settings: S,
    /// Bound before anything else is opened: a port that is taken costs nobody a recovery.
    pub listener: TcpListener,
    /// Name of the instance.
    pub instance: String,
    /// Where others reach it.
    pub url: String,
    /// This start of the process.
    pub incarnation: Incarnation,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Where spans go.
    pub spans: Spans,
    /// Requested by the first signal.
    pub shutdown: Shutdown,
}

impl<S> Started<S> {
    /// Says on standard output that it serves, where, and on what.
    pub fn announce(&self, program: &str, on: &str) {
        let Self { instance, url, .. } = self;
        say(&format!("{program} {} ({instance}) on {url}, {on}\n", env!("CARGO_PKG_VERSION")));
    }
}

/// Why a program does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Spans cannot be exported.
    #[error("settings: {0}")]
    Otlp(#[from] OtlpError),
    /// An engine is away, or not as it must be.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The port is not to be had.
    #[error("cannot listen on {address}: {why}; set service.listen to another one (port 0 takes a free one)")]
    Listen {
        /// Address and port.
        address: SocketAddr,
        /// By the system.
        why: String,
    },
    /// What was asked for cannot be printed.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] std::io::Error),
    /// The system gives no threads.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A part of the program ended although nobody asked it to.
    #[error("{part} ended: {why}")]
    Ended {
        /// Which.
        part: &'static str,
        /// Why.
        why: String,
    },
    /// Not everything ended in time.
    #[error("did not end in time: {}; nothing is lost, whoever comes next reads it from the log", .0.join(", "))]
    Late(Vec<&'static str>),
}

impl RunError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Otlp(_) | Self::Engine(EngineError::Settings(_)) => 2,
            Self::Engine(error) if error.is_final() => 3,
            Self::Engine(_)
            | Self::Listen { .. }
            | Self::Output(_)
            | Self::Threads(_)
            | Self::Ended { .. }
            | Self::Late(_) => 1,
        }
    }
}

#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    layers: LayerArgs,
    /// Where HTTP answers; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Name of this instance, its own among those of the service
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// Print each setting, its value and where that came from, and end
    #[arg(long)]
    print_config: bool,
    /// Hold the settings against every rule, and end
    #[arg(long)]
    check_config: bool,
    /// With --check-config: look at the engines, too
    #[arg(long, requires = "check_config")]
    live: bool,
}

/// Runs a program; what `main` returns.
pub fn run<P: Program>() -> ExitCode {
    let command = Cli::command().name(P::NAME).about(P::ABOUT);
    let parsed = Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|why| why.exit());
    match parsed.run.execute::<P>() {
        Ok(code) => code,
        Err(why) => {
            complain(P::NAME, &why.to_string());
            ExitCode::from(why.exit_code())
        }
    }
}

impl RunArgs {
    fn execute<P: Program>(&self) -> Result<ExitCode, RunError> {
        let mut sources = self.layers.sources()?;
        let named = [("service.listen", &self.listen), ("service.instance", &self.instance)];
        let named = named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        sources.flags.extend(named);
        if self.print_config {
            print(&Setting::as_toml(&sources.explain::<P::Settings>()?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let settings: P::Settings = sources.load()?;
        if self.check_config {
            return check::<P>(&settings, self.live);
        }
        settings.validate()?;
        P::common(&settings).1.start(None);
        serve::<P>(settings)
    }
}

/// Prints every rule, with `live` also what the engines are like. The code is 0 if all is well, else 2
/// for settings and 3 for engines.
///
/// # Errors
/// An engine cannot be looked at.
pub fn check<P: Program>(settings: &P::Settings, live: bool) -> Result<ExitCode, RunError> {
    if !tell_rules(P::NAME, &settings.rules())? {
        return Ok(ExitCode::from(2));
    }
    if live {
        let runtime = runtime(P::NAME, 2)?;
        let findings = runtime.block_on(P::prove(settings));
        runtime.shutdown_timeout(Duration::from_millis(THREADS_MS));
        if !tell_findings(P::NAME, &findings?)? {
            return Ok(ExitCode::from(3));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn serve<P: Program>(settings: P::Settings) -> Result<ExitCode, RunError> {
    let service = P::common(&settings).0;
    let (address, threads) = (service.address()?, service.worker_threads);
    let (instance, advertised) = (service.name(), service.clone());
    let metrics = Metrics::default();
    let (spans, exporting) = P::common(&settings).1.export(P::NAME, &instance, &metrics)?;
    let runtime = runtime(P::NAME, threads)?;
    let ended = runtime.block_on(async {
        let taken = |why: std::io::Error| RunError::Listen { address, why: why.to_string() };
        // Before anything is open, so that a signal never meets a half-started process.
        let signals = Signals::listen().map_err(|why| RunError::Threads(why.to_string()))?;
        let listener = TcpListener::bind(address).await.map_err(taken)?;
        let url = advertised.url(listener.local_addr().map_err(taken)?);
        let shutdown = Shutdown::default();
        let incarnation = Incarnation::new(SystemClock.wall_ms(), SystemEntropy::default().next_u64() as u32);
        let (shutdown, asked) = (shutdown.clone(), shutdown);
        let started = Started { settings, listener, instance, url, incarnation, metrics, spans, shutdown };
        // On a task of its own, so that the wait for signals stands above whatever it does.
        until_ended(tokio::spawn(prove_and_serve::<P>(started)), signals, asked).await
    });
    runtime.shutdown_timeout(Duration::from_millis(THREADS_MS));
    // Of a collector that is away was told when it went.
    let _ = exporting.map(Exporting::end);
    ended?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

// No program serves on engines that are not as they must be.
async fn prove_and_serve<P: Program>(started: Started<P::Settings>) -> Result<(), RunError> {
    let (shutdown, settings) = (&started.shutdown, &started.settings);
    let findings = connected(shutdown, || P::prove(settings)).await?;
    accept(findings)?;
    P::serve(started).await
}

fn runtime(name: &str, threads: usize) -> Result<Runtime, RunError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build();
    runtime.map_err(|why| RunError::Threads(why.to_string()))
}

async fn until_ended(
    serving: JoinHandle<Result<(), RunError>>,
    mut signals: Signals,
    shutdown: Shutdown,
) -> Result<(), RunError> {
    let serving = match select(serving, Box::pin(signals.received())).await {
        Either::Left((ended, _)) => return flat(ended),
        Either::Right((_, serving)) => serving,
    };
    tracing::info!(
        "stopping: partitions are handed over, requests under way answered; a second signal ends it at once"
    );
    shutdown.request();
    let stopping = within(&SystemClock, STOP_MS, serving);
    match select(Box::pin(stopping), Box::pin(signals.received())).await {
        Either::Left((Some(ended), _)) => flat(ended),
        Either::Left((None, _)) => Err(RunError::Late(vec!["the service"])),
        Either::Right((number, _)) => std::process::exit(128 + number),
    }
}

fn flat(ended: Result<Result<(), RunError>, tokio::task::JoinError>) -> Result<(), RunError> {
    let defect = "it panicked: a defect, please report it".to_owned();
    ended.unwrap_or(Err(RunError::Ended { part: "the service", why: defect }))
}
