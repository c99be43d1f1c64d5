//! The thin shell around [`Owner`]: carries inputs and effects between it and the ports.
//!
//! One future per owned partition, without spawning, so that a simulator can run it on one thread
//! and crash it at any await by dropping it.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use assignment_lock::AssignmentLock;
use event_log::{EventLog, LogError};
use fold_start::patient;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream as _};
use hashbrown::HashMap;
use service_kit::{Clock, Metrics, fail_point};
use snapshot_store::{CheckpointName, SnapshotStore, StoreError};
use task_events::PartitionId;

use super::freeze::Freeze;
use super::inbox::Inbox;
use super::loading::load_start;
use super::waiting::{Event, Reading, next_events, read, reopen, until_lost};
use super::{Answer, Checkpoint, Effect, Identity, Input, Now, Owner, OwnerConfig, OwnerRules, Stop, Token};

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

struct Shell<L: EventLog, S, K, C> {
    ports: Ports<L, S, K, C>,
    partition: PartitionId,
    owner: Owner,
    calls: FuturesUnordered<Call>,
    replies: HashMap<Token, oneshot::Sender<Answer>, foldhash::fast::FixedState>,
    metrics: Metrics,
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
            Some(Err(why)) => return Exit::Unreadable(why.to_string()),
        }
    };
    let from = start.fold.next_offset;
    let owner = Owner::new(setup.cfg, setup.rules, setup.identity, start);
    let shell = Shell {
        ports,
        partition,
        owner,
        calls: FuturesUnordered::new(),
        replies: HashMap::default(),
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
        Now { boot_ms: self.ports.clock.boot_ms(), wall_ms: self.ports.clock.wall_ms() }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Option<Exit> {
        let mut exit = None;
        for effect in effects {
            match effect {
                Effect::Append(ticket, batch) => {
                    fail_point!("owner::before_append");
                    let append = self.ports.log.append(self.partition, batch);
                    self.call(async move {
                        let outcome = append.await;
                        fail_point!("owner::after_append");
                        Some(Input::Appended(ticket, outcome))
                    });
                }
                Effect::TakeLocks(ticket, locks) => {
                    let take = self.ports.lock.take(locks);
                    let metrics = self.metrics.clone();
                    self.call(async move {
                        let answer = take.await;
                        fail_point!("owner::after_lock");
                        let answer = answer.map(|taken| {
                            let replaced = taken.iter().filter(|t| **t == assignment_lock::Taken::Replaced).count();
                            metrics.counter("lock_replaced").add(replaced as u64);
                        });
                        Some(Input::LocksTaken(ticket, answer))
                    });
                }
                Effect::RenewLocks(locks) => {
                    let renew = self.ports.lock.renew(locks);
                    self.call(renew.map(|_| None));
                }
                Effect::ReleaseLocks(locks) => {
                    let release = self.ports.lock.release(locks);
                    self.call(release.map(|_| None));
                }
                Effect::AskLockServer => {
                    let ask = self.ports.lock.server();
                    self.call(ask.map(|answer| Some(Input::LockServer(answer))));
                }
                Effect::WriteRows(ticket, rows) => {
                    fail_point!("owner::before_rows");
                    let write = self.ports.store.write(self.partition, rows);
                    self.call(write.map(move |answer| Some(Input::RowsWritten(ticket, answer))));
                }
                Effect::ReadRow(ticket, task) => {
                    let read = self.ports.store.snapshots(vec![task]);
                    self.call(read.map(move |answer| {
                        let row = answer.map(|rows| rows.into_iter().next().flatten());
                        Some(Input::RowRead(ticket, row))
                    }));
                }
                Effect::ReadKey(ticket, key) => {
                    let read = self.ports.store.key(key);
                    self.call(read.map(move |answer| Some(Input::KeyRead(ticket, answer))));
                }
                Effect::StorePayloads(ticket, items) => {
                    let put = self.ports.store.put_payloads(items);
                    self.call(put.map(move |answer| Some(Input::PayloadsStored(ticket, answer))));
                }
                Effect::PutAcked(offset) => {
                    let put = self.ports.store.put_acked(self.partition, offset);
                    self.call(put.map(|_| None));
                }
                Effect::Publish(checkpoint) => {
                    let store = self.ports.store.clone();
                    let metrics = self.metrics.clone();
                    let partition = self.partition;
                    self.call(async move {
                        if publish(&store, partition, *checkpoint).await.is_err() {
                            metrics.counter("checkpoints_failed").add(1);
                            return None;
                        }
                        metrics.counter("checkpoints_published").add(1);
                        // Others publish too: every reader compares its own state with theirs.
                        let published = store.checkpoints(partition).await.ok()?;
                        Some(Input::Checkpoints(published.into_iter().map(|(name, _)| name).collect()))
                    });
                }
                Effect::Reply(token, answer) => {
                    fail_point!("owner::before_reply");
                    if let Some(reply) = self.replies.remove(&token) {
                        // An error means that nobody waits any more.
                        let _ = reply.send(answer);
                    }
                }
                Effect::Alarm(alarm) => {
                    self.metrics.alarm(alarm.name(), format!("partition {}: {alarm:?}", self.partition));
                }
                Effect::Drained => exit = Some(Exit::Drained),
                Effect::Stop(stop) => {
                    self.metrics.alarm("reader_stopped", stop.to_string());
                    return Some(Exit::Stopped(stop));
                }
            }
        }
        exit
    }

    fn call(&self, call: impl Future<Output = Option<Input>> + Send + 'static) {
        self.calls.push(call.boxed());
    }
}

async fn publish<S: SnapshotStore>(
    store: &S,
    partition: PartitionId,
    checkpoint: Checkpoint,
) -> Result<(), StoreError> {
    let parts = checkpoint.state.parts();
    for (hash, bytes) in parts.chunks {
        fail_point!("owner::before_chunk");
        store.put_chunk(hash, bytes).await?;
    }
    fail_point!("owner::before_manifest");
    let name = CheckpointName {
        partition,
        offset: checkpoint.state.offset(),
        epoch: checkpoint.epoch,
        rule_version: checkpoint.rule_version,
        state_hash: checkpoint.state_hash,
    };
    store.publish(name, parts.manifest).await
}

/// Time a clean hand-over may take (design.md §11: < 1 s).
pub const HAND_OVER: Duration = Duration::from_secs(1);
