//! Walks a segment entry by entry and rebuilds its index. It stops at the first byte that doesn't
//! fit; what that means (torn tail or damage) is decided in `damage.rs`, never here.

use std::fs::File;
use std::io;

use super::format::{ENTRY_HEADER, EntryHeader, SegmentHeader, TRAILER};
use super::index::SegmentIndex;
use super::window::Window;

/// What a scan found.
pub(super) struct Scan {
    pub index: SegmentIndex,
    /// One past the last whole entry.
    pub end: u64,
    /// Why the scan stopped before the end of the file.
    pub bad: Option<Bad>,
    /// Number of marks.
    pub marks: u64,
    /// The last whole entry is a mark.
    pub ends_with_mark: bool,
}

/// The entry at [`Scan::end`] is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bad {
    pub kind: BadKind,
    pub reason: String,
    /// Header of the bad entry, when at least that is whole.
    pub header: Option<EntryHeader>,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadKind {
    /// The file ends inside it.
    Short,
    /// All bytes are there and don't fit their checksum.
    Checksum,
    /// The entry is whole and does not belong here.
    Sequence,
}

impl Bad {
    fn new(kind: BadKind, header: Option<EntryHeader>, reason: impl Into<String>) -> Option<Self> {
        Some(Self { kind, reason: reason.into(), header })
    }
}

/// Scans the entries behind the header of a segment.
pub(super) fn scan(file: &File, header: &SegmentHeader) -> io::Result<Scan> {
    let mut window = Window::new(file)?;
    let salt = header.salt();
    let start = SegmentHeader::len_for(header.bases.len() as u16) as u64;
    let index = SegmentIndex::new(header.created_ms, &header.bases);
    let mut scan = Scan { index, end: start, bad: None, marks: 0, ends_with_mark: false };
    while scan.end < window.file_len && scan.bad.is_none() {
        step(&mut scan, &mut window, salt)?;
    }
    Ok(scan)
}

fn step(scan: &mut Scan, window: &mut Window<'_>, salt: u32) -> io::Result<()> {
    let at = scan.end;
    let left = window.file_len - at;
    let Some(header) = EntryHeader::decode(window.get(at, ENTRY_HEADER)?, salt, at) else {
        scan.bad = if left < ENTRY_HEADER as u64 {
            Bad::new(BadKind::Short, None, format!("file ends {left} bytes into an entry header"))
        } else {
            Bad::new(BadKind::Checksum, None, "entry header does not match its crc32c")
        };
        return Ok(());
    };
    let len = header.entry_len();
    if left < len {
        scan.bad = Bad::new(BadKind::Short, Some(header), format!("file ends {left} bytes into an entry of {len}"));
        return Ok(());
    }
    let bytes = window.get(at, len as usize)?;
    let body = &bytes[ENTRY_HEADER..bytes.len() - 1];
    if crc32c::crc32c(body) != header.shape.body_crc {
        scan.bad = Bad::new(BadKind::Checksum, Some(header), "entry body does not match its crc32c");
    } else if bytes[bytes.len() - 1] != TRAILER {
        scan.bad = Bad::new(BadKind::Checksum, Some(header), "entry does not end with its trailer");
    } else if header.mark {
        scan.marks += 1;
        scan.ends_with_mark = true;
        scan.end += len;
    } else {
        take(scan, &header, at, len);
    }
    Ok(())
}

fn take(scan: &mut Scan, header: &EntryHeader, at: u64, len: u64) {
    let partition = usize::from(header.partition.0);
    let expected = scan.index.partitions.get(partition).map(super::index::PartitionIndex::end);
    match expected {
        Some(expected) if expected == header.offset.0 => {
            scan.index.push(partition, at, len, header.broker_ms);
            scan.ends_with_mark = false;
            scan.end += len;
        }
        Some(expected) => {
            let reason = format!("partition {partition} continues with offset {} instead of {expected}", header.offset);
            scan.bad = Bad::new(BadKind::Sequence, Some(*header), reason);
        }
        None => {
            let reason = format!("partition {partition} is not one of {}", scan.index.partitions.len());
            scan.bad = Bad::new(BadKind::Sequence, Some(*header), reason);
        }
    }
}
