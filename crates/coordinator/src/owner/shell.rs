//! The thin shell around [`Owner`]: carries inputs and effects between it and the ports.
//!
//! One future per owned partition, without spawning, so that a simulator can run it on one thread
//! and crash it at any await by dropping it.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use assignment_lock::AssignmentLock;
use event_log::{EventLog, LogError};
use fold_start::{LoadError, patient};
use futures::channel::oneshot;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream as _};
use hashbrown::HashMap;
use service_kit::{Clock, Metrics};
use snapshot_store::{CheckpointName, SnapshotStore};
use spans::Spans;
use task_events::{PartitionId, SUPPORTED_RULES};

use super::freeze::Freeze;
use super::inbox::Inbox;
use super::loading::load_start;
use super::waiting::{Event, Reading, next_events, read, reopen, until_lost};
use super::{Answer, Identity, Input, Now, Owner, OwnerConfig, OwnerRules, Stop, Token};
use crate::metrics::ShellMetrics;

/// The ports of an owner.
#[derive(Clone)]
pub struct Ports<L, S, K, C> {
    /// Topic.
    pub log: L,
    /// Snapshot track.
    pub store: S,
    /// Locks.
    pub lock: K,
    /// Clocks.
    pub clock: C,
}

/// What a partition's owner is started with.
pub struct Setup {
    /// Partition.
    pub partition: PartitionId,
    /// Settings, validated.
    pub cfg: OwnerConfig,
    /// [`OwnerRules::STANDARD`] outside simulations.
    pub rules: OwnerRules,
    /// Rules of the fold: standard outside simulations.
    pub fold_rules: &'static task_core::Rules,
    /// Who this process is.
    pub identity: Identity,
    /// Number of this start within the process, from 1.
    pub number: u64,
    /// Random number.
    pub random: u64,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Where spans go.
    pub spans: Spans,
    /// Where a test may stop this owner's thread.
    pub freeze: Freeze,
}

/// How an owner ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// Everything settled and handed over.
    Drained,
    /// The partition is somebody else's.
    Lost,
    /// The reader must not go on: leave the group.
    Stopped(Stop),
    /// The log or the checkpoints cannot be read.
    Unreadable(String),
}

pub(super) type Call = BoxFuture<'static, Option<Input>>;

pub(super) struct Shell<L: EventLog, S, K, C> {
    pub(super) ports: Ports<L, S, K, C>,
    pub(super) partition: PartitionId,
    owner: Owner,
    calls: FuturesUnordered<Call>,
    pub(super) replies: HashMap<Token, oneshot::Sender<Answer>, foldhash::fast::FixedState>,
    pub(super) metrics: Metrics,
    pub(super) meters: ShellMetrics,
    pub(super) spans: Spans,
    freeze: Freeze,
}

/// Owns a partition until it is drained, lost or stopped. Never returns while it may still decide.
pub async fn run_partition<L, S, K, C>(ports: Ports<L, S, K, C>, setup: Setup, mut inbox: Inbox) -> Exit
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    let partition = setup.partition;
    let (start, published) = {
        let loading = load_start(&ports, &setup);
        match until_lost(loading, &mut inbox).await {
            None => return Exit::Lost,
            Some(Ok(loaded)) => loaded,
            Some(Err(LoadError::UnknownRules { at, version, .. })) => {
                let stop = Stop::UnknownRules { version, offset: at, known: SUPPORTED_RULES };
                setup.metrics.alarm("reader_stopped", stop.to_string());
                return Exit::Stopped(stop);
            }
            Some(Err(why)) => return Exit::Unreadable(why.to_string()),
        }
    };
    let from = start.fold.next_offset;
    let owner = Owner::new(setup.cfg, setup.rules, setup.identity, start).tracing(setup.spans.is_on());
    let shell = Shell {
        ports,
        partition,
        owner,
        calls: FuturesUnordered::new(),
        replies: HashMap::default(),
        meters: ShellMetrics::new(&setup.metrics),
        spans: setup.spans,
        metrics: setup.metrics,
        freeze: setup.freeze,
    };
    let tail = {
        let opening = patient(&shell.ports.clock, || shell.ports.log.tail(partition, from));
        match until_lost(opening, &mut inbox).await {
            None => return Exit::Lost,
            Some(Ok(tail)) => tail,
            Some(Err(why)) => return Exit::Unreadable(why.to_string()),
        }
    };
    shell.run(tail, inbox, published).await
}

