//! Torn tail or damage? The one place that may give bytes up, and only these:
//!
//! 1. nothing valid is a *mark* behind the bad entry (a mark says: all before me was synced, so
//!    the bad entry is not of the last batch, or the batch was whole once), **and**
//! 2. bytes are missing: the file ends inside the entry, or a whole 512-byte sector of it was
//!    never written and reads as zeros. A tear on a Linux file system leaves nothing else, since a
//!    sector is written whole or not at all, and neither the first nor the last byte of an entry
//!    is zero. An entry whose bytes are all there but differ has been changed: that is damage.

use std::io;
use std::path::Path;

use task_events::Offset;

use super::format::{ENTRY_HEADER, EntryHeader};
use super::scan::{Bad, BadKind, Scan};
use super::window::Window;
use crate::LogError;

/// Unit a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// Whether the bad entry at the end of `scan` is a torn tail.
pub(super) fn is_torn_tail(window: &mut Window<'_>, scan: &Scan, bad: &Bad, salt: u32) -> io::Result<bool> {
    let missing = match bad.kind {
        BadKind::Short => true,
        BadKind::Checksum => sector_missing(window, scan.end, bad)?,
        BadKind::Sequence => false,
    };
    Ok(missing && find(window, scan.end + 1, salt, |header| header.mark)?.is_none())
}

/// The error that names the damage: file, byte, and the offset of the record that can't be read.
pub(super) fn refuse(path: &Path, window: &mut Window<'_>, scan: &Scan, bad: &Bad, salt: u32) -> LogError {
    let mut reason = bad.reason.clone();
    let mut offset = Offset(0);
    match locate(window, scan, bad, salt) {
        Ok(Some((partition, found))) => {
            reason = format!("{reason}; record of partition {partition}");
            offset = found;
        }
        Ok(None) => reason.push_str("; no record of any partition is known to be missing"),
        Err(error) => reason = format!("{reason}; looking for the record failed: {error}"),
    }
    LogError::Damaged { file: path.display().to_string(), position: scan.end, offset, reason }
}

/// Which record is it? Its own header says so; without one, the first partition whose next valid
/// record further on is not the one expected; without that, what the broken header claims.
fn locate(window: &mut Window<'_>, scan: &Scan, bad: &Bad, salt: u32) -> io::Result<Option<(u16, Offset)>> {
    if let Some(header) = bad.header.filter(|header| !header.mark) {
        return Ok(Some((header.partition.0, header.offset)));
    }
    if bad.header.is_some() {
        return Ok(None);
    }
    let expected: Vec<u64> = scan.index.partitions.iter().map(super::index::PartitionIndex::end).collect();
    let mut seen = vec![false; expected.len()];
    let gap = find(window, scan.end + 1, salt, |header| {
        let p = usize::from(header.partition.0);
        if header.mark || p >= seen.len() || seen[p] {
            return false;
        }
        seen[p] = true;
        header.offset.0 > expected[p]
    })?;
    if let Some(header) = gap {
        let p = header.partition.0;
        return Ok(Some((p, Offset(expected[usize::from(p)]))));
    }
    let raw = window.get(scan.end, ENTRY_HEADER)?;
    if raw.len() < 10 || raw[2] == 2 {
        return Ok(None);
    }
    let claimed = super::format::u16_at(raw, 8);
    Ok(expected.get(usize::from(claimed)).map(|&next| (claimed, Offset(next))))
}

fn sector_missing(window: &mut Window<'_>, from: u64, bad: &Bad) -> io::Result<bool> {
    let len = bad.header.map_or(ENTRY_HEADER as u64, |header| header.entry_len());
    let mut at = from;
    while at < from + len {
        let end = (at / SECTOR + 1) * SECTOR;
        let bytes = window.get(at, (end - at) as usize)?;
        if !bytes.is_empty() && bytes.iter().all(|&byte| byte == 0) {
            return Ok(true);
        }
        at = end;
    }
    Ok(false)
}

/// First valid entry header at or after `from` for which `wanted` holds.
fn find(
    window: &mut Window<'_>,
    from: u64,
    salt: u32,
    mut wanted: impl FnMut(&EntryHeader) -> bool,
) -> io::Result<Option<EntryHeader>> {
    const STEP: usize = 64 * 1024;
    let mut base = from;
    while base < window.file_len {
        let bytes = window.get(base, STEP + ENTRY_HEADER)?;
        for at in 0..bytes.len().min(STEP) {
            if bytes[at] != super::format::ENTRY_MAGIC[0] {
                continue;
            }
            if let Some(header) = EntryHeader::decode(&bytes[at..], salt, base + at as u64)
                && wanted(&header)
            {
                return Ok(Some(header));
            }
        }
        base += STEP as u64;
    }
    Ok(None)
}
