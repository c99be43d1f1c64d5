//! W3C trace context on the topic (design.md §3): every record written for a task carries the header
//! `traceparent`, whose parent id is the span of that record.
//!
//! Span ids are derived, not drawn: whoever folds the log knows the span of every record and attempt,
//! so a take-over, a restart or another service goes on in the same tree. The header is what any
//! writer of the topic may forge: nothing is ever decided by it but whether spans are recorded.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Event, EventSequence, ExecutionId, KindClass, TaskId};

/// Longest `traceparent` that is looked at, bytes: version 00 has 55, later ones may say more.
pub const MAX_TRACEPARENT_BYTES: usize = 128;

/// Whether the caller records the trace: the flag `sampled` of W3C trace context. Spans of a trace that
/// is not recorded are not exported, and everyone further on is told the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sampling {
    /// Recorded, or nobody said otherwise.
    #[default]
    Recorded,
    /// The caller said that it does not record.
    NotRecorded,
}

impl Sampling {
    /// Whether spans are recorded.
    pub const fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded)
    }
}

/// Identity of a trace: 16 bytes, not all 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// From its bytes; `None` if all are 0.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// From its text: 32 lower-case hexadecimal digits, not all 0.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::new(lower_hex(text)?)
    }

    /// Its bytes.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Identity of a span inside its trace: 8 bytes, not all 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

impl SpanId {
    /// From its bytes; `None` if all are 0.
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    // 0 is no span; one hash in 2^64 is moved.
    fn of_hash(hash: u64) -> Self {
        Self(hash.max(1).to_be_bytes())
    }

    /// The span of the task event that has this number: XXH3-64 over task id (8 bytes, big-endian) and
    /// event_sequence (4).
    pub fn of_record(task: TaskId, sequence: EventSequence) -> Self {
        let mut name = [0; 12];
        name[..8].copy_from_slice(&task.raw().to_be_bytes());
        name[8..].copy_from_slice(&sequence.0.to_be_bytes());
        Self::of_hash(xxh3_64(&name))
    }

    /// The span of the record of a task: that of its number for task events; annotations and rejected
    /// reports have no number of their own, theirs is XXH3-64 over the event_id.
    pub fn of_event(event: &Event) -> Option<Self> {
        let task = event.task_id?;
        Some(match event.kind.class() {
            KindClass::TaskEvent => Self::of_record(task, event.event_sequence),
            KindClass::Annotation | KindClass::Report | KindClass::Control | KindClass::Seal => {
                Self::of_hash(xxh3_64(&event.event_id.0))
            }
        })
    }

    /// The span of an attempt, from its assignment to its end: XXH3-64 over the 16 bytes of its
    /// execution_id.
    pub fn of_attempt(execution: ExecutionId) -> Self {
        Self::of_hash(xxh3_64(&execution.0))
    }

    /// A span that is one part of this one: XXH3-64 over its 8 bytes and the part's name.
    #[must_use]
    pub fn child(self, part: &str) -> Self {
        Self::of_hash(xxh3_64(&[&self.0, part.as_bytes()].concat()))
    }

