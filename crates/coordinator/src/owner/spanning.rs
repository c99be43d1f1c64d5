//! What the owner did for a task, as spans: data like every other effect, made only if somebody wants
//! them and the task's caller records its trace. Ids are derived, so that another owner goes on in the
//! same tree (schemas/decoding.md §7):
//!
//! ```text
//! whoever asked ─▶ TaskCreated ─┬─ attempt 1 ─┬─ TaskAssigned, hand-out, TaskStarted, … TaskFailed
//!                               │             └─ execute (the worker's)
//!                               ├─ TaskRetryApproved, TaskReplayPlanned, TaskRetried
//!                               └─ attempt 2 ─── …
//! ```

use spans::{Span, SpanKind, Value};
use task_core::{Record, Row};
use task_events::{
    Body, Event, EventSequence, ExecutionId, KindClass, Sampling, SpanId, TaskId, Text, TraceId, TraceParent,
};

use super::dispatching::HandOut;
use super::flight::InFlight;
use super::work::Origin;
use super::{Command, Effect, Now, Owner};

impl Owner {
    /// The same owner, which tells spans if `on`.
    #[must_use]
    pub fn tracing(mut self, on: bool) -> Self {
        self.traces = on;
        self
    }

    /// An own record was read back as accepted.
    pub(super) fn tell_record(&mut self, now: Now, record: &Record, own: &InFlight) {
        if !self.traces {
            return;
        }
        let spans = record.event.task_id.and_then(|task| {
            let (row, trace_id) = self.traced(task)?;
            Some([self.record_span(now, record, own, trace_id), attempt_span(now, &record.event, row, trace_id)])
        });
        let effects = spans.into_iter().flatten().flatten().map(|span| Effect::Span(Box::new(span)));
        self.out.extend(effects);
    }

    /// An attempt was handed to its worker.
    pub(super) fn tell_hand_out(&mut self, now: Now, task: TaskId, hand_out: &HandOut) {
        if !self.traces {
            return;
        }
        let Some((_, trace_id)) = self.traced(task) else { return };
        let attempt = SpanId::of_attempt(ExecutionId::new(task, hand_out.holder.exec_epoch));
        let span = Span {
            parent: Some(attempt),
            attributes: vec![
                ("dualtrack.task_id", Value::Text(task.to_string().into())),
                ("dualtrack.worker_id", Value::Text(hand_out.holder.worker_id.clone())),
                ("dualtrack.exec_epoch", hand_out.holder.exec_epoch.0.into()),
            ],
            ..spanning(now, hand_out.began_us, (trace_id, attempt.child("hand-out")), "hand-out", SpanKind::Producer)
        };
        self.out.push(Effect::Span(Box::new(span)));
    }

    // The row of a task whose trace is recorded, open or closed.
    fn traced(&self, task: TaskId) -> Option<(&Row, TraceId)> {
        let row = match (self.fold.tasks.get(task), self.owed.closed(task)) {
            (Some(slot), _) => slot.row.as_deref()?,
            (None, Some(closed)) => &*closed.row,
            (None, None) => return None,
        };
        row.sampling.is_recorded().then_some(())?;
        Some((row, TraceId::parse(row.trace_id.as_bytes())?))
    }

    fn record_span(&self, now: Now, record: &Record, own: &InFlight, trace_id: TraceId) -> Option<Span> {
        let event = &record.event;
        let task = event.task_id?;
        let asked = parent_of(&own.origin);
        let (parent, mut links) = match (&event.body, execution_of(&event.body)) {
            (Body::TaskCreated(_), _) => match asked {
                Some(asked) if asked.trace_id == trace_id => (Some(asked.span_id), Vec::new()),
                Some(asked) => (None, vec![asked]),
                None => (None, Vec::new()),
            },
            (_, Some(execution)) => (Some(SpanId::of_attempt(execution)), Vec::new()),
            (_, None) => (Some(SpanId::of_record(task, EventSequence(1))), Vec::new()),
        };
        links.extend(before(event, task, trace_id));
        let kind = event.kind.as_str();
        let mut attributes = vec![
            ("dualtrack.task_id", Value::Text(task.to_string().into())),
            ("messaging.destination.partition.id", Value::Text(self.partition().to_string().into())),
            ("messaging.kafka.offset", record.offset.0.into()),
            ("dualtrack.event_sequence", event.event_sequence.0.into()),
            ("dualtrack.run_no", event.run_no.0.into()),
        ];
        attributes.extend((event.exec_epoch.0 > 0).then_some(("dualtrack.exec_epoch", event.exec_epoch.0.into())));
        let span = spanning(now, own.appended_us, (trace_id, SpanId::of_event(event)?), kind, SpanKind::Producer);
        Some(Span { parent, links, attributes, error: error_of(&event.body), ..span })
    }
}

