//! Effects carried to the ports, and what the ports answer carried back as inputs; how long each of them
//! took is told to whoever watches.

use assignment_lock::{AssignmentLock, Lock, Taken};
use event_log::{AppendOutcome, EventLog};
use futures::FutureExt as _;
use service_kit::{Clock, fail_point};
use snapshot_store::{CheckpointName, SnapshotStore, StoreError};
use task_events::PartitionId;

use super::shell::{Exit, Shell};
use super::written::Written;
use super::{Checkpoint, Effect, Input, Ticket};
use crate::metrics::Timed;

impl<L, S, K, C> Shell<L, S, K, C>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    pub(super) fn carry_out(&mut self, effects: Vec<Effect>) -> Option<Exit> {
        let mut exit = None;
        for effect in effects {
            match effect {
                Effect::Append(ticket, batch) => self.append(ticket, batch),
                Effect::TakeLocks(ticket, locks) => self.take_locks(ticket, locks),
                Effect::RenewLocks(locks) => {
                    let renew = self.timed(&self.meters.locks_renewed, self.ports.lock.renew(locks));
                    let gone = self.meters.lock_lost.clone();
                    self.call(renew.map(move |answer| match answer {
                        Ok(lost) => {
                            gone.add(lost as u64);
                            None
                        }
                        Err(why) => Some(Input::LockServer(Err(why))),
                    }));
                }
                Effect::ReleaseLocks(locks) => {
                    let release = self.timed(&self.meters.locks_released, self.ports.lock.release(locks));
                    self.call(release.map(|answer| answer.err().map(|why| Input::LockServer(Err(why)))));
                }
                Effect::AskLockServer => {
                    let ask = self.timed(&self.meters.lock_server, self.ports.lock.server());
                    let metrics = self.metrics.clone();
                    self.call(ask.map(move |answer| {
                        if answer.is_ok() {
                            metrics.clear("lock_unavailable");
                        }
                        Some(Input::LockServer(answer))
                    }));
                }
                Effect::WriteRows(ticket, rows) => {
                    fail_point!("owner::before_rows");
                    let written = Written::of(&self.spans, self.partition, ticket, &rows);
                    let write = self.ports.store.write(self.partition, rows);
                    let write = self.timed(&self.meters.rows_written, write);
                    let (spans, clock) = (self.spans.clone(), self.ports.clock.clone());
                    let began = (clock.wall_us(), clock.boot_us());
                    self.call(write.map(move |answer| {
                        written.tell(&spans, began, clock.boot_us(), answer.is_err());
                        Some(Input::RowsWritten(ticket, answer))
                    }));
                }
                Effect::ReadRow(ticket, task) => {
                    let read = self.timed(&self.meters.row_read, self.ports.store.snapshots(vec![task]));
                    self.call(read.map(move |answer| {
                        let row = answer.map(|rows| rows.into_iter().next().flatten());
                        Some(Input::RowRead(ticket, row))
                    }));
                }
                Effect::ReadKey(ticket, key) => {
                    let read = self.timed(&self.meters.key_read, self.ports.store.key(key));
                    self.call(read.map(move |answer| Some(Input::KeyRead(ticket, answer))));
                }
                Effect::StorePayloads(ticket, items) => {
                    let put = self.timed(&self.meters.payloads_stored, self.ports.store.put_payloads(items));
                    self.call(put.map(move |answer| Some(Input::PayloadsStored(ticket, answer))));
                }
                Effect::PutAcked(offset) => {
                    let put = self.ports.store.put_acked(self.partition, offset);
                    self.call(self.timed(&self.meters.acked_put, put).map(|_| None));
                }
                Effect::Publish(checkpoint) => self.publish(*checkpoint),
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
                Effect::ReadBack(us) => self.meters.read_back.observe_us(us),
                Effect::Span(span) => self.spans.take(|| Some(*span)),
                Effect::Drained => exit = Some(Exit::Drained),
                Effect::Stop(stop) => {
                    self.metrics.alarm("reader_stopped", stop.to_string());
                    return Some(Exit::Stopped(stop));
                }
            }
        }
        exit
    }

    fn append(&self, ticket: Ticket, batch: Vec<event_log::OutRecord>) {
        fail_point!("owner::before_append");
        let (meters, clock) = (self.meters.clone(), self.ports.clock.clone());
        let began = clock.boot_us();
        let append = self.ports.log.append(self.partition, batch);
        self.call(async move {
            let outcome = append.await;
            fail_point!("owner::after_append");
            match &outcome {
                AppendOutcome::Acknowledged => meters.append.observe_us(clock.boot_us().saturating_sub(began)),
                AppendOutcome::NotSent(_) => meters.not_sent.add(1),
                AppendOutcome::Unknown(_) => meters.unknown.add(1),
            }
            Some(Input::Appended(ticket, outcome))
        });
    }

    // The call, with its time taken.
    fn timed<T: Send, E: Send>(
        &self,
        meter: &Timed,
        call: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send + 'static {
        let (meter, clock) = (meter.clone(), self.ports.clock.clone());
        let began = clock.boot_us();
        async move {
            let answer = call.await;
            meter.ended(clock.boot_us().saturating_sub(began), &answer);
            answer
        }
    }

    fn take_locks(&self, ticket: Ticket, locks: Vec<Lock>) {
        let take = self.timed(&self.meters.locks_taken, self.ports.lock.take(locks));
        let replaced = self.meters.lock_replaced.clone();
        self.call(async move {
            let answer = take.await;
            fail_point!("owner::after_lock");
            let answer = answer.map(|taken| {
                replaced.add(taken.iter().filter(|t| **t == Taken::Replaced).count() as u64);
            });
            Some(Input::LocksTaken(ticket, answer))
        });
    }

    fn publish(&self, checkpoint: Checkpoint) {
        let (store, partition) = (self.ports.store.clone(), self.partition);
        let published = self.meters.published.clone();
        let writing = {
            let store = store.clone();
            async move { publish(&store, partition, checkpoint).await }
        };
        let writing = self.timed(&self.meters.checkpoint, writing);
        self.call(async move {
            writing.await.ok()?;
            published.add(1);
            // Others publish too: every reader compares its own state with theirs.
            let all = store.checkpoints(partition).await.ok()?;
            Some(Input::Checkpoints(all.into_iter().map(|(name, _)| name).collect()))
        });
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
