//! Bytes on disk: the header of a segment and the entries behind it. Pure; no I/O.
//!
//! ```text
//! segment   magic 8 | version u16 | partitions u16 | header_len u32 | log id 16 | number u64
//!           | created_ms i64 | previous segment's length u64 | base offset u64 per partition | crc32c u32
//! entry     magic u16 | kind u8 | flags u8 | body_len u32 | partition u16 | header_count u16
//!           | offset u64 | broker_ms i64 | key_len u32 | body crc32c u32 | header crc32c u32
//!           | body (key, headers, value) | trailer u8
//! ```
//!
//! All numbers are little-endian. The header crc also covers the log id, the segment number and
//! the entry's own position, so a copy of an entry (a log file carried as a payload, a block that
//! the disk wrote elsewhere) is never taken for one when recovery looks ahead for valid entries.
//!
//! A *mark* is an entry without a body that says: everything before me is on disk. It is written
//! after the fsync of a batch and before the acknowledgement, so damage of anything acknowledged
//! is always followed by a mark and can't pass for a torn tail.

use task_events::{Offset, PartitionId};
use uuid::Uuid;

/// First bytes of every segment.
pub(super) const SEGMENT_MAGIC: [u8; 8] = *b"DTEVLOG1";
/// Format version of segments.
const VERSION: u16 = 1;
/// Bytes of a segment header before the base offsets.
const FIXED_HEADER: usize = 56;
/// Bytes of an entry header.
pub(super) const ENTRY_HEADER: usize = 40;
/// First two bytes of an entry; neither is zero, so a lost sector is told from a written one.
pub(super) const ENTRY_MAGIC: [u8; 2] = [0xD7, 0xE1];
/// Last byte of an entry; not zero, for the same reason.
pub(super) const TRAILER: u8 = 0x5A;
/// Largest body that is taken for one; far above what the writer lets through.
pub(super) const MAX_BODY: u32 = 16 * 1024 * 1024;

const KIND_RECORD: u8 = 1;
const KIND_MARK: u8 = 2;
const FLAG_KEY: u8 = 1;
const FLAG_VALUE: u8 = 2;

/// Header of a segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub log_id: Uuid,
    pub number: u64,
    pub created_ms: i64,
    /// Final length of the segment before this one; 0 for the first.
    pub previous_len: u64,
    /// Next offset of every partition when the segment was opened.
    pub bases: Vec<u64>,
}

impl SegmentHeader {
    /// Bytes of a header for this many partitions.
    pub fn len_for(partitions: u16) -> usize {
        FIXED_HEADER + usize::from(partitions) * 8 + 4
    }

    pub fn encode(&self) -> Vec<u8> {
        let partitions = self.bases.len() as u16;
        let len = Self::len_for(partitions);
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(&SEGMENT_MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&partitions.to_le_bytes());
        out.extend_from_slice(&(len as u32).to_le_bytes());
        out.extend_from_slice(self.log_id.as_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.created_ms.to_le_bytes());
        out.extend_from_slice(&self.previous_len.to_le_bytes());
        for base in &self.bases {
            out.extend_from_slice(&base.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes the header at the start of `bytes`; the error says what does not match.
    pub fn decode(bytes: &[u8], partitions: u16) -> Result<Self, String> {
        let len = Self::len_for(partitions);
        let Some(bytes) = bytes.get(..len) else {
            return Err(format!("segment header needs {len} bytes, the file has {}", bytes.len()));
        };
        let crc = u32_at(bytes, len - 4);
        if crc32c::crc32c(&bytes[..len - 4]) != crc {
            return Err("segment header does not match its crc32c".into());
        }
        if bytes[..8] != SEGMENT_MAGIC || u16_at(bytes, 8) != VERSION {
            return Err("not a segment of format 1".into());
        }
        if u16_at(bytes, 10) != partitions || u32_at(bytes, 12) as usize != len {
            return Err(format!("segment holds {} partitions, not {partitions}", u16_at(bytes, 10)));
        }
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[16..32]);
        Ok(Self {
            log_id: Uuid::from_bytes(id),
            number: u64_at(bytes, 32),
            created_ms: u64_at(bytes, 40) as i64,
            previous_len: u64_at(bytes, 48),
            bases: (0..usize::from(partitions)).map(|p| u64_at(bytes, FIXED_HEADER + p * 8)).collect(),
        })
    }

    /// What the crc of each entry header starts from.
    pub fn salt(&self) -> u32 {
        salt(self.log_id, self.number)
    }
}

/// What the crc of each entry header of a segment starts from.
pub(super) fn salt(log_id: Uuid, number: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(log_id.as_bytes()), &number.to_le_bytes())
}

/// Header of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryHeader {
    /// A mark instead of a record; `offset` then counts the marks of the segment.
    pub mark: bool,
    pub partition: PartitionId,
    pub offset: Offset,
    pub broker_ms: i64,
    pub shape: Shape,
}