// From its assignment to the record that ends it.
fn attempt_span(now: Now, event: &Event, row: &Row, trace_id: TraceId) -> Option<Span> {
    let ends = matches!(
        event.body,
        Body::TaskCompleted(_)
            | Body::TaskFailed(_)
            | Body::TaskLost(_)
            | Body::TaskTimedOut(_)
            | Body::TaskReleased(_)
    );
    let execution = execution_of(&event.body).filter(|_| ends)?;
    let (task, exec_epoch) = execution.parts()?;
    let start_us = row.assigned_at?.saturating_mul(1000);
    Some(Span {
        trace_id,
        span_id: SpanId::of_attempt(execution),
        parent: Some(SpanId::of_record(task, EventSequence(1))),
        name: Text::const_new("attempt"),
        kind: SpanKind::Internal,
        start_us,
        // The assignment was stamped by the broker's clock.
        end_us: now.fine.wall_us.max(start_us),
        attributes: vec![
            ("dualtrack.task_id", Value::Text(task.to_string().into())),
            ("dualtrack.task_type", Value::Text(row.created.task_type.clone())),
            ("dualtrack.queue", Value::Text(row.created.queue.clone())),
            ("dualtrack.worker_id", Value::Text(row.worker_id.clone())),
            ("dualtrack.exec_epoch", exec_epoch.0.into()),
            ("dualtrack.outcome", Value::Text(Text::const_new(event.kind.as_str()))),
        ],
        links: Vec::new(),
        error: error_of(&event.body),
    })
}

// What began at a boot time and is over now.
fn spanning(
    now: Now,
    began_us: u64,
    (trace_id, span_id): (TraceId, SpanId),
    name: &'static str,
    kind: SpanKind,
) -> Span {
    let took = i64::try_from(now.fine.boot_us.saturating_sub(began_us)).unwrap_or(0);
    Span {
        trace_id,
        span_id,
        parent: None,
        name: Text::const_new(name),
        kind,
        start_us: now.fine.wall_us.saturating_sub(took),
        end_us: now.fine.wall_us,
        attributes: Vec::new(),
        links: Vec::new(),
        error: None,
    }
}

// The event that it follows.
fn before(event: &Event, task: TaskId, trace_id: TraceId) -> Option<TraceParent> {
    let number = event.event_sequence.0.checked_sub(1).filter(|number| *number > 0)?;
    let numbered = event.kind.class() == KindClass::TaskEvent;
    let span_id = SpanId::of_record(task, EventSequence(number));
    numbered.then_some(TraceParent { trace_id, span_id, sampling: Sampling::Recorded })
}

fn parent_of(origin: &Origin) -> Option<TraceParent> {
    let Origin::Create(job, _) = origin else { return None };
    let Command::Create(create) = &job.command else { return None };
    create.parent
}

fn execution_of(body: &Body) -> Option<ExecutionId> {
    body.execution_id().filter(|execution| *execution != ExecutionId::NONE)
}

fn error_of(body: &Body) -> Option<Text> {
    if let Body::TaskFailed(failed) = body {
        return Some(failed.error_code.clone());
    }
    let lost = matches!(body, Body::TaskLost(_) | Body::TaskTimedOut(_) | Body::TaskFailedPermanently(_));
    lost.then(|| Text::const_new(body.kind().as_str()))
}
