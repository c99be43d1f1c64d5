//! The shell around the machine: sends what it wants sent, runs handlers, keeps the outbox.
//!
//! One task drives everything; handlers run in tasks of their own and talk to it by messages. It
//! decides nothing: every rule is the machine's.

mod execute;
mod turn;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use spans::Spans;
use task_events::ExecutionId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use worker_protocol::Assignment;

use crate::context::{Guard, Holding, Told, Traced};
use crate::machine::{Config, EntryKey, HandlerEnd, Input, InvalidConfig, Machine, OutboxEntry};
use crate::payloads::Payloads;
use crate::{CoordinatorPort, Handlers, NoOutbox, Outbox, PayloadPort, WorkerClock};

/// Inputs taken in per turn at most, so that one sync of the outbox serves many reports.
const PER_TURN: usize = 256;

/// Memory is read for heartbeats at most so often, ms.
const MEMORY_EVERY_MS: u64 = 1_000;

/// A worker process: handlers, and the loop that runs them.
pub struct Worker<P, C> {
    port: Arc<P>,
    clock: C,
    handlers: Handlers,
    payloads: Payloads,
    machine: Machine,
    outbox: Option<Box<dyn Outbox>>,
    memory_read_at: u64,
    running: BTreeMap<ExecutionId, Running>,
    told: (mpsc::UnboundedSender<Told>, mpsc::UnboundedReceiver<Told>),
    requests: FuturesUnordered<BoxFuture<'static, Input>>,
    ends: FuturesUnordered<BoxFuture<'static, (ExecutionId, HandlerEnd)>>,
    /// Steps that may run once the owner knows of them.
    waiting: BTreeMap<ExecutionId, oneshot::Sender<()>>,
    /// Steps whose reports are to be kept in this turn.
    to_be_kept: Vec<oneshot::Sender<()>>,
    keep: Vec<OutboxEntry>,
    forget: Vec<EntryKey>,
    spans: Spans,
}

/// A handler inside.
struct Running {
    abort: AbortHandle,
    cancel: watch::Sender<bool>,
    until: watch::Sender<u64>,
    holding: Holding,
}

impl Running {
    fn stop(&self) {
        self.until.send_replace(0);
        self.abort.abort();
    }
}

// A loop that is dropped takes its handlers along: nobody would renew their leases.
impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.holding.move_lease(0);
    }
}

/// What woke the loop.
enum Wake {
    Told(Told),
    Ended(ExecutionId, HandlerEnd),
    Input(Input),
    Stop,
    Clock,
}

impl<P: CoordinatorPort, C: WorkerClock> Worker<P, C> {
    /// A worker without an outbox. Nothing happens before [`Worker::run`].
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn new(
        port: P,
        payloads: impl PayloadPort,
        clock: C,
        config: Config,
        handlers: Handlers,
    ) -> Result<Self, InvalidConfig> {
        Self::with_outbox(port, payloads, clock, config, handlers, (NoOutbox, Vec::new()))
    }

    /// A worker whose reports survive a crash of it; `outbox` as [`crate::FileOutbox::open`] gives it.
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn with_outbox(
        port: P,
        payloads: impl PayloadPort,
        clock: C,
        config: Config,
        handlers: Handlers,
        (outbox, undelivered): (impl Outbox, Vec<OutboxEntry>),
    ) -> Result<Self, InvalidConfig> {
        Ok(Self {
            port: Arc::new(port),
            payloads: Payloads::new(Arc::new(payloads), clock.clone()),
            machine: Machine::new(config, clock.now(), undelivered)?,
            clock,
            handlers,
            outbox: Some(Box::new(outbox)),
            memory_read_at: 0,
            running: BTreeMap::new(),
            told: mpsc::unbounded_channel(),
            requests: FuturesUnordered::new(),
            ends: FuturesUnordered::new(),
            waiting: BTreeMap::new(),
            to_be_kept: Vec::new(),
            keep: Vec::new(),
            forget: Vec::new(),
            spans: Spans::default(),
        })
    }

