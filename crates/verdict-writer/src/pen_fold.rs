//! The production fold of a partition, with the tasks of one pen beside it.

use std::collections::BTreeMap;

use event_log::RawRecord;
use futures::future::BoxFuture;
use service_kit::metrics::RECORDS_QUARANTINED;
use service_kit::projection::{Folded, Own, Stop};
use service_kit::{Counter, Metrics};
use snapshot_store::CheckpointName;
use spans::{Span, SpanKind, Spans, Value};
use task_core::decide::View;
use task_core::{Change, ControlChange, PartitionState, Pen, Record, Verdict, pending_work};
use task_events::{
    Event, EventId, EventSequence, Kind, KindClass, Offset, Producer, Sampling, Service, SpanId, TaskId, TraceId,
    TraceParent,
};

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
    /// Broker's time of that event, Unix ms.
    pub since_ms: i64,
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
    spans: Spans,
    /// What the task that the record at hand closes said of its trace.
    closing: Sampling,
    broker_ms: i64,
}

impl PenFold {
    /// Goes on from `state`, which keeps rows.
    pub(crate) fn new(
        state: PartitionState,
        compared: Compared,
        (pen, producer): (Pen, Producer),
        metrics: Metrics,
        spans: Spans,
    ) -> Self {
        let held = state
            .tasks
            .iter()
            .filter(|slot| pending_work(&slot.core, pen))
            .map(|slot| {
                let since = slot.row.as_ref().map_or(state.next_offset, |row| row.applied_offset);
                let since_ms = slot.row.as_ref().map_or(0, |row| row.changed_broker_ms);
                (slot.core.id, Held { version: slot.core.version, since, cause: None, since_ms })
            })
            .collect();
        let quarantined = metrics.counter_of(&RECORDS_QUARANTINED, &[name_of(producer.service)]);
        Self {
            state,
            compared,
            pen,
            producer,
            held,
            quarantined,
            metrics,
            spans,
            closing: Sampling::default(),
            broker_ms: i64::MIN,
        }
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
        let before = record.event.task_id.and_then(|task| self.state.tasks.get(task));
        self.closing = before.and_then(|slot| slot.row.as_ref()).map_or(Sampling::default(), |row| row.sampling);
        let verdict = self.state.apply(&record);
        if let Verdict::Accepted(Change::Opened(id)) = &verdict {
            self.state.note_trace(*id, raw.trace_parent());
        }
        if let Verdict::Accepted(Change::Control(ControlChange::RulesActivated { version, known: false })) = verdict {
            return Err(Stop::UnknownRules(version));
        }
        self.compared.folded(&self.state)?;
        let own = self.own(&record.event, &verdict);
        if own.is_some_and(|own| own.rejected.is_none()) {
            self.tell(&record);
        }
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
                let (version, since_ms) = (slot.core.version, record.broker_ms);
                self.held.insert(task, Held { version, since: record.offset, cause, since_ms });
                Some(task)
            }
            None => self.held.remove(&task).map(|_| task),
        }
    }

    // A verdict, from the event that asked for it, both by the broker's stamps: waiting for a current row
    // or for a broker is part of it.
    fn tell(&self, record: &Record) {
        let event = &record.event;
        self.spans.take(|| {
            let task = event.task_id?;
            let held = self.held.get(&task)?;
            let slot = self.state.tasks.get(task);
            // A task that the verdict closed is forgotten: its last record says as much of its trace.
            let sampling = slot.and_then(|slot| slot.row.as_ref()).map_or(self.closing, |row| row.sampling);
            sampling.is_recorded().then_some(())?;
            let trace_id = TraceId::parse(event.trace_id.as_bytes())?;
            let before = SpanId::of_record(task, held.version);
            Some(Span {
                trace_id,
                span_id: SpanId::of_event(event)?,
                parent: Some(SpanId::of_record(task, EventSequence(1))),
                name: event.kind.as_str().into(),
                kind: SpanKind::Producer,
                start_us: held.since_ms.saturating_mul(1000),
                end_us: record.broker_ms.saturating_mul(1000),
                attributes: vec![
                    ("dualtrack.task_id", Value::Text(task.to_string().into())),
                    ("messaging.destination.partition.id", Value::Text(task.partition().to_string().into())),
                    ("messaging.kafka.offset", record.offset.0.into()),
                    ("dualtrack.event_sequence", event.event_sequence.0.into()),
                    ("dualtrack.run_no", event.run_no.0.into()),
                ],
                links: vec![TraceParent { trace_id, span_id: before, sampling }],
                error: (event.kind == Kind::TaskFailedPermanently).then(|| event.kind.as_str().into()),
            })
        });
    }

    fn own(&self, event: &Event, verdict: &Verdict) -> Option<Own<TaskId>> {
        let subject = event.task_id.filter(|_| event.producer == self.producer)?;
        let rejected = verdict.rejected().map(|reason| reason as u32);
        (event.kind.class() == KindClass::TaskEvent).then_some(Own { subject, event_id: event.event_id, rejected })
    }
}

// As its group is called, and so what metrics call it.
const fn name_of(service: Service) -> &'static str {
    match service {
        Service::Coordinator => "coordinator",
        Service::TaskEngine => "task-engine",
        Service::AutoReplay => "auto-replay",
        Service::AuditReport => "audit-report",
    }
}