/// What the body of an entry looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub body_len: u32,
    pub has_key: bool,
    pub has_value: bool,
    pub header_count: u16,
    pub key_len: u32,
    pub body_crc: u32,
}

impl EntryHeader {
    /// A mark; `count` is information only.
    pub fn mark(count: u64, broker_ms: i64) -> Self {
        let shape = Shape { body_len: 0, has_key: false, has_value: false, header_count: 0, key_len: 0, body_crc: 0 };
        Self { mark: true, partition: PartitionId(0), offset: Offset(count), broker_ms, shape }
    }

    /// Bytes from the first of the header to the trailer.
    pub fn entry_len(&self) -> u64 {
        ENTRY_HEADER as u64 + u64::from(self.shape.body_len) + 1
    }

    pub fn encode(&self, salt: u32, position: u64) -> [u8; ENTRY_HEADER] {
        let mut out = [0; ENTRY_HEADER];
        out[..2].copy_from_slice(&ENTRY_MAGIC);
        out[2] = if self.mark { KIND_MARK } else { KIND_RECORD };
        out[3] = if self.shape.has_key { FLAG_KEY } else { 0 } | if self.shape.has_value { FLAG_VALUE } else { 0 };
        out[4..8].copy_from_slice(&self.shape.body_len.to_le_bytes());
        out[8..10].copy_from_slice(&self.partition.0.to_le_bytes());
        out[10..12].copy_from_slice(&self.shape.header_count.to_le_bytes());
        out[12..20].copy_from_slice(&self.offset.0.to_le_bytes());
        out[20..28].copy_from_slice(&self.broker_ms.to_le_bytes());
        out[28..32].copy_from_slice(&self.shape.key_len.to_le_bytes());
        out[32..36].copy_from_slice(&self.shape.body_crc.to_le_bytes());
        let crc = header_crc(&out[..36], salt, position);
        out[36..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None` unless the bytes are an entry header that was written at exactly this position.
    pub fn decode(bytes: &[u8], salt: u32, position: u64) -> Option<Self> {
        let bytes = bytes.get(..ENTRY_HEADER)?;
        if bytes[..2] != ENTRY_MAGIC || header_crc(&bytes[..36], salt, position) != u32_at(bytes, 36) {
            return None;
        }
        let body_len = u32_at(bytes, 4);
        let known = matches!(bytes[2], KIND_RECORD | KIND_MARK) && bytes[3] <= FLAG_KEY | FLAG_VALUE;
        if !known || body_len > MAX_BODY {
            return None;
        }
        Some(Self {
            mark: bytes[2] == KIND_MARK,
            partition: PartitionId(u16_at(bytes, 8)),
            offset: Offset(u64_at(bytes, 12)),
            broker_ms: u64_at(bytes, 20) as i64,
            shape: Shape {
                body_len,
                has_key: bytes[3] & FLAG_KEY != 0,
                has_value: bytes[3] & FLAG_VALUE != 0,
                header_count: u16_at(bytes, 10),
                key_len: u32_at(bytes, 28),
                body_crc: u32_at(bytes, 32),
            },
        })
    }
}

fn header_crc(fields: &[u8], salt: u32, position: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(salt, fields), &position.to_le_bytes())
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut raw = [0; 4];
    raw.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(raw)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_header_is_valid_at_its_own_place_only() {
        let shape = Shape { body_len: 9, has_key: true, has_value: false, header_count: 2, key_len: 3, body_crc: 77 };
        let header = EntryHeader { mark: false, partition: PartitionId(3), offset: Offset(9), broker_ms: -5, shape };
        let salt_here = salt(Uuid::from_u128(1), 1);
        let bytes = header.encode(salt_here, 4096);
        assert_eq!(EntryHeader::decode(&bytes, salt_here, 4096), Some(header));
        assert_eq!(EntryHeader::decode(&bytes, salt_here, 4097), None);
        assert_eq!(EntryHeader::decode(&bytes, salt(Uuid::from_u128(1), 2), 4096), None);
        assert_eq!(EntryHeader::decode(&bytes[..39], salt_here, 4096), None);
    }

    #[test]
    fn a_segment_header_survives_the_round_trip_and_no_flip() {
        let header = SegmentHeader {
            log_id: Uuid::from_u128(9),
            number: 4,
            created_ms: 12,
            previous_len: 900,
            bases: vec![0, 7, 8],
        };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes, 3), Ok(header));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert!(SegmentHeader::decode(&bad, 3).is_err(), "flip at {at}");
        }
    }
}
