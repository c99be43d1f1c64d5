//! Where the records of a segment are. The index of the newest segment is in memory, that of
//! every older one in a file beside it (`.idx`), read partition by partition when needed: memory
//! stays flat however long the log grows. An index file is derived: never synced, checked by
//! crc32c, rebuilt from its segment when missing or wrong.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use uuid::Uuid;

use super::format::{u32_at, u64_at};

const MAGIC: [u8; 8] = *b"DTEVIDX1";
const FIXED: usize = 48;
const PER_PARTITION: usize = 28;
const SLOT: usize = 12;

/// Place and time of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// Byte position of the entry in its segment.
    pub position: u32,
    /// Bytes of the whole entry.
    pub len: u32,
    /// Broker time less the segment's base time, ms.
    pub ms: i32,
}

/// Records of one partition in one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartitionIndex {
    /// Offset of the first slot.
    pub base: u64,
    pub slots: Vec<Slot>,
    /// Highest broker time, `i64::MIN` without records.
    pub max_ms: i64,
}

impl PartitionIndex {
    pub fn new(base: u64) -> Self {
        Self { base, slots: Vec::new(), max_ms: i64::MIN }
    }

    /// Offset the next record will get.
    pub fn end(&self) -> u64 {
        self.base + self.slots.len() as u64
    }
}

/// Index of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentIndex {
    /// Broker time that [`Slot::ms`] counts from, Unix ms.
    pub base_ms: i64,
    pub partitions: Vec<PartitionIndex>,
}

impl SegmentIndex {
    pub fn new(base_ms: i64, bases: &[u64]) -> Self {
        Self { base_ms, partitions: bases.iter().map(|&base| PartitionIndex::new(base)).collect() }
    }

    /// Whether a record of this time fits the segment's 32-bit times.
    pub fn takes(&self, broker_ms: i64) -> bool {
        i32::try_from(broker_ms.wrapping_sub(self.base_ms)).is_ok()
    }

    pub fn push(&mut self, partition: usize, position: u64, len: u64, broker_ms: i64) {
        let index = &mut self.partitions[partition];
        let ms = broker_ms.saturating_sub(self.base_ms).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        index.slots.push(Slot { position: position as u32, len: len as u32, ms });
        index.max_ms = index.max_ms.max(broker_ms);
    }

    /// What stays in memory of a segment that is full.
    pub fn summary(&self) -> Summary {
        let mut at = FIXED + self.partitions.len() * PER_PARTITION + 4;
        let partitions = self.partitions.iter().map(|p| {
            let part = PartSummary {
                base: p.base,
                count: p.slots.len() as u32,
                max_ms: p.max_ms,
                at: at as u64,
                crc: crc32c::crc32c(&slot_bytes(&p.slots)),
            };
            at += p.slots.len() * SLOT;
            part
        });
        Summary { base_ms: self.base_ms, partitions: partitions.collect() }
    }

    /// Bytes of the index file.
    pub fn encode(&self, log_id: Uuid, number: u64, segment_len: u64) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(log_id.as_bytes());
        for field in [number, segment_len, self.base_ms as u64] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        for part in self.summary().partitions {
            out.extend_from_slice(&part.base.to_le_bytes());
            out.extend_from_slice(&part.count.to_le_bytes());
            out.extend_from_slice(&part.max_ms.to_le_bytes());
            out.extend_from_slice(&part.crc.to_le_bytes());
            out.extend_from_slice(&0u32.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        for part in &self.partitions {
            out.extend_from_slice(&slot_bytes(&part.slots));
        }
        out
    }
}

/// What stays in memory of a segment that is full: 40 bytes per partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub base_ms: i64,
    pub partitions: Vec<PartSummary>,
}

/// One partition of a [`Summary`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartSummary {
    pub base: u64,
    pub count: u32,
    pub max_ms: i64,
    at: u64,
    crc: u32,
}

impl PartSummary {
    pub fn end(&self) -> u64 {
        self.base + u64::from(self.count)
    }
}

impl Summary {
    /// Reads the head of an index file; `None` when it isn't the index of exactly this segment.
    pub fn load(path: &Path, log_id: Uuid, number: u64, segment_len: u64, partitions: usize) -> Option<Self> {
        let file = File::open(path).ok()?;
        let head = FIXED + partitions * PER_PARTITION;
        let mut bytes = vec![0; head + 4];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let ours = bytes[..8] == MAGIC
            && bytes[8..24] == *log_id.as_bytes()
            && u64_at(&bytes, 24) == number
            && u64_at(&bytes, 32) == segment_len;
        if !ours || crc32c::crc32c(&bytes[..head]) != u32_at(&bytes, head) {
            return None;
        }
        let mut at = head as u64 + 4;
        let mut parts = Vec::with_capacity(partitions);
        for p in 0..partitions {
            let from = FIXED + p * PER_PARTITION;
            let count = u32_at(&bytes, from + 8);
            parts.push(PartSummary {
                base: u64_at(&bytes, from),
                count,
                max_ms: u64_at(&bytes, from + 12) as i64,
                at,
                crc: u32_at(&bytes, from + 20),
            });
            at += u64::from(count) * SLOT as u64;
        }
        Some(Self { base_ms: u64_at(&bytes, 40) as i64, partitions: parts })
    }

    /// Reads one partition's slots from the index file. `Ok(None)`: the file is not this index.
    pub fn slots(&self, path: &Path, partition: usize) -> io::Result<Option<Vec<Slot>>> {
        let part = &self.partitions[partition];
        let mut bytes = vec![0; part.count as usize * SLOT];
        match File::open(path).and_then(|file| file.read_exact_at(&mut bytes, part.at)) {
            Ok(()) if crc32c::crc32c(&bytes) == part.crc => {}
            Ok(()) => return Ok(None),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let slot = |raw: &[u8]| Slot { position: u32_at(raw, 0), len: u32_at(raw, 4), ms: u32_at(raw, 8) as i32 };
        Ok(Some(bytes.chunks_exact(SLOT).map(slot).collect()))
    }
}

fn slot_bytes(slots: &[Slot]) -> Vec<u8> {
    let mut out = Vec::with_capacity(slots.len() * SLOT);
    for slot in slots {
        out.extend_from_slice(&slot.position.to_le_bytes());
        out.extend_from_slice(&slot.len.to_le_bytes());
        out.extend_from_slice(&slot.ms.to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_file_gives_back_what_was_indexed() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("1.idx");
        let mut index = SegmentIndex::new(1_000, &[5, 0]);
        index.push(0, 100, 50, 1_001);
        index.push(0, 150, 60, 999);
        index.push(1, 210, 70, 1_005);
        let id = Uuid::from_u128(3);
        std::fs::write(&path, index.encode(id, 1, 280)).expect("write");
        let summary = Summary::load(&path, id, 1, 280, 2).expect("own index");
        assert_eq!(summary, index.summary());
        for p in 0..2 {
            assert_eq!(summary.slots(&path, p).expect("read"), Some(index.partitions[p].slots.clone()));
        }
        assert_eq!(Summary::load(&path, id, 2, 280, 2), None);
        assert_eq!(Summary::load(&path, id, 1, 281, 2), None);
    }
}
