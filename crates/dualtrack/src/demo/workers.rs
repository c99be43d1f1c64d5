//! The demo's worker pool: the SDK's runner on the in-process surface.

use std::future::Future;
use std::time::Duration;

use coordinator::surface::Surface;
use service_kit::{Shutdown, SystemClock};
use task_events::{Incarnation, TaskId, Text};
use tokio::task::JoinHandle;
use worker_protocol::{Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer};
use worker_sdk::machine::Config;
use worker_sdk::{CoordinatorPort, FileOutbox, Handlers, NoAnswer, Worker};

use super::DemoArgs;
use super::handler::Job;
use super::ledger::Ledger;
use super::payloads::DirPayloads;
use super::serve::{Progress, QUEUE};
use super::supervise::Places;

/// Workers in the pool, and handlers inside each at a time.
const WORKERS: usize = 2;
const SLOTS: u32 = 8;

struct InProcess(Surface<SystemClock>);

impl CoordinatorPort for InProcess {
    fn poll(&self, poll: Poll) -> impl Future<Output = Result<PollAnswer, NoAnswer>> + Send + 'static {
        let surface = self.0.clone();
        async move { Ok(surface.poll(poll).await) }
    }

    fn heartbeat(
        &self,
        _: TaskId,
        _: Text,
        heartbeat: Heartbeat,
    ) -> impl Future<Output = Result<HeartbeatAnswer, NoAnswer>> + Send + 'static {
        let surface = self.0.clone();
        async move { Ok(surface.heartbeat(heartbeat).await) }
    }

    fn report(
        &self,
        _: TaskId,
        _: Text,
        report: Report,
    ) -> impl Future<Output = Result<ReportAnswer, NoAnswer>> + Send + 'static {
        let surface = self.0.clone();
        async move { Ok(surface.report(report).await) }
    }
}

/// Starts the pool; it drains when shutdown is requested.
pub fn start(
    surface: Surface<SystemClock>,
    incarnation: Incarnation,
    args: &DemoArgs,
    places: &Places,
    ledger: Ledger,
    progress: Progress,
    shutdown: Shutdown,
) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
    let mut pool = Vec::new();
    for n in 1..=WORKERS {
        let job =
            Job { dir: args.dir.clone(), out: places.out.clone(), ledger: ledger.clone(), progress: progress.clone() };
        let handlers = Handlers::new().on(QUEUE, move |context| job.clone().run(context));
        // The wait stays well below the lease, which runs from the sending of the poll.
        let config = Config {
            slots: SLOTS,
            poll_wait_ms: 500,
            ..Config::new(format!("worker-{n}").into(), incarnation, vec![QUEUE])
        };
        let outbox = FileOutbox::open(&places.payloads.join(format!("outbox-{n}")))?;
        let payloads = DirPayloads::new(places.payloads.clone());
        let port = InProcess(surface.clone());
        let worker = Worker::with_outbox(port, payloads, worker_sdk::SystemClock, config, handlers, outbox)?;
        let stop = shutdown.clone();
        pool.push(tokio::spawn(async move { worker.run(stop.requested(), Duration::from_secs(5)).await }));
    }
    Ok(tokio::spawn(async move {
        for worker in pool {
            worker.await?;
        }
        Ok(())
    }))
}
