//! The command surface of an instance: brings what comes in to the owner of the partition, here or
//! at another instance. REST parses into these calls; nothing is decided here.

mod peers;
mod placing;
mod polling;
mod status;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::{Mutex, RwLock};
use service_kit::Clock;
use task_events::{Offset, PartitionId, TaskId};
use tokio::sync::Notify;
use worker_protocol::{Heartbeat, HeartbeatAnswer, Report, ReportAnswer};

use crate::forwarding::unanswered;
use crate::owner::{AWAIT_MAX_MS, Answer, Command, CreateTask, FindBy, OwnerHandle, Why};

pub use peers::{NoPeers, Peers};
pub use placing::Placement;
pub use status::{PartitionStatus, Status};
pub use workers::{WorkerSeen, WorkersAsk, WorkersTold};

/// How long the edge waits for a partition's new owner, ms (design.md §8: 5 s).
const OWNER_WAIT_MS: u64 = 5_000;

/// … and how long where the row of the store serves as well, ms (design.md §11: a clean stop takes < 1 s).
const HAND_OVER_MS: u64 = 1_000;

/// Pause between looks for a new owner here, ms.
const LOOK_AGAIN_MS: u64 = 20;

/// Longest pause before another instance is asked again whether it owns the partition by now, ms.
const ASK_AGAIN_MS: u64 = 320;

/// The owners of this instance by partition, and the way to those of other ones. Clones share them.
#[derive(Clone)]
pub struct Surface<C, P = NoPeers> {
    owners: Arc<RwLock<BTreeMap<PartitionId, OwnerHandle>>>,
    partitions: u16,
    clock: C,
    peers: P,
    turn: Arc<AtomicUsize>,
    turn_of_peers: Arc<AtomicUsize>,
    had_nothing: Arc<Mutex<polling::HadNothing>>,
    closing: Arc<Closing>,
    board: Arc<Mutex<workers::Board>>,
}

// The instance stops: whoever waits here for something to come is sent elsewhere.
#[derive(Default)]
struct Closing {
    closing: AtomicBool,
    told: Notify,
}

impl<C: Clock> Surface<C> {
    /// A surface of an instance that owns nothing yet and knows no other one.
    pub fn new(partitions: u16, clock: C) -> Self {
        Self::with_peers(partitions, clock, NoPeers)
    }
}

