//! Between our spans and OpenTelemetry's.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Link, SpanContext, SpanKind as OtelKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId, TraceId};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use spans::{Span, SpanKind, Value};
use task_events::{Sampling, TraceParent};

/// The library that spans are by.
pub(crate) struct Scope(InstrumentationScope);

impl Scope {
    pub(crate) fn new(version: &str) -> Self {
        Self(InstrumentationScope::builder("dualtrack").with_version(version.to_owned()).build())
    }
}

pub(crate) fn span_data(span: Span, scope: &Scope) -> SpanData {
    let context = TraceParent { trace_id: span.trace_id, span_id: span.span_id, sampling: Sampling::Recorded };
    let mut links = SpanLinks::default();
    links.links = span.links.into_iter().map(|to| Link::new(span_context(to, true), Vec::new(), 0)).collect();
    SpanData {
        span_context: span_context(context, false),
        parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.bytes())),
        // What our parents are, a service cannot know: most are another process's.
        parent_span_is_remote: span.parent.is_some(),
        span_kind: kind(span.kind),
        name: Cow::Owned(span.name.into_string()),
        start_time: time(span.start_us),
        end_time: time(span.end_us.max(span.start_us)),
        attributes: span.attributes.into_iter().map(|(name, value)| attribute(name, value)).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status: span.error.map_or(Status::Unset, |why| Status::error(why.into_string())),
        instrumentation_scope: scope.0.clone(),
    }
}

fn span_context(of: TraceParent, is_remote: bool) -> SpanContext {
    let flags = if of.sampling.is_recorded() { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace, span) = (TraceId::from_bytes(of.trace_id.bytes()), SpanId::from_bytes(of.span_id.bytes()));
    SpanContext::new(trace, span, flags, is_remote, TraceState::default())
}

const fn kind(kind: SpanKind) -> OtelKind {
    match kind {
        SpanKind::Internal => OtelKind::Internal,
        SpanKind::Server => OtelKind::Server,
        SpanKind::Client => OtelKind::Client,
        SpanKind::Producer => OtelKind::Producer,
        SpanKind::Consumer => OtelKind::Consumer,
    }
}

fn attribute(name: &'static str, value: Value) -> KeyValue {
    match value {
        Value::Text(text) => KeyValue::new(name, text.into_string()),
        Value::Number(number) => KeyValue::new(name, number),
    }
}

// Nothing of ours was before 1970.
fn time(unix_us: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(unix_us).unwrap_or(0))
}