impl<L, S, K, C> Shell<L, S, K, C>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    async fn run(mut self, tail: L::Tail, mut inbox: Inbox, published: Vec<CheckpointName>) -> Exit {
        let effects = self.owner.handle(self.now(), Input::Checkpoints(published));
        if let Some(exit) = self.carry_out(effects) {
            return exit;
        }
        let mut reading = read(tail);
        let mut wake = self.owner.next_wake(self.now());
        let mut sleep = self.ports.clock.sleep_until(wake).boxed();
        let mut turn = 0u64;
        loop {
            self.freeze.hold_here();
            inbox.show(&self.owner);
            let next = self.owner.next_wake(self.now());
            if next < wake || wake <= self.ports.clock.boot_ms() {
                wake = next;
                sleep = self.ports.clock.sleep_until(wake).boxed();
            }
            turn = turn.wrapping_add(1);
            let events = next_events((&mut inbox, turn), &mut self.calls, &mut reading, &mut sleep).await;
            if events.iter().any(|event| matches!(event, Event::Ask(..))) {
                self.freeze.asked();
            }
            // A thread that was stopped inside the wait must not act on what it held before.
            self.freeze.hold_here();
            let mut inputs = Vec::with_capacity(events.len());
            for event in events {
                match event {
                    Event::Lost => return Exit::Lost,
                    Event::Unreadable(why) => return Exit::Unreadable(why),
                    Event::Nothing => {}
                    Event::Input(input) => inputs.push(input),
                    Event::Ask(token, command, reply) => {
                        self.replies.insert(token, reply);
                        inputs.push(Input::Command(token, *command));
                    }
                    Event::Tail(tail, Ok(records)) => {
                        reading = read(tail);
                        inputs.push(Input::Records(records));
                    }
                    Event::Tail(_, Err(LogError::Unavailable(_))) => reading = self.reopen(),
                    Event::Tail(_, Err(why)) => return Exit::Unreadable(why.to_string()),
                }
            }
            if inputs.is_empty() {
                continue;
            }
            let effects = self.owner.handle_all(self.now(), inputs);
            self.freeze.show(self.owner.fold());
            if let Some(exit) = self.carry_out(effects) {
                if exit == Exit::Drained {
                    self.finish_calls().await;
                }
                return exit;
            }
        }
    }

    // Nothing of this turn advances the fold behind the record that could not be read.
    fn reopen(&self) -> Reading<L::Tail> {
        let (log, clock) = (self.ports.log.clone(), self.ports.clock.clone());
        reopen(log, clock, self.partition, self.owner.fold().next_offset)
    }

    // What a clean hand-over leaves, its checkpoint above all, is written by calls under way.
    async fn finish_calls(&mut self) {
        let until = self.ports.clock.boot_ms().saturating_add(HAND_OVER.as_millis() as u64);
        let mut sleep = self.ports.clock.sleep_until(until).boxed();
        let calls = &mut self.calls;
        futures::future::poll_fn(|cx| {
            loop {
                match Pin::new(&mut *calls).poll_next(cx) {
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Ready(Some(_)) => {}
                    Poll::Pending => return sleep.poll_unpin(cx),
                }
            }
        })
        .await;
    }

    fn now(&self) -> Now {
        Now::of(&self.ports.clock)
    }

    pub(super) fn call(&self, call: impl Future<Output = Option<Input>> + Send + 'static) {
        self.calls.push(call.boxed());
    }
}

/// Time a clean hand-over may take (design.md §11: < 1 s).
pub const HAND_OVER: Duration = Duration::from_secs(1);
