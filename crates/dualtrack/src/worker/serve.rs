//! What ready-made workers share: the connection, the start-up line, and how they end.
//!
//! The first SIGTERM or Ctrl-C drains: nothing new is taken, what runs may go on for the time of
//! `--drain`, then it is told to end, and its failure is reported so that it is tried again elsewhere.
//! A second signal ends at once; leases run out then.

use std::time::Duration;

use futures::future::{Either, select};
use rest_client::ClientError;
use service_host::Signals;
use service_kit::{Clock as _, Metrics, SystemClock};
use spans::Spans;
use telemetry::{Exporting, Who};
use tokio::sync::{oneshot, watch};
use worker_sdk::http::{ConnectError, HttpWorker, RunError};
use worker_sdk::{Handlers, Worker};

use crate::cli::worker::ServeArgs;
use crate::cli::{Failure, print_line};

/// From the end of the drain time and the grace until reports that nobody takes are left alone, ms.
const DELIVERY_MS: u64 = 5_000;

/// When what runs is told to end because the worker does.
#[derive(Clone, Debug)]
pub struct Ending(watch::Receiver<u64>);

impl Ending {
    /// Ready once what runs must end.
    pub async fn ended(&self) {
        let mut at = self.0.clone();
        loop {
            let due = *at.borrow_and_update();
            let (changed, time) = (Box::pin(at.changed()), Box::pin(SystemClock.sleep_until(due)));
            match select(changed, time).await {
                Either::Left((Ok(()), _)) => {}
                Either::Left((Err(_), time)) => return time.await,
                Either::Right(_) => return,
            }
        }
    }
}

/// Says when.
#[derive(Debug)]
pub struct End(watch::Sender<u64>);

/// Both sides.
pub fn ending() -> (End, Ending) {
    let (end, ending) = watch::channel(u64::MAX);
    (End(end), Ending(ending))
}

/// A worker about to serve.
pub struct Serving {
    /// The server.
    pub url: String,
    /// What was asked for.
    pub args: ServeArgs,
    /// What runs tasks.
    pub handlers: Handlers,
    /// The same in words, for the start-up line.
    pub does: String,
    /// From SIGTERM to SIGKILL of what runs, ms.
    pub grace_ms: u64,
}

impl Serving {
    /// Works until it has done as many tasks as it should, was idle for as long as it may, or a signal
    /// has come and it is drained.
    pub async fn run(self, end: End) -> Result<(), Failure> {
        let name = self.args.name.clone().unwrap_or_else(default_name);
        let (spans, exporting) = self.export(&name)?;
        let worker = self.connect(&name, spans)?;
        let mut signals =
            Signals::listen().map_err(|why| Failure::Local(format!("cannot listen for signals: {why}")))?;
        // That nobody can read it is no reason not to work.
        let _ = print_line(&self.start_line(&name));
        let (drain, drained) = oneshot::channel::<()>();
        let working = Box::pin(worker.run(async move { drop(drained.await) }));
        let drain_ms = self.args.drain;
        let two_signals = Box::pin(async move {
            signals.received().await;
            let _ = print_line(&format!(
                "draining: what runs may go on for {}; a second signal ends at once",
                shown(drain_ms)
            ));
            end.0.send_replace(SystemClock.boot_ms().saturating_add(drain_ms));
            drop(drain);
            signals.received().await;
            end.0.send_replace(0);
        });
        let ended = select(working, two_signals).await;
        if let Some(exporting) = exporting {
            // It blocks, and nothing else is left to do. A collector that is away has been logged.
            let _ = tokio::task::spawn_blocking(move || exporting.end()).await;
        }
        match ended {
            Either::Left((outcome, _)) => outcome.map_err(refused),
            Either::Right(((), _)) => Err(Failure::Local(
                "ended at once: what ran is ended too, and handed out again when its lease is over".to_owned(),
            )),
        }
    }

    // Spans of what is run, if there is a collector.
    fn export(&self, name: &str) -> Result<(Spans, Option<Exporting>), Failure> {
        let Some(endpoint) = self.args.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty()) else {
            return Ok((Spans::default(), None));
        };
        let who = Who {
            service: "dualtrack-worker".to_owned(),
            instance: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let exported = Exporting::start(endpoint, &who, &Metrics::default());
        let (spans, exporting) = exported.map_err(|why| Failure::Usage(format!("--otlp-endpoint: {why}")))?;
        Ok((spans, Some(exporting)))
    }

    fn connect(&self, name: &str, spans: Spans) -> Result<HttpWorker, Failure> {
        let args = &self.args;
        let drain_within = args.drain.saturating_add(self.grace_ms).saturating_add(DELIVERY_MS);
        let queues = if args.queues.is_empty() { &args.types } else { &args.queues };
        let mut connect = Worker::connect(&self.url)
            .worker_id(name)
            .queues(queues.iter().cloned())
            .slots(args.slots)
            .handler_version(args.handler_version.clone())
            .handlers(self.handlers.clone())
            // The machine must not cut the grace of what runs short.
            .cancel_grace(Duration::from_millis(self.grace_ms.saturating_add(1_000)))
            .spans(spans)
            .drain_within(Duration::from_millis(drain_within));
        if let Some(folder) = &args.outbox {
            connect = connect.outbox(folder);
        }
        if let Some(tasks) = args.max_tasks {
            connect = connect.max_attempts(tasks);
        }
        if let Some(ms) = args.until_idle {
            connect = connect.end_when_idle(Duration::from_millis(ms));
        }
        connect.build().map_err(|why| match why {
            ConnectError::Outbox { .. } => Failure::Local(format!("--outbox: {why}")),
            ConnectError::Url(_) | ConnectError::Setting { .. } | ConnectError::Config(_) => {
                Failure::Usage(why.to_string())
            }
        })
    }

    fn start_line(&self, name: &str) -> String {
        let args = &self.args;
        let list = |names: &[task_events::Text]| names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
        let work = match (&args.queues[..], &args.types[..]) {
            ([], types) => list(types),
            (queues, []) => format!("everything in {}", list(queues)),
            (queues, types) => format!("{} in {}", list(types), list(queues)),
        };
        format!("worker {name} at {}: {} slots, {work}: {}", self.url, args.slots, self.does)
    }
}

/// Handlers for the types that were asked for, or for all.
pub fn handlers<F, R>(args: &ServeArgs, handler: F) -> Result<Handlers, Failure>
where
    F: Fn(worker_sdk::Context) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<bytes::Bytes, worker_sdk::HandlerError>> + Send + 'static,
{
    if args.types.is_empty() && args.queues.is_empty() {
        return Err(Failure::Usage("name the work: --type TYPE, or --queue QUEUE for all types in it".to_owned()));
    }
    if args.types.is_empty() {
        return Ok(Handlers::new().otherwise(handler));
    }
    Ok(args.types.iter().fold(Handlers::new(), |all, task_type| all.on(task_type.clone(), handler.clone())))
}

fn refused(why: RunError) -> Failure {
    match why {
        RunError::Refused(problem) => Failure::call(ClientError::Problem(problem), ""),
        RunError::Config(why) => Failure::Local(why.to_string()),
    }
}

// No two processes share it, and it says where to look.
fn default_name() -> task_events::Text {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", std::process::id()).into()
}

fn shown(ms: u64) -> String {
    if ms.is_multiple_of(1_000) { format!("{} s", ms / 1_000) } else { format!("{ms} ms") }
}