    /// Its bytes.
    pub const fn bytes(self) -> [u8; 8] {
        self.0
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A `traceparent`: a span in its trace. Written as version 00; its text is its serialised form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// Trace.
    pub trace_id: TraceId,
    /// The span that whatever follows is part of.
    pub span_id: SpanId,
    /// Whether the caller records it.
    pub sampling: Sampling,
}

impl TraceParent {
    /// Reads a header; what cannot be read counts as absent, as the standard wants it.
    pub fn parse(header: &[u8]) -> Option<Self> {
        if header.len() > MAX_TRACEPARENT_BYTES || !header.is_ascii() {
            return None;
        }
        let mut parts = header.split(|byte| *byte == b'-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = lower_hex::<1>(version)?;
        if version == 0xff || version == 0 && parts.next().is_some() {
            return None;
        }
        let [flags] = lower_hex::<1>(flags)?;
        Some(Self {
            trace_id: TraceId::parse(trace)?,
            span_id: SpanId::new(lower_hex(span)?)?,
            sampling: if flags & 1 == 1 { Sampling::Recorded } else { Sampling::NotRecorded },
        })
    }

    /// What the record of this event says; `None` for records of no task, and of tasks without a trace.
    pub fn of_event(event: &Event, sampling: Sampling) -> Option<Self> {
        let trace_id = TraceId::parse(event.trace_id.as_bytes())?;
        Some(Self { trace_id, span_id: SpanId::of_event(event)?, sampling })
    }

    /// The one of headers, if it is there once.
    pub fn of_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Option<Self> {
        let mut named = headers.into_iter().filter(|(name, _)| *name == "traceparent");
        let (_, header) = named.next()?;
        if named.next().is_some() { None } else { Self::parse(header) }
    }

    /// The header's value.
    pub fn to_bytes(self) -> Bytes {
        Bytes::from(self.to_string())
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        let hex = |digits: &mut [u8], bytes: &[u8]| {
            for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
                pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
            }
        };
        hex(&mut text[3..35], &self.trace_id.0);
        hex(&mut text[36..52], &self.span_id.0);
        text[54] = if self.sampling.is_recorded() { b'1' } else { b'0' };
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = crate::Text::deserialize(deserializer)?;
        Self::parse(text.as_bytes()).ok_or_else(|| de::Error::custom("not a W3C traceparent"))
    }
}

const fn digit(nibble: u8) -> u8 {
    b"0123456789abcdef"[nibble as usize]
}

fn lower_hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let nibble = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExecEpoch;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn what_is_written_is_read_again() {
        for sampling in [Sampling::Recorded, Sampling::NotRecorded] {
            let trace_id = TraceId::parse(TRACE.as_bytes()).unwrap();
            let span_id = SpanId::of_record(TaskId::from_raw(42).unwrap(), EventSequence(7));
            let parent = TraceParent { trace_id, span_id, sampling };
            assert_eq!(TraceParent::parse(&parent.to_bytes()), Some(parent));
            let text = parent.to_string();
            assert_eq!((text.len(), &text[3..35], &text[36..52]), (55, TRACE, &*span_id.to_string()));
            let packed = serde_json::to_string(&parent).unwrap();
            assert_eq!(serde_json::from_str::<TraceParent>(&packed).unwrap(), parent);
        }
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        let of = |text: &str| TraceParent::parse(text.as_bytes());
        assert!(of(&format!("00-{TRACE}-00f067aa0ba902b7-01")).unwrap().sampling.is_recorded());
        assert!(!of(&format!("00-{TRACE}-00f067aa0ba902b7-02")).unwrap().sampling.is_recorded());
        assert!(of(&format!("01-{TRACE}-00f067aa0ba902b7-01-more")).is_some());
        for bad in [
            format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            format!("01-{TRACE}-00f067aa0ba902b7-01-{}", "x".repeat(MAX_TRACEPARENT_BYTES)),
            format!("00-{TRACE}-00f067aa0ba902b7"),
            format!("00-{TRACE}-00f067aa0ba902é-01"),
            TRACE.to_owned(),
            String::new(),
        ] {
            assert_eq!(of(&bad), None, "{bad}");
        }
        let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let twice = [("traceparent", good.as_bytes()), ("traceparent", good.as_bytes())];
        assert_eq!(TraceParent::of_headers(twice), None);
        assert!(TraceParent::of_headers(twice[..1].iter().copied()).is_some());
    }

    // What other languages compute from schemas/decoding.md §7.
    #[test]
    fn spans_are_those_of_the_document() {
        let task = TaskId::from_raw(381_500_000_000_000_001).unwrap();
        let record = SpanId::of_record(task, EventSequence(3));
        let attempt = SpanId::of_attempt(ExecutionId::new(task, ExecEpoch(1)));
        let document = include_str!("../../../schemas/decoding.md");
        for span in [record, attempt] {
            assert!(document.contains(&span.to_string()), "{span} is not in schemas/decoding.md");
        }
    }
}