impl<C: Clock, P: Peers> Surface<C, P> {
    /// A surface of an instance that owns nothing yet.
    pub fn with_peers(partitions: u16, clock: C, peers: P) -> Self {
        let (owners, turn, turn_of_peers, had_nothing, closing, board) = Default::default();
        Self { owners, partitions, clock, peers, turn, turn_of_peers, had_nothing, closing, board }
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

    // From now on nothing new begins here: polls are sent away, also those that wait.
    pub(crate) fn close(&self) {
        self.closing.closing.store(true, Ordering::SeqCst);
        self.closing.told.notify_waiters();
    }

    fn is_closing(&self) -> bool {
        self.closing.closing.load(Ordering::SeqCst)
    }

    // No owner will come, here or elsewhere.
    fn is_alone(&self) -> bool {
        self.is_closing() && self.peers.instances().is_empty()
    }

    pub(crate) fn applied(&self, partition: PartitionId) -> Offset {
        self.owners.read().get(&partition).map_or(Offset(0), OwnerHandle::applied)
    }

    /// Number of partitions of the topic.
    pub const fn partitions(&self) -> u16 {
        self.partitions
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
        match self.place(&create, &placement) {
            Err(conflict) => conflict,
            Ok(Some(partition)) => self.ask(partition, Command::Create(Box::new(create))).await,
            Ok(None) => self.create_anywhere(Command::Create(Box::new(create))).await,
        }
    }

    /// Asks the owner of the task's partition.
    pub async fn about(&self, task: TaskId, command: Command) -> Answer {
        self.ask(task.partition(), command).await
    }

    /// The task as its owner sees it. Waits for a new owner as long as a clean hand-over takes: whoever
    /// asks this has the task's row to look at otherwise.
    pub async fn seen(&self, task: TaskId) -> Answer {
        self.ask_within(task.partition(), Command::Get { task }, HAND_OVER_MS).await
    }

    /// The task once it is terminal, or as it is after so many ms, a minute at most; for a new owner it waits
    /// as [`Self::seen`] does, and not again once the one it asked is gone.
    pub async fn await_of_owner(&self, task: TaskId, wait_ms: u64) -> Answer {
        let wait_ms = wait_ms.min(AWAIT_MAX_MS);
        self.ask_within(task.partition(), Command::Await { task, wait_ms }, HAND_OVER_MS).await
    }

    /// [`Self::await_of_owner`], and after a hand-over the next owner is asked for the rest of the time.
    pub async fn await_task(&self, task: TaskId, wait_ms: u64) -> Answer {
        let until = self.clock.boot_ms().saturating_add(wait_ms.min(AWAIT_MAX_MS));
        loop {
            let left = until.saturating_sub(self.clock.boot_ms());
            let owner_ms = left.clamp(HAND_OVER_MS, OWNER_WAIT_MS);
            let answer = self.ask_within(task.partition(), Command::Await { task, wait_ms: left }, owner_ms).await;
            if left == 0 || !answer.is_away() || self.is_alone() {
                return answer;
            }
        }
    }

    /// Tasks that the store may not show yet, by partition; see [`Command::Find`].
    pub async fn find(&self, by: FindBy, limit: usize) -> BTreeMap<PartitionId, Answer> {
        self.ask_all(&Command::Find { by, limit }).await
    }

    /// Asks the owner of every partition.
    pub async fn ask_all(&self, command: &Command) -> BTreeMap<PartitionId, Answer> {
        let asks = (0..self.partitions).map(PartitionId).map(|partition| async move {
            let answer = self.ask(partition, command.clone()).await;
            (partition, answer)
        });
        join_all(asks).await.into_iter().collect()
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

    /// What a command gets that another instance passed on: this instance's owner answers, or nobody
    /// at once. It is never passed on again.
    pub async fn ask_here(&self, partition: PartitionId, command: &Command) -> Answer {
        let owner = self.owners.read().get(&partition).cloned();
        let Some(owner) = owner else { return Answer::Unavailable(Why::NotOwner) };
        let unheard = command.is_read().then(|| unanswered(command));
        let answer = owner.ask(command.clone()).await;
        // The owner is gone: a read can be asked again.
        unheard.filter(|_| matches!(answer, Answer::OutcomeUnknown { .. })).unwrap_or(answer)
    }

    /// Asks the owner of a partition: this instance's, else the one at another instance; waits for a
    /// new one while there is none.
    pub async fn ask(&self, partition: PartitionId, command: Command) -> Answer {
        self.ask_within(partition, command, OWNER_WAIT_MS).await
    }

    async fn ask_within(&self, partition: PartitionId, command: Command, wait_ms: u64) -> Answer {
        let started = self.clock.boot_ms();
        let (until, mut ask_peer_at, mut pause) = (started + wait_ms, started, LOOK_AGAIN_MS);
        loop {
            let mut answer = self.ask_here(partition, &command).await;
            if answer.is_away() && self.clock.boot_ms() >= ask_peer_at {
                if let Some(told) = self.peers.ask(partition, &command).await {
                    answer = told;
                }
                ask_peer_at = self.clock.boot_ms() + pause;
                pause = (pause * 2).min(ASK_AGAIN_MS);
            }
            // Nothing was written, and a new owner may come.
            if !answer.is_away() || self.clock.boot_ms() >= until || self.is_alone() {
                return answer;
            }
            self.clock.sleep_until(self.clock.boot_ms() + LOOK_AGAIN_MS).await;
        }
    }
}
