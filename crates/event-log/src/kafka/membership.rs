//! Membership of a group: a client that is a member and reads nothing. Its partitions are paused
//! as soon as they are assigned; the records come through tails, at the service's own positions,
//! so the group's committed offsets serve lag metrics only.
//!
//! The rebalance callback runs on this client's own poll thread and may wait there for the
//! service to let go: librdkafka's heartbeats go on meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, TopicPartitionList};
use task_events::{Offset, PartitionId};
use tokio::sync::mpsc::UnboundedSender;

use super::context;
use crate::MembershipEvent;

/// How long one poll waits; also how late a leave is noticed at most.
const POLL: Duration = Duration::from_millis(50);
/// How often the folded positions are committed.
const COMMIT: Duration = Duration::from_secs(1);

/// What the service and the member's thread share.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Revoked and not yet released.
    revoking: BTreeSet<PartitionId>,
    held: BTreeSet<PartitionId>,
    applied: BTreeMap<PartitionId, Offset>,
    leaving: bool,
}

impl Shared {
    pub fn release(&self, partition: PartitionId, applied: Offset) {
        let mut state = self.state.lock();
        state.applied.insert(partition, applied);
        state.revoking.remove(&partition);
        drop(state);
        self.changed.notify_all();
    }

    pub fn progress(&self, partition: PartitionId, applied: Offset) {
        self.state.lock().applied.insert(partition, applied);
    }

    /// Waits for nothing any more and leaves.
    pub fn leave(&self) {
        self.state.lock().leaving = true;
        self.changed.notify_all();
    }

    fn leaving(&self) -> bool {
        self.state.lock().leaving
    }

    /// Waits until all are released, or the deadline; returns what is not.
    #[expect(clippy::disallowed_methods, reason = "a deadline towards the group, on the machine's monotonic clock")]
    fn wait_released(&self, partitions: &[PartitionId], deadline: Duration) -> Vec<PartitionId> {
        let until = Instant::now() + deadline;
        let mut state = self.state.lock();
        while !state.leaving && !state.revoking.is_empty() {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        let late = if state.leaving { BTreeSet::new() } else { std::mem::take(&mut state.revoking) };
        state.revoking.clear();
        state.held.retain(|partition| !partitions.contains(partition));
        late.into_iter().collect()
    }
}

/// Callbacks of the member's client.
pub(super) struct Context {
    pub topic: String,
    pub shared: Arc<Shared>,
    pub events: UnboundedSender<MembershipEvent>,
    pub revoke_deadline: Duration,
}

pub(super) type Client = BaseConsumer<Context>;

impl Context {
    fn partitions(&self, list: &TopicPartitionList) -> Vec<PartitionId> {
        let ours = list.elements_for_topic(&self.topic);
        ours.iter().filter_map(|entry| u16::try_from(entry.partition()).ok().map(PartitionId)).collect()
    }

    fn send(&self, event: MembershipEvent) {
        // A service that stopped listening has dropped its membership; the thread ends by itself.
        let _ = self.events.send(event);
    }

    fn assigned(&self, client: &Client, list: &TopicPartitionList) {
        let partitions = self.partitions(list);
        let mut paused = TopicPartitionList::new();
        for partition in &partitions {
            // The end, so that the client doesn't ask for a committed position that isn't there.
            let place = paused.add_partition_offset(&self.topic, i32::from(partition.0), rdkafka::Offset::End);
            if let Err(error) = place {
                tracing::error!(partition = partition.0, %error, "cannot note a partition");
            }
        }
        if let Err(error) = client.incremental_assign(&paused) {
            tracing::error!(?partitions, %error, "assignment refused by the client");
            return;
        }
        if let Err(error) = client.pause(&paused) {
            tracing::warn!(?partitions, %error, "partitions of a member not paused");
        }
        self.shared.state.lock().held.extend(&partitions);
        if !partitions.is_empty() {
            self.send(MembershipEvent::Assigned(partitions));
        }
    }

    fn revoked(&self, client: &Client, list: &TopicPartitionList) {
        let partitions = self.partitions(list);
        let lost = if client.assignment_lost() {
            self.shared.state.lock().held.retain(|partition| !partitions.contains(partition));
            partitions
        } else if partitions.is_empty() {
            Vec::new()
        } else {
            self.shared.state.lock().revoking = partitions.iter().copied().collect();
            self.send(MembershipEvent::Revoked { partitions: partitions.clone(), deadline: self.revoke_deadline });
            let late = self.shared.wait_released(&partitions, self.revoke_deadline);
            commit(client, &self.topic, &self.shared, &partitions);
            late
        };
        if !lost.is_empty() {
            self.send(MembershipEvent::Lost(lost));
        }
        if let Err(error) = client.incremental_unassign(list) {
            tracing::error!(%error, "revocation refused by the client");
        }
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log("member", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(client = "member", %error, reason, "kafka client error");
    }
}

impl ConsumerContext for Context {
    fn rebalance(&self, client: &Client, error: RDKafkaRespErr, list: &mut TopicPartitionList) {
        if error == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            self.assigned(client, list);
        } else {
            self.revoked(client, list);
        }
    }

    fn commit_callback(&self, result: Result<(), KafkaError>, _list: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::debug!(%error, "position for lag metrics not committed");
        }
    }
}

/// The member's thread: polls until the service leaves or the membership ends, then closes the
/// client, which may take as long as the broker is away.
#[expect(clippy::disallowed_methods, reason = "the pace of commits, on the machine's monotonic clock")]
pub(super) fn run(client: Client, topic: &str, shared: &Shared) {
    let mut committed = BTreeMap::new();
    let mut last = Instant::now();
    while !shared.leaving() {
        match client.poll(POLL) {
            Some(Err(KafkaError::MessageConsumptionFatal(code))) => {
                tracing::error!(%code, "membership ended by a fatal error");
                let held: Vec<PartitionId> = std::mem::take(&mut shared.state.lock().held).into_iter().collect();
                client.context().send(MembershipEvent::Lost(held));
                break;
            }
            Some(Err(error)) => tracing::warn!(client = "member", %error, "kafka consumer error"),
            // Fetched before the pause took hold; tails read it.
            Some(Ok(_)) | None => {}
        }
        if last.elapsed() >= COMMIT {
            last = Instant::now();
            let held: Vec<PartitionId> = {
                let state = shared.state.lock();
                state.held.iter().copied().filter(|p| state.applied.get(p) != committed.get(p)).collect()
            };
            committed.extend(commit(&client, topic, shared, &held));
        }
    }
    shared.leave();
    client.unsubscribe();
    drop(client);
}

/// Commits how far these partitions are folded; returns what was sent.
fn commit(client: &Client, topic: &str, shared: &Shared, partitions: &[PartitionId]) -> BTreeMap<PartitionId, Offset> {
    let applied = shared.state.lock().applied.clone();
    let mut list = TopicPartitionList::new();
    let mut sent = BTreeMap::new();
    for partition in partitions {
        let Some(&offset) = applied.get(partition) else { continue };
        // Kafka commits the next offset to read.
        let next = rdkafka::Offset::Offset(i64::try_from(offset.0 + 1).unwrap_or(i64::MAX));
        if list.add_partition_offset(topic, i32::from(partition.0), next).is_ok() {
            sent.insert(*partition, offset);
        }
    }
    if list.count() > 0
        && let Err(error) = client.commit(&list, CommitMode::Async)
    {
        tracing::debug!(%error, "position for lag metrics not committed");
    }
    sent
}
