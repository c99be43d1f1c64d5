//! The headers of a record (`schemas/decoding.md` §1): exactly once each, whatever else is there.

use bytes::Bytes;

use crate::{Event, Sampling, TraceParent};

#[derive(Default)]
enum Slot<'a> {
    #[default]
    Absent,
    Once(&'a [u8]),
    Repeated,
}

impl<'a> Slot<'a> {
    fn note(&mut self, content: &'a [u8]) {
        *self = match self {
            Self::Absent => Self::Once(content),
            Self::Once(_) | Self::Repeated => Self::Repeated,
        };
    }
    fn single(&self) -> Option<&'a [u8]> {
        match self {
            Self::Once(content) => Some(content),
            Self::Absent | Self::Repeated => None,
        }
    }
}

/// The headers that a decoder looks at.
#[derive(Default)]
pub(super) struct Headers<'a> {
    crc: Slot<'a>,
    kind: Slot<'a>,
    rules: Slot<'a>,
}

impl<'a> Headers<'a> {
    pub(super) fn read(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut found = Self::default();
        for (name, content) in headers {
            match name {
                "crc32c" => found.crc.note(content),
                "kind" => found.kind.note(content),
                "rule-version" => found.rules.note(content),
                _ => {}
            }
        }
        found
    }

    /// The stated checksum, if it is stated once and well.
    pub(super) fn crc(&self) -> Option<u32> {
        let text = self.crc.single()?;
        let lower_hex = text.len() == 8 && text.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if lower_hex { u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok() } else { None }
    }

    /// Whether `kind` and `rule-version` are those of the envelope.
    pub(super) fn fit(&self, event: &Event) -> bool {
        self.kind.single() == Some(event.kind.as_str().as_bytes())
            && self.rules.single().is_some_and(|r| is_decimal(r, event.rule_version.0))
    }
}

/// The headers of a record, in wire order.
pub(super) fn write(event: &Event, value: &[u8], sampling: Sampling) -> Vec<(&'static str, Bytes)> {
    let mut headers = Vec::with_capacity(4);
    headers.extend([
        ("kind", Bytes::from_static(event.kind.as_str().as_bytes())),
        ("rule-version", decimal(event.rule_version.0)),
        ("crc32c", Bytes::copy_from_slice(&lower_hex(crc32c::crc32c(value)))),
    ]);
    let parent = TraceParent::of_event(event, sampling);
    headers.extend(parent.map(|parent| ("traceparent", parent.to_bytes())));
    headers
}

// Rule versions are small for years; a digit needs no allocation.
fn decimal(number: u32) -> Bytes {
    const DIGITS: &[u8; 10] = b"0123456789";
    match DIGITS.get(number as usize..=number as usize) {
        Some(digit) => Bytes::from_static(digit),
        None => Bytes::from(number.to_string()),
    }
}

fn lower_hex(crc: u32) -> [u8; 8] {
    std::array::from_fn(|i| b"0123456789abcdef"[(crc >> (28 - 4 * i)) as usize & 0xf])
}

fn is_decimal(text: &[u8], number: u32) -> bool {
    let canonical = text == b"0" || (!text.starts_with(b"0") && text.iter().all(u8::is_ascii_digit));
    canonical && std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()) == Some(number)
}
