//! Spans as plain data: what a service did for a trace, from when to when. Whoever has finished
//! something hands a [`Span`] to [`Spans`]; where it goes from there is the process's matter (`telemetry`
//! exports it by OTLP, a test keeps it).
//!
//! A span here is never a scope of code. What Dualtrack does for a task begins in one process and is
//! settled when its record is read back, perhaps after a restart, so ids are derived
//! ([`task_events::SpanId`]) and both times are given when it is over.

use std::fmt;
use std::sync::Arc;

use task_events::{SpanId, Text, TraceId, TraceParent};

/// What part of a conversation a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside a service.
    Internal,
    /// A request that was answered.
    Server,
    /// A request that was made.
    Client,
    /// A record that was written to the topic.
    Producer,
    /// Work that a record of the topic asked for.
    Consumer,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Text.
    Text(Text),
    /// Number.
    Number(i64),
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Value {
    /// Beyond 2^63 − 1 it stays there.
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Something that is over. Ids and names of tasks and workers only, never a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Trace it belongs to.
    pub trace_id: TraceId,
    /// Its identity in the trace.
    pub span_id: SpanId,
    /// What it is part of; `None` for the first of a trace.
    pub parent: Option<SpanId>,
    /// Few different ones: kinds of events, endpoints, never ids.
    pub name: Text,
    /// Part of a conversation.
    pub kind: SpanKind,
    /// Unix µs.
    pub start_us: i64,
    /// Unix µs; not before the start.
    pub end_us: i64,
    /// What it was about.
    pub attributes: Vec<(&'static str, Value)>,
    /// Spans of this or other traces that led to it.
    pub links: Vec<TraceParent>,
    /// What went wrong, if anything did: a code, no free text.
    pub error: Option<Text>,
}

/// Takes spans. Never waits and never fails: what cannot be taken is dropped and counted.
pub trait SpanSink: Send + Sync {
    /// Takes one.
    fn take(&self, span: Span);
}

/// Where spans go. Clones share it; the default takes none and costs a look at a pointer.
#[derive(Clone, Default)]
pub struct Spans(Option<Arc<dyn SpanSink>>);

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Spans(on)" } else { "Spans(off)" })
    }
}

impl Spans {
    /// Spans go there.
    pub fn to(sink: impl SpanSink + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Whether anybody wants them.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Hands a span over, if anybody wants it: it is made only then.
    pub fn take(&self, make: impl FnOnce() -> Option<Span>) {
        if let Some(sink) = &self.0
            && let Some(span) = make()
        {
            sink.take(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    struct Kept(Arc<Mutex<Vec<Span>>>);

    impl SpanSink for Kept {
        fn take(&self, span: Span) {
            self.0.lock().push(span);
        }
    }

    #[test]
    fn a_span_is_made_only_if_somebody_wants_it() {
        Spans::default().take(|| unreachable!("nobody wants it"));
        let kept = Arc::<Mutex<Vec<Span>>>::default();
        let spans = Spans::to(Kept(kept.clone())).clone();
        spans.take(|| None);
        spans.take(|| {
            Some(Span {
                trace_id: TraceId::new([1; 16])?,
                span_id: SpanId::new([2; 8])?,
                parent: None,
                name: "TaskCreated".into(),
                kind: SpanKind::Producer,
                start_us: 1,
                end_us: 2,
                attributes: vec![("offset", 7u64.into())],
                links: Vec::new(),
                error: None,
            })
        });
        assert_eq!(kept.lock().len(), 1);
        assert!(spans.is_on() && !Spans::default().is_on());
    }
}
