//! The command `dualtrack dev`: flags, the start line, signals.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use futures::future::{Either, select};
use tracing_subscriber::EnvFilter;

use service_host::settings::LayerArgs;
use service_host::{ProgramSettings as _, Signals, complain, print, say};

use super::{Dev, DevError, DevLog, LogKind, Settings};

/// Flags of `dualtrack dev`. Each one is a setting of the same name; see --print-config.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "Example:\n  dualtrack dev --data /var/lib/dualtrack --set coordinator.lease_ms=90000")]
pub struct DevArgs {
    /// Folder of log and store; one process at a time [default: ./dualtrack-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where REST answers; port 0 takes a free one [default: 127.0.0.1:7420]
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Serve addresses other than loopback, although nobody is authenticated yet
    #[arg(long)]
    insecure: bool,
    /// Partitions of the log, fixed for the life of the folder [default: 16]
    #[arg(long, value_name = "N")]
    partitions: Option<u16>,
    /// Coordinators in this process, 1 or 2 [default: 1]
    #[arg(long, value_name = "N")]
    instances: Option<u16>,
    #[command(flatten)]
    layers: LayerArgs,
    /// Print all settings as they would be used, and end
    #[arg(long)]
    print_config: bool,
}

impl DevArgs {
    /// The settings of all layers.
    ///
    /// # Errors
    /// [`DevError`] names what is not known or not allowed.
    pub fn settings(&self) -> Result<Settings, DevError> {
        let mut sources = self.layers.sources()?;
        let flags = &mut sources.flags;
        let mut flag = |key: &str, value: Option<String>| flags.extend(value.map(|value| (key.to_owned(), value)));
        flag("dev.data", self.data.as_ref().map(|data| data.to_string_lossy().into_owned()));
        flag("dev.listen", self.listen.clone());
        flag("dev.insecure", self.insecure.then(|| "true".to_owned()));
        flag("dev.partitions", self.partitions.map(|n| n.to_string()));
        flag("dev.instances", self.instances.map(|n| n.to_string()));
        let settings: Settings = sources.load()?;
        settings.validate()?;
        Ok(settings)
    }
}

/// Runs until a signal or a failure. Exit codes: 0 after a clean hand-over, 1 for a failure, 2 for
/// settings that cannot work, 128 + number when a second signal ends it at once.
/// `filter`: what is logged, whatever the settings say.
pub fn run(args: &DevArgs, filter: Option<EnvFilter>) -> ExitCode {
    let outcome = args.settings().and_then(|settings| {
        if args.print_config {
            return print(&settings.to_toml()).map_err(|why| DevError::Output(why.to_string()));
        }
        settings.telemetry.start(filter);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| DevError::Threads(why.to_string()))?;
        runtime.block_on(serve(&settings))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain("dualtrack", &why.to_string());
            ExitCode::from(if why.is_usage() { 2 } else { 1 })
        }
    }
}

async fn serve(settings: &Settings) -> Result<(), DevError> {
    // Before anything is open, so that a signal never meets a half-started process.
    let signals = Signals::listen().map_err(|why| DevError::Threads(why.to_string()))?;
    match settings.log.kind {
        LogKind::Embedded => until_stopped(settings, Dev::start(settings)?, signals).await,
        LogKind::Kafka => until_stopped(settings, Dev::start_on_kafka(settings).await?, signals).await,
    }
}

async fn until_stopped<L: DevLog>(settings: &Settings, mut dev: Dev<L>, mut signals: Signals) -> Result<(), DevError> {
    say(&start_line(settings, &dev));
    let began = {
        let ready = Box::pin(dev.ready());
        match select(ready, Box::pin(signals.received())).await {
            Either::Left((Ok(()), _)) => Ok(None),
            Either::Left((Err(why), _)) => Err(why),
            Either::Right((number, _)) => Ok(Some(number)),
        }
    };
    let ended = match began {
        Ok(None) => {
            say("ready\n");
            let failure = Box::pin(dev.failure());
            match select(failure, Box::pin(signals.received())).await {
                Either::Left((why, _)) => Err(why),
                Either::Right((number, _)) => Ok(number),
            }
        }
        Ok(Some(number)) => Ok(number),
        Err(why) => Err(why),
    };
    tracing::info!(
        "stopping: requests under way are answered, partitions handed over; a second signal ends it at once"
    );
    let stopped = match select(Box::pin(dev.stop()), Box::pin(signals.received())).await {
        Either::Left((stopped, _)) => stopped,
        Either::Right((number, _)) => std::process::exit(128 + number),
    };
    ended?;
    stopped?;
    tracing::info!("stopped");
    Ok(())
}

fn start_line<L: DevLog>(settings: &Settings, dev: &Dev<L>) -> String {
    let kept = if settings.archive.enabled {
        format!("data in {}", dev.folder.path().display())
    } else {
        "NOTHING IS KEPT (archive.enabled = false)".to_owned()
    };
    let kept = match settings.log.kind {
        LogKind::Embedded => kept,
        LogKind::Kafka => format!("{kept}, topic {} at {}", settings.log.topic, settings.log.bootstrap),
    };
    let urls = dev.urls().join(" and ");
    format!("dualtrack {} on {urls}, {kept}, {} partitions\n", env!("CARGO_PKG_VERSION"), settings.dev.partitions)
}
