//! Engine and replayer: a fold of each partition they hold, and a verdict whenever the pen is
//! theirs.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use event_log::{AppendOutcome, EventLog as _, GroupMember as _, MemberSpec, MembershipEvent, OutRecord, Tail as _};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, Stream as _};
use service_kit::Clock as _;
use task_core::decide::{Draft, RetryPolicy, Stamp, View, replay_plan, retry_verdict};
use task_core::{Admission, LastRecord, PartitionState, Pen, Record, pending_work};
use task_events::{
    Encoder, Incarnation, Offset, PartitionId, Producer, RecordKey, RecordParts, Service, TaskId, Text, Witness, decode,
    verdict_event_id,
};

use crate::clock::SimClock;
use crate::hub::Hub;
use crate::plan::Plan;
use crate::ports::log::SimLog;

/// A verdict without an outcome is given up, and looked at again, after this, ms.
const PATIENCE_MS: u64 = 5_000;
/// The fold is looked at again after this, ms.
const LOOK_MS: u64 = 500;

/// An engine or a replayer.
#[derive(Clone)]
pub struct Verdicts {
    /// Engine or replayer.
    pub pen: Pen,
    /// Name.
    pub instance: Text,
    /// This start.
    pub incarnation: Incarnation,
    /// Topic.
    pub log: SimLog,
    /// Clock.
    pub clock: SimClock,
    /// Shared part, for the auditor.
    pub hub: Hub,
    /// Rules.
    pub plan: Arc<Plan>,
    /// Seed of jitter.
    pub random: u64,
}

impl Verdicts {
    /// Runs until the process is killed.
    pub async fn run(self) {
        let group = if self.pen == Pen::Engine { "task-engine" } else { "auto-replay" };
        let spec = MemberSpec { group: group.to_owned(), client_id: self.instance.to_string() };
        loop {
            let Ok(mut member) = self.log.join(spec.clone()).await else { continue };
            let mut running: BTreeMap<PartitionId, BoxFuture<'static, ()>> = BTreeMap::new();
            loop {
                let event = {
                    let event = member.next();
                    let mut event = std::pin::pin!(event);
                    poll_fn(|cx| {
                        for work in running.values_mut() {
                            let _ = work.as_mut().poll(cx);
                        }
                        event.as_mut().poll(cx)
                    })
                    .await
                };
                match event {
                    Err(_) => break,
                    Ok(MembershipEvent::Assigned(partitions)) => {
                        for p in partitions {
                            running.insert(p, self.clone().partition(p).boxed());
                        }
                    }
                    Ok(MembershipEvent::Revoked { partitions, .. }) => {
                        for p in partitions {
                            running.remove(&p);
                            member.release(p, Offset(0));
                        }
                    }
                    Ok(MembershipEvent::Lost(partitions)) => {
                        for p in partitions {
                            running.remove(&p);
                        }
                    }
                }
            }
        }
    }

    async fn partition(self, partition: PartitionId) {
        let mut desk = Desk {
            fold: PartitionState::with_rules(partition, true, self.plan.fold_rules),
            encoder: Encoder::new(),
            out: BTreeMap::new(),
            attempts: self.clock.boot_ms() << 8,
        };
        let mut appends: FuturesUnordered<BoxFuture<'static, (TaskId, AppendOutcome)>> = FuturesUnordered::new();
        loop {
            let Ok(mut tail) = self.log.tail(partition, desk.fold.next_offset).await else { continue };
            loop {
                let look = self.clock.sleep_until(self.clock.boot_ms() + LOOK_MS);
                let mut look = std::pin::pin!(look);
                let records = {
                    let next = tail.next();
                    let mut next = std::pin::pin!(next);
                    poll_fn(|cx| {
                        while let Poll::Ready(Some((task, outcome))) = Pin::new(&mut appends).poll_next(cx) {
                            if matches!(outcome, AppendOutcome::NotSent(_)) {
                                desk.out.remove(&task);
                            }
                        }
                        if let Poll::Ready(records) = next.as_mut().poll(cx) {
                            return Poll::Ready(Some(records));
                        }
                        look.as_mut().poll(cx).map(|()| None)
                    })
                    .await
                };
                match records {
                    Some(Err(_)) => break,
                    Some(Ok(records)) => {
                        records.into_iter().for_each(|raw| desk.fold_one(&raw));
                        self.hub.lock().audit.shown(&self.instance, &desk.fold);
                    }
                    None => {}
                }
                for (task, batch) in desk.decide(&self) {
                    let append = self.log.append(partition, batch);
                    appends.push(append.map(move |outcome| (task, outcome)).boxed());
                }
            }
        }
    }
}

