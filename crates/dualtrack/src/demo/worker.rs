//! One worker process of the demo: the SDK over HTTP, with its outbox on disk.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use service_host::Signals;
use worker_sdk::Worker;

use super::files::Places;
use super::gate::Gate;
use super::handler::Job;
use super::ledger::Ledger;
use super::{DemoArgs, QUEUE};

/// Handlers at a time: eight of them must be inside their second step when the kill comes.
pub const SLOTS: u32 = 8;

/// Works until SIGTERM or Ctrl-C, then drains.
///
/// # Errors
/// The settings cannot work, or the server refuses this worker.
pub async fn work(args: &DemoArgs, name: &str) -> anyhow::Result<()> {
    let places = Places::below(&args.work);
    let ledger = Ledger::open(&places.ledger)?;
    let gate = Gate::new(name, args.hold_after, places.go.clone(), ledger.clone());
    let job = Job { dir: args.dir.clone(), out: places.out.clone(), ledger, gate };
    let outbox: PathBuf = places.outboxes.join(name);
    let (first, others) = args.url.split_first().context("--url is missing")?;
    let worker = others
        .iter()
        .fold(Worker::connect(first), |worker, url| worker.also_at(url))
        .worker_id(name)
        .slots(SLOTS)
        .handler(QUEUE, move |context| job.clone().run(context))
        .outbox(outbox)
        .poll_wait(Duration::from_millis(500))
        .drain_within(Duration::from_secs(5))
        .build()?;
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let stop = async {
        signals.received().await;
    };
    worker.run(stop).await.with_context(|| format!("worker {name}"))
}
