//! Faults that tests inject into the embedded log. Always there, inert until told otherwise.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use task_events::PartitionId;
use tokio::sync::oneshot;

use super::body::EncodedBatch;
use super::core::Core;
use super::format::MAX_BODY;
use super::groups::Groups;
use super::queue::{Answer, Job, Queue};
use crate::{AppendOutcome, RawRecord};

/// What happens to one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendFault {
    /// Answered `NotSent`; nothing is written.
    NotSent,
    /// Answered `Unknown` after the records became durable.
    UnknownWritten,
    /// Answered `Unknown`; the records are never written.
    UnknownNotWritten,
    /// Answered `Unknown`; the records are written by [`Faults::write_parked`], behind whatever
    /// was appended in between (a request that was stuck on its way).
    UnknownWrittenLater,
}

/// Handle to the injected faults of one open log. Cheap to clone.
#[derive(Clone)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
    core: Arc<Core>,
    queue: Arc<Queue>,
    groups: Arc<Groups>,
}

#[derive(Default)]
struct Plan {
    appends: VecDeque<(Option<PartitionId>, AppendFault)>,
    parked: Vec<Job>,
}

impl Faults {
    pub(super) fn new(core: Arc<Core>, queue: Arc<Queue>, groups: Arc<Groups>) -> Self {
        Self { plan: Arc::default(), core, queue, groups }
    }

    /// The next append to this partition (`None`: to any) that no earlier fault takes meets this
    /// one. Faults are used up one by one, in the order given.
    pub fn next_append(&self, partition: Option<PartitionId>, fault: AppendFault) {
        self.plan.lock().appends.push_back((partition, fault));
    }

    /// Writes what [`AppendFault::UnknownWrittenLater`] held back; how many appends that were.
    pub fn write_parked(&self) -> usize {
        let parked = std::mem::take(&mut self.plan.lock().parked);
        let count = parked.len();
        parked.into_iter().for_each(|job| self.queue.push(job));
        count
    }

    /// Appends what a foreign writer might: any part of the record may be missing. Partition, key,
    /// headers and value count; offset and time are the log's to give.
    pub fn append_foreign(&self, record: &RawRecord) -> impl Future<Output = AppendOutcome> + Send + 'static {
        let (tx, rx) = oneshot::channel();
        let partition = record.partition;
        let encoded = match self.core.check(partition) {
            Ok(()) => EncodedBatch::encode_foreign(record, MAX_BODY as usize),
            Err(error) => Err(error.to_string()),
        };
        match encoded {
            Ok(batch) => self.queue.push(Job { partition, batch, answer: Answer::Ack(tx) }),
            Err(reason) => drop(tx.send(AppendOutcome::NotSent(reason))),
        }
        async move { rx.await.unwrap_or_else(|_| AppendOutcome::Unknown("the log's writer ended".into())) }
    }

    /// While held, nothing committed becomes visible; acknowledgements come all the same.
    pub fn hold_visibility(&self, held: bool) {
        self.core.visible.hold(held);
    }

    /// From now on every commit becomes visible this much later than it is acknowledged.
    pub fn delay_visibility(&self, delay: Duration) {
        self.core.visible.delay(delay);
    }

    /// The members with this client id get a revocation of these partitions (of those they hold),
    /// as if others had come; afterwards the partitions are shared out anew. How many are revoked.
    pub fn revoke(&self, group: &str, client_id: &str, partitions: &[PartitionId]) -> usize {
        self.groups.force_revoke(group, client_id, partitions)
    }

    /// The members with this client id are dropped from the group at once, as after a session
    /// timeout. How many there were.
    pub fn expel(&self, group: &str, client_id: &str) -> usize {
        self.groups.expel(group, client_id)
    }

    pub(super) fn take(&self, partition: PartitionId) -> Option<AppendFault> {
        let mut plan = self.plan.lock();
        let at = plan.appends.iter().position(|(wanted, _)| wanted.is_none_or(|wanted| wanted == partition))?;
        plan.appends.remove(at).map(|(_, fault)| fault)
    }

    pub(super) fn park(&self, job: Job) {
        self.plan.lock().parked.push(job);
    }
}
