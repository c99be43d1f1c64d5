//! The body of an entry: key, headers and value, encoded where the append is called so that the
//! one writer thread has only headers to fill in. Pure; no I/O.

use bytes::{BufMut, Bytes};

use super::format::{EntryHeader, Shape};
use crate::{OutRecord, RawRecord};

/// A batch ready for the writer: the bodies behind each other, and what each looks like.
#[derive(Debug, Default)]
pub(super) struct EncodedBatch {
    pub bodies: Vec<u8>,
    pub shapes: Vec<Shape>,
}

impl EncodedBatch {
    /// Encodes a batch; refuses a record whose body is larger than `max_record_bytes`.
    pub fn encode(batch: &[OutRecord], max_record_bytes: usize) -> Result<Self, String> {
        let size = |r: &OutRecord| {
            r.key.len()
                + r.value.len()
                + r.headers.iter().map(|(name, value)| 6 + name.len() + value.len()).sum::<usize>()
        };
        let mut out =
            Self { bodies: Vec::with_capacity(batch.iter().map(size).sum()), shapes: Vec::with_capacity(batch.len()) };
        for record in batch {
            let headers = record.headers.iter().map(|(name, value)| (*name, value));
            out.push(Some(&record.key), headers, Some(&record.value), max_record_bytes)?;
        }
        Ok(out)
    }

    /// Encodes what a foreign writer might have written: any part may be missing.
    pub fn encode_foreign(record: &RawRecord, max_record_bytes: usize) -> Result<Self, String> {
        let mut out = Self::default();
        let headers = record.headers.iter().map(|(name, value)| (name.as_str(), value));
        out.push(record.key.as_ref(), headers, record.value.as_ref(), max_record_bytes)?;
        Ok(out)
    }

    fn push<'a>(
        &mut self,
        key: Option<&Bytes>,
        headers: impl ExactSizeIterator<Item = (&'a str, &'a Bytes)>,
        value: Option<&Bytes>,
        max_record_bytes: usize,
    ) -> Result<(), String> {
        let header_count = u16::try_from(headers.len())
            .map_err(|_| format!("record with {} headers exceeds the limit of {}", headers.len(), u16::MAX))?;
        let from = self.bodies.len();
        self.bodies.put_slice(key.map_or(&[], |key| key));
        for (name, value) in headers {
            let name_len = u16::try_from(name.len())
                .map_err(|_| format!("header name of {} bytes exceeds the limit of {}", name.len(), u16::MAX))?;
            self.bodies.put_u16_le(name_len);
            self.bodies.put_u32_le(u32::try_from(value.len()).unwrap_or(u32::MAX));
            self.bodies.put_slice(name.as_bytes());
            self.bodies.put_slice(value);
        }
        self.bodies.put_slice(value.map_or(&[], |value| value));
        let body = &self.bodies[from..];
        if body.len() > max_record_bytes {
            return Err(format!("record of {} bytes exceeds the limit of {max_record_bytes}", body.len()));
        }
        self.shapes.push(Shape {
            body_len: body.len() as u32,
            has_key: key.is_some(),
            has_value: value.is_some(),
            header_count,
            key_len: key.map_or(0, Bytes::len) as u32,
            body_crc: crc32c::crc32c(body),
        });
        Ok(())
    }
}

/// Decodes a body whose crc was checked. `None` when the lengths contradict each other.
///
/// The record gets an allocation of its own: whoever keeps a value for long must not keep the
/// whole read chunk alive with it.
pub(super) fn decode(header: &EntryHeader, body: &[u8]) -> Option<RawRecord> {
    let body = Bytes::copy_from_slice(body);
    let mut at = header.shape.key_len as usize;
    let key = body.get(..at)?.len();
    let mut headers = Vec::with_capacity(usize::from(header.shape.header_count));
    for _ in 0..header.shape.header_count {
        let lengths = body.get(at..at + 6)?;
        let name_len = usize::from(super::format::u16_at(lengths, 0));
        let value_len = super::format::u32_at(lengths, 2) as usize;
        at += 6;
        let name = std::str::from_utf8(body.get(at..at + name_len)?).ok()?.to_owned();
        at += name_len;
        body.get(at..at + value_len)?;
        headers.push((name, body.slice(at..at + value_len)));
        at += value_len;
    }
    body.get(at..)?;
    Some(RawRecord {
        partition: header.partition,
        offset: header.offset,
        broker_ms: header.broker_ms,
        key: header.shape.has_key.then(|| body.slice(..key)),
        headers,
        value: header.shape.has_value.then(|| body.slice(at..)),
    })
}
