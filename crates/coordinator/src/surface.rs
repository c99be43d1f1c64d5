//! The command surface of an instance: routes what comes in to the owner of the partition. REST
//! parses into these calls; nothing is decided here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{select, select_all};
use parking_lot::RwLock;
use service_kit::Clock;
use task_events::{Offset, PartitionId, Sha256Hash, TaskId, Text};
use worker_protocol::{Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer};

use crate::owner::{Answer, Command, CreateTask, OwnerHandle, Why};

/// How long the edge waits for a partition's new owner, ms (design.md §8: 5 s).
const OWNER_WAIT_MS: u64 = 5_000;

/// Pause between looks for a new owner, ms.
const LOOK_AGAIN_MS: u64 = 20;

/// Longest a poll waits before it looks at every backlog again, ms (design.md §8: once a second).
const POLL_ROUND_MS: u64 = 1_000;

/// What decides the partition of a new task (design.md §3), in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Beside this task.
    pub same_partition_as: Option<TaskId>,
    /// By the hash of the concurrency key.
    pub concurrency_key: Option<Text>,
    /// By the hash of client and idempotency key.
    pub key_hash: Option<Sha256Hash>,
}

/// The owners of this instance, by partition. Clones share them.
#[derive(Clone)]
pub struct Surface<C> {
    owners: Arc<RwLock<BTreeMap<PartitionId, OwnerHandle>>>,
    partitions: u16,
    clock: C,
    turn: Arc<std::sync::atomic::AtomicUsize>,
}

impl<C: Clock> Surface<C> {
    /// A surface of an instance that owns nothing yet.
    pub fn new(partitions: u16, clock: C) -> Self {
        Self { owners: Arc::default(), partitions, clock, turn: Arc::default() }
    }

    pub(crate) fn insert(&self, partition: PartitionId, handle: OwnerHandle) {
        self.owners.write().insert(partition, handle);
    }

    pub(crate) fn remove(&self, partition: PartitionId) {
        self.owners.write().remove(&partition);
    }

    pub(crate) fn lost(&self, partition: PartitionId) {
        if let Some(handle) = self.owners.write().remove(&partition) {
            handle.lost();
        }
    }

    pub(crate) fn drain(&self, partition: PartitionId, within: Duration) {
        if let Some(handle) = self.owners.read().get(&partition) {
            handle.drain(within);
        }
    }

    pub(crate) fn applied(&self, partition: PartitionId) -> Offset {
        self.owners.read().get(&partition).map_or(Offset(0), OwnerHandle::applied)
    }

    /// Partitions whose owner is this instance and has read back its claim.
    pub fn owned(&self) -> Vec<PartitionId> {
        self.owners.read().iter().filter(|(_, h)| h.is_owning()).map(|(p, _)| *p).collect()
    }

    /// Tasks that could be handed out now, over all own partitions.
    pub fn backlog(&self) -> usize {
        self.owners.read().values().map(OwnerHandle::backlog).sum()
    }

    /// Creates a task.
    pub async fn create(&self, create: CreateTask, placement: Placement) -> Answer {
        let partition = match self.place(&placement) {
            Some(partition) => partition,
            None => match self.any_owned().await {
                Some(partition) => partition,
                None => return Answer::Unavailable(Why::NotOwner),
            },
        };
        self.ask(partition, Command::Create(Box::new(create))).await
    }

    /// Asks the owner of the task's partition.
    pub async fn about(&self, task: TaskId, command: Command) -> Answer {
        self.ask(task.partition(), command).await
    }

    /// A sign of life.
    pub async fn heartbeat(&self, beat: Heartbeat) -> HeartbeatAnswer {
        let Some((task, _)) = beat.attempt.execution_id.parts() else { return HeartbeatAnswer::Fenced };
        let answer = self.about(task, Command::Heartbeat(beat)).await;
        if let Answer::Heartbeat(answer) = answer { answer } else { HeartbeatAnswer::Unavailable }
    }