    /// The same worker, which tells what its handlers do as spans of their tasks' traces.
    #[must_use]
    pub fn tracing(self, spans: Spans) -> Self {
        Self { spans, ..self }
    }

    /// Works until `stop` is ready, then drains: takes nothing new, finishes what runs, delivers
    /// what waits, for `drain_within` at most. What is not delivered by then stays in the outbox.
    pub async fn run(mut self, stop: impl Future<Output = ()>, drain_within: Duration) {
        let mut stop = std::pin::pin!(stop.fuse());
        let mut drained_by = u64::MAX;
        loop {
            self.turn().await;
            // Asked to stop, or superseded by a newer process of this worker.
            if self.machine.is_draining() && self.machine.is_idle() {
                break;
            }
            let due = self.machine.next_due().unwrap_or(u64::MAX).min(drained_by);
            let timer = std::pin::pin!(self.clock.sleep_until(due));
            let wake = tokio::select! {
                biased;
                Some(told) = self.told.1.recv() => Wake::Told(told),
                Some((id, end)) = self.ends.next() => Wake::Ended(id, end),
                Some(input) = self.requests.next() => Wake::Input(input),
                () = &mut stop => Wake::Stop,
                () = timer => Wake::Clock,
            };
            if matches!(wake, Wake::Stop) {
                drained_by = self.clock.now().boot_ms.saturating_add(drain_within.as_millis() as u64);
            }
            if self.clock.now().boot_ms >= drained_by {
                break;
            }
            self.take(wake);
            self.take_what_is_ready();
        }
        self.running.clear();
        self.turn().await;
    }

    fn take(&mut self, wake: Wake) {
        match wake {
            Wake::Told(told) => self.take_told(told),
            Wake::Ended(id, end) => {
                // What the handler said before its end comes first.
                while let Ok(told) = self.told.1.try_recv() {
                    self.take_told(told);
                }
                self.running.remove(&id);
                self.waiting.remove(&id);
                self.give(Input::HandlerEnded { execution_id: id, end });
            }
            Wake::Input(input) => self.give(input),
            Wake::Stop => self.give(Input::Drain),
            Wake::Clock => {
                let now = self.clock.now().boot_ms;
                if now >= self.memory_read_at {
                    self.memory_read_at = now.saturating_add(MEMORY_EVERY_MS);
                    self.give(Input::Memory { percent: crate::memory::used_percent() });
                }
                self.give(Input::Tick);
            }
        }
    }

    fn take_what_is_ready(&mut self) {
        for _ in 0..PER_TURN {
            if let Ok(told) = self.told.1.try_recv() {
                self.take_told(told);
            } else if let Some(Some((id, end))) = self.ends.next().now_or_never() {
                self.take(Wake::Ended(id, end));
            } else if let Some(Some(input)) = self.requests.next().now_or_never() {
                self.give(input);
            } else {
                return;
            }
        }
    }

    fn take_told(&mut self, told: Told) {
        match told {
            Told::Started { execution_id, step, is_idempotent, go } => {
                self.waiting.insert(execution_id, go);
                self.give(Input::StepStarted { execution_id, step, is_idempotent });
            }
            Told::Done { execution_id, done, kept } => {
                self.to_be_kept.push(kept);
                self.give(Input::StepDone { execution_id, done });
            }
        }
    }

    fn give(&mut self, input: Input) {
        self.machine.handle(self.clock.now(), input);
    }

    fn traced(&self, assignment: &Assignment) -> Traced {
        let clock = self.clock.clone();
        let clocks = move || (clock.now().wall_ms.saturating_mul(1000), clock.boot_us());
        Traced::new(&self.spans, Arc::new(clocks), assignment)
    }

    fn guard(&self, until: watch::Receiver<u64>) -> Guard {
        let clock = self.clock.clone();
        Guard { until, boot_ms: Arc::new(move || clock.now().boot_ms) }
    }
}

#[cfg(test)]
mod tests;
