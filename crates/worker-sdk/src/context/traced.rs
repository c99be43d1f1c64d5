//! What a handler did, as spans of its task's trace.

use std::sync::Arc;

use spans::{Span, SpanKind, Spans, Value};
use task_events::{SpanId, Text, TraceParent};
use worker_protocol::Assignment;

/// Reads the clocks: Unix and boot, µs.
type Clocks = Arc<dyn Fn() -> (i64, u64) + Send + Sync>;

/// Where the spans of an attempt go.
#[derive(Clone)]
pub(crate) struct Traced {
    spans: Spans,
    clocks: Clocks,
    /// The attempt, if its trace is recorded and somebody wants spans.
    attempt: Option<TraceParent>,
}

/// Something that began and is told when it is dropped, whatever ended it.
pub(crate) struct Doing {
    traced: Traced,
    attempt: TraceParent,
    began: (i64, u64),
    span_id: SpanId,
    parent: SpanId,
    name: &'static str,
    attributes: Vec<(&'static str, Value)>,
    /// Why it failed; that it was cut off until it says otherwise.
    error: Option<Text>,
}

impl Traced {
    pub(crate) fn new(spans: &Spans, clocks: Clocks, assignment: &Assignment) -> Self {
        let attempt = assignment.traceparent.filter(|attempt| spans.is_on() && attempt.sampling.is_recorded());
        Self { spans: spans.clone(), clocks, attempt }
    }

    // The execution is a part of the attempt, which the owner tells of.
    fn execution(attempt: TraceParent) -> SpanId {
        attempt.span_id.child("execute")
    }

    /// The span that what the handler asks others to do is part of.
    pub(crate) fn inside(&self, assignment: &Assignment) -> Option<TraceParent> {
        match self.attempt {
            Some(attempt) => Some(TraceParent { span_id: Self::execution(attempt), ..attempt }),
            None => assignment.traceparent,
        }
    }

    /// The handler is entered.
    pub(crate) fn execute(&self, assignment: &Assignment) -> Option<Doing> {
        let attempt = self.attempt?;
        let attributes = vec![
            ("dualtrack.task_id", Value::Text(assignment.task_id.to_string().into())),
            ("dualtrack.task_type", Value::Text(assignment.task_type.clone())),
            ("dualtrack.exec_epoch", assignment.attempt.exec_epoch.0.into()),
        ];
        self.doing(attempt, (Self::execution(attempt), attempt.span_id), "execute", attributes)
    }

    /// A step is entered.
    pub(crate) fn step(&self, name: &Text) -> Option<Doing> {
        let attempt = self.attempt?;
        let execution = Self::execution(attempt);
        let attributes = vec![("dualtrack.step", Value::Text(name.clone()))];
        self.doing(attempt, (execution.child(name), execution), "step", attributes)
    }

    fn doing(
        &self,
        attempt: TraceParent,
        (span_id, parent): (SpanId, SpanId),
        name: &'static str,
        attributes: Vec<(&'static str, Value)>,
    ) -> Option<Doing> {
        let error = Some(Text::const_new("STOPPED"));
        let began = (self.clocks)();
        Some(Doing { traced: self.clone(), attempt, began, span_id, parent, name, attributes, error })
    }
}

impl Doing {
    /// It came to its end, well or with a code.
    pub(crate) fn ended(mut self, error: Option<Text>) {
        self.error = error;
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        let ((wall_us, boot_us), (_, now_us)) = (self.began, (self.traced.clocks)());
        let took = i64::try_from(now_us.saturating_sub(boot_us)).unwrap_or(0);
        let (attributes, error) = (std::mem::take(&mut self.attributes), self.error.take());
        let (trace_id, span_id, parent) = (self.attempt.trace_id, self.span_id, Some(self.parent));
        let kind = if self.name == "execute" { SpanKind::Consumer } else { SpanKind::Internal };
        self.traced.spans.take(|| {
            Some(Span {
                trace_id,
                span_id,
                parent,
                name: Text::const_new(self.name),
                kind,
                start_us: wall_us,
                end_us: wall_us.saturating_add(took),
                attributes,
                links: Vec::new(),
                error,
            })
        });
    }
}
