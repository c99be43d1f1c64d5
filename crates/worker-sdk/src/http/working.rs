//! A worker that is ready: it registers, works, measures the way to its coordinator.

use std::future::Future;
use std::time::Duration;

use futures::future::{Either, select};
use rest_contract::{Problem, Register, Registered};
use spans::Spans;
use task_events::Incarnation;

use super::HttpCoordinator;
use super::connect::OpenOutbox;
use crate::machine::{Config, InvalidConfig};
use crate::{Handlers, NoOutbox, SystemClock, Worker, WorkerClock};

/// First pause before registering is tried again, doubled up to the longest, ms.
const REGISTER_MIN_MS: u64 = 200;
const REGISTER_MAX_MS: u64 = 5_000;
/// Time between two pings, ms.
const PING_EVERY_MS: u64 = 5_000;
/// Of a lease, which runs from the sending of the poll, at most this part may pass in its wait.
const WAIT_PART_OF_LEASE: u64 = 4;

/// A worker that is ready to run.
pub struct HttpWorker {
    pub(super) coordinator: HttpCoordinator,
    pub(super) config: Config,
    pub(super) handlers: Handlers,
    pub(super) outbox: Option<OpenOutbox>,
    pub(super) drain_within: Duration,
    pub(super) spans: Spans,
}

impl HttpWorker {
    /// The transport, for reading the round-trip time while it runs.
    pub fn coordinator(&self) -> HttpCoordinator {
        self.coordinator.clone()
    }

    /// This process of the worker.
    pub fn incarnation(&self) -> Incarnation {
        self.config.incarnation
    }

    /// Registers, however long that takes, then works until `stop` is ready or a newer process of
    /// this worker was told of; finishes what runs and delivers what waits before it returns.
    ///
    /// # Errors
    /// The coordinator refuses this worker.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), RunError> {
        let mut stop = Box::pin(stop);
        let clock = SystemClock;
        let registered = match select(Box::pin(register(&self.coordinator, &self.config, clock)), &mut stop).await {
            Either::Left((registered, _)) => registered?,
            Either::Right(((), _)) => return Ok(()),
        };
        let wait_ms = registered.max_wait_ms.min(registered.lease_ms / WAIT_PART_OF_LEASE);
        self.config.poll_wait_ms = self.config.poll_wait_ms.min(wait_ms);
        tracing::info!(worker_id = %self.config.worker_id, instance = %registered.instance, "registered");
        let (port, payloads) = (self.coordinator.clone(), self.coordinator.clone());
        let worker = match self.outbox {
            Some(outbox) => Worker::with_outbox(port, payloads, clock, self.config, self.handlers, outbox)?,
            None => {
                let none = (NoOutbox, Vec::new());
                Worker::with_outbox(port, payloads, clock, self.config, self.handlers, none)?
            }
        };
        let working = Box::pin(worker.tracing(self.spans).run(stop, self.drain_within));
        match select(working, Box::pin(measure(&self.coordinator, clock))).await {
            Either::Left(((), _)) => Ok(()),
            Either::Right((never, _)) => match never {},
        }
    }
}

/// Why a worker ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The coordinator does not take this worker as it is.
    #[error("the coordinator refused this worker: {0}")]
    Refused(Box<Problem>),
    /// What the coordinator expects contradicts a setting.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
}

async fn register(coordinator: &HttpCoordinator, config: &Config, clock: SystemClock) -> Result<Registered, RunError> {
    let register = Register {
        worker_id: config.worker_id.clone(),
        incarnation: config.incarnation,
        handler_version: config.handler_version.clone(),
        queues: config.queues.clone(),
        slots: config.slots,
    };
    let mut pause = REGISTER_MIN_MS;
    loop {
        match coordinator.register(&register).await {
            Ok(Ok(registered)) => return Ok(registered),
            Ok(Err(problem)) => return Err(RunError::Refused(Box::new(problem))),
            Err(why) => tracing::warn!(%why, pause, "not registered yet"),
        }
        clock.sleep_until(clock.now().boot_ms + pause).await;
        pause = (pause * 2).min(REGISTER_MAX_MS);
    }
}

async fn measure(coordinator: &HttpCoordinator, clock: SystemClock) -> std::convert::Infallible {
    loop {
        if let Err(why) = coordinator.ping().await {
            tracing::debug!(%why, "ping without an answer");
        }
        clock.sleep_until(clock.now().boot_ms + PING_EVERY_MS).await;
    }
}
