//! The production fold of a partition, with the tasks of one pen beside it.

use std::collections::BTreeMap;

use event_log::RawRecord;
use futures::future::BoxFuture;
use service_kit::projection::{Folded, Own, Stop};
use service_kit::{Counter, Metrics};
use snapshot_store::CheckpointName;
use task_core::decide::View;
use task_core::{Change, ControlChange, PartitionState, Pen, Record, Verdict, pending_work};
use task_events::{Event, EventId, EventSequence, KindClass, Offset, Producer, TaskId};

use crate::source::Compared;

/// A task whose pen is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its version: the next verdict continues it, and no older verdict can be accepted.
    pub version: EventSequence,
    /// Offset of the event that gave the pen, or of a later annotation if the fold started there.
    pub since: Offset,
    /// That event, unless the fold started later.
    pub cause: Option<EventId>,
}

/// The fold.
pub struct PenFold {
    state: PartitionState,
    compared: Compared,
    pen: Pen,
    producer: Producer,
    held: BTreeMap<TaskId, Held>,
    quarantined: Counter,
    metrics: Metrics,
    broker_ms: i64,
}

impl PenFold {
    /// Goes on from `state`, which keeps rows.
    pub(crate) fn new(
        state: PartitionState,
        compared: Compared,
        pen: Pen,
        producer: Producer,
        metrics: Metrics,
    ) -> Self {
        let held = state
            .tasks
            .iter()
            .filter(|slot| pending_work(&slot.core, pen))
            .map(|slot| {
                let since = slot.row.as_ref().map_or(state.next_offset, |row| row.applied_offset);
                (slot.core.id, Held { version: slot.core.version, since, cause: None })
            })
            .collect();
        let quarantined = metrics.counter("records_quarantined");
        Self { state, compared, pen, producer, held, quarantined, metrics, broker_ms: i64::MIN }
    }

    /// The state folded so far.
    pub fn state(&self) -> &PartitionState {
        &self.state
    }

    /// The broker's time as far as this fold knows it: its newest stamp. What a verdict says about
    /// times rests on it, since the owner counts in broker time and this machine's wall clock may be
    /// an hour off.
    pub fn broker_ms(&self) -> i64 {
        self.broker_ms
    }

    /// The tasks whose pen is ours, in ascending order.
    pub fn all(&self) -> Vec<TaskId> {
        self.held.keys().copied().collect()
    }

    /// What is known of the pen on a task; `None` when it is not ours.
    pub fn held(&self, task: TaskId) -> Option<Held> {
        self.held.get(&task).copied()
    }

    /// The task as deciders see it.
    pub fn view(&self, task: TaskId) -> Option<View<'_>> {
        let slot = self.state.tasks.get(task)?;
        Some(View { core: &slot.core, row: slot.row.as_deref()? })
    }

    /// Folds the record at the state's next offset.
    ///
    /// # Errors
    /// Rules are active now that this binary does not know, or somebody else's fold has another
    /// state here.
    pub fn fold(&mut self, raw: &RawRecord) -> Result<Folded<TaskId>, Stop> {
        self.broker_ms = self.broker_ms.max(raw.broker_ms);
        let event = match raw.event() {
            Ok(event) => event,
            Err(reason) => {
                self.state.quarantine(raw.broker_ms);
                self.quarantined.add(1);
                let at = format!("partition {} offset {}: {reason}", raw.partition, raw.offset);
                self.metrics.alarm("record_quarantined", at);
                self.compared.folded(&self.state)?;
                return Ok(Folded::NOTHING);
            }
        };
        let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key: raw.record_key(), event };
        let verdict = self.state.apply(&record);
        if let Verdict::Accepted(Change::Control(ControlChange::RulesActivated { version, known: false })) = verdict {
            return Err(Stop::UnknownRules(version));
        }
        self.compared.folded(&self.state)?;
        let own = self.own(&record.event, &verdict);
        let touched = self.touched(&record, &verdict);
        Ok(Folded { touched, own })
    }

    /// A question to the snapshot track, when it is time to compare states.
    pub fn question(&mut self, now_ms: u64) -> Option<BoxFuture<'static, Vec<CheckpointName>>> {
        self.compared.question(now_ms)
    }

    /// Its answer.
    ///
    /// # Errors
    /// Somebody else's fold has another state at the same offset.
    pub fn published(&mut self, names: &[CheckpointName]) -> Result<(), Stop> {
        self.compared.published(names)
    }

    // The pen is read off the state, never off the event; the event only tells where to look.
    fn touched(&mut self, record: &Record, verdict: &Verdict) -> Option<TaskId> {
        let task = match verdict {
            Verdict::Accepted(Change::Opened(task) | Change::Moved(task)) => *task,
            Verdict::Accepted(Change::Closed(closed)) => closed.core.id,
            Verdict::Accepted(Change::Forgotten(core)) => core.id,
            Verdict::Accepted(
                Change::Annotated(_) | Change::Reported(_) | Change::Reviewed(_) | Change::Control(_) | Change::Sealed,
            )
            | Verdict::Rejected(_) => return None,
        };
        match self.state.tasks.get(task).filter(|slot| pending_work(&slot.core, self.pen)) {
            Some(slot) => {
                let cause = Some(record.event.event_id);
                self.held.insert(task, Held { version: slot.core.version, since: record.offset, cause });
                Some(task)
            }
            None => self.held.remove(&task).map(|_| task),
        }
    }

    fn own(&self, event: &Event, verdict: &Verdict) -> Option<Own<TaskId>> {
        let subject = event.task_id.filter(|_| event.producer == self.producer)?;
        let rejected = verdict.rejected().map(|reason| reason as u32);
        (event.kind.class() == KindClass::TaskEvent).then_some(Own { subject, event_id: event.event_id, rejected })
    }
}