    /// A report.
    pub async fn report(&self, report: Report) -> ReportAnswer {
        let Some((task, _)) = report.attempt.execution_id.parts() else { return ReportAnswer::Fenced };
        let answer = self.about(task, Command::Report(report)).await;
        if matches!(answer, Answer::OutcomeUnknown { .. }) {
            return ReportAnswer::OutcomeUnknown;
        }
        if let Answer::Report(answer) = answer { answer } else { ReportAnswer::Unavailable }
    }

    /// Work for a worker: its slots are offered to the owners by backlog.
    pub async fn poll(&self, poll: Poll) -> PollAnswer {
        let until = self.clock.boot_ms().saturating_add(poll.wait_ms);
        loop {
            // Registered before the backlogs are read, or an offer in between would be missed.
            let handles: Vec<_> = self.owners.read().values().cloned().collect();
            let offered: Vec<_> = handles.iter().map(|h| Box::pin(h.offered())).collect();
            let answer = self.poll_round(&poll).await;
            let now = self.clock.boot_ms();
            let nothing = PollAnswer::Work { assignments: Vec::new(), stop: Vec::new() };
            if answer != nothing || now >= until {
                return answer;
            }
            let sleep = Box::pin(self.clock.sleep_until(until.min(now + POLL_ROUND_MS)));
            if offered.is_empty() {
                sleep.await;
            } else {
                // Either way the backlogs are looked at again.
                select(select_all(offered), sleep).await;
            }
        }
    }

    async fn poll_round(&self, poll: &Poll) -> PollAnswer {
        let (mut assignments, mut stop) = (Vec::new(), Vec::new());
        let mut owners: Vec<_> = self.owners.read().values().filter(|h| h.backlog() > 0).cloned().collect();
        let turn = self.turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if !owners.is_empty() {
            let by = turn % owners.len();
            owners.rotate_left(by);
        }
        for owner in owners {
            let free = poll.free_slots.saturating_sub(u32::try_from(assignments.len()).unwrap_or(u32::MAX));
            if free == 0 {
                break;
            }
            let ask = Command::Poll(Poll { free_slots: free, wait_ms: 0, ..poll.clone() });
            let Answer::Poll(answer) = owner.ask(ask).await else { continue };
            match answer {
                PollAnswer::Work { assignments: more, stop: over } => {
                    assignments.extend(more);
                    stop.extend(over);
                }
                PollAnswer::Superseded => return PollAnswer::Superseded,
                PollAnswer::Unavailable => {}
            }
        }
        PollAnswer::Work { assignments, stop }
    }

    async fn ask(&self, partition: PartitionId, command: Command) -> Answer {
        let until = self.clock.boot_ms() + OWNER_WAIT_MS;
        loop {
            let owner = self.owners.read().get(&partition).cloned();
            if let Some(owner) = owner {
                let answer = owner.ask(command.clone()).await;
                // Nothing was written, and a new owner may come.
                let away = matches!(answer, Answer::Unavailable(Why::NotOwner | Why::Draining));
                if !away || self.clock.boot_ms() >= until {
                    return answer;
                }
            } else if self.clock.boot_ms() >= until {
                return Answer::Unavailable(Why::NotOwner);
            }
            self.clock.sleep_until(self.clock.boot_ms() + LOOK_AGAIN_MS).await;
        }
    }

    fn place(&self, placement: &Placement) -> Option<PartitionId> {
        if let Some(task) = placement.same_partition_as {
            return Some(task.partition());
        }
        let hash = match (&placement.concurrency_key, &placement.key_hash) {
            (Some(key), _) => Sha256Hash::of(key.as_bytes()),
            (None, Some(hash)) => *hash,
            (None, None) => return None,
        };
        let head = u64::from_be_bytes(hash.0[..8].try_into().unwrap_or_default());
        Some(PartitionId((head % u64::from(self.partitions.max(1))) as u16))
    }

    // Takes turns, so that load spreads without a key.
    async fn any_owned(&self) -> Option<PartitionId> {
        let until = self.clock.boot_ms() + OWNER_WAIT_MS;
        loop {
            let owned = self.owned();
            if !owned.is_empty() {
                let turn = self.turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                return Some(owned[turn % owned.len()]);
            }
            if self.clock.boot_ms() >= until {
                return None;
            }
            self.clock.sleep_until(self.clock.boot_ms() + LOOK_AGAIN_MS).await;
        }
    }
}