struct Desk {
    fold: PartitionState,
    encoder: Encoder,
    out: BTreeMap<TaskId, (u32, u64)>,
    attempts: u64,
}

impl Desk {
    fn fold_one(&mut self, raw: &event_log::RawRecord) {
        if self.fold.admit(raw.offset) != Admission::Next {
            return;
        }
        let headers = raw.headers.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        match decode(RecordParts { headers, value: raw.value.as_deref() }) {
            Err(_) => self.fold.quarantine(raw.broker_ms),
            Ok(event) => {
                let event_id = Some(event.event_id);
                let key = RecordKey::parse(raw.key.as_deref());
                self.fold.apply(&Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event });
                self.fold.last = Some(LastRecord { offset: raw.offset, event_id, crc32c: 0 });
            }
        }
    }

    fn decide(&mut self, who: &Verdicts) -> Vec<(TaskId, Vec<OutRecord>)> {
        let now = who.clock.boot_ms();
        self.out.retain(|id, (version, since)| {
            let open = self.fold.tasks.get(*id).map(|s| s.core.version.0);
            open == Some(*version) && *since + PATIENCE_MS > now
        });
        let mut due: Vec<TaskId> = Vec::new();
        for slot in self.fold.tasks.iter() {
            if pending_work(&slot.core, who.pen) && !self.out.contains_key(&slot.core.id) {
                due.push(slot.core.id);
            }
        }
        due.sort_unstable();
        let mut out = Vec::new();
        for id in due {
            let Some(slot) = self.fold.tasks.get(id) else { continue };
            let Some(row) = slot.row.as_deref() else { continue };
            let view = View { core: &slot.core, row };
            self.attempts += 1;
            let draft: Draft = match who.pen {
                Pen::Engine => {
                    let policy = RetryPolicy { version: 1, base_ms: 50, cap_ms: 2_000 };
                    let jitter = (who.random ^ self.attempts).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    // The broker's stamps are the only wall clock that all agree on.
                    let at = row.changed_broker_ms;
                    match retry_verdict(view, policy, at, jitter) {
                        Ok(draft) => draft,
                        Err(_) => continue,
                    }
                }
                Pen::Owner | Pen::Replayer => match replay_plan(view, Witness::LogOnly) {
                    Ok(draft) => draft,
                    Err(_) => continue,
                },
            };
            let kind = draft.body.kind();
            let event = draft.stamped(Stamp {
                event_id: verdict_event_id(id, slot.core.version, kind, &who.instance, self.attempts),
                partition_epoch: None,
                owner_seq: None,
                event_time: who.clock.wall_ms(),
                causation_id: None,
                producer: Producer {
                    service: if who.pen == Pen::Engine { Service::TaskEngine } else { Service::AutoReplay },
                    instance: who.instance.clone(),
                    incarnation: who.incarnation,
                },
                rule_version: self.fold.active_rules,
            });
            let Ok(encoded) = self.encoder.encode(&event, self.fold.partition) else { continue };
            self.out.insert(id, (slot.core.version.0, now));
            out.push((id, vec![OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value }]));
        }
        out
    }
}
