//! Reads records back from segment files. Every entry is checked again on every read: what does
//! not fit is an error with file, byte and offset, never skipped.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use task_events::{Offset, PartitionId};

use super::core::Core;
use super::directory::io_error;
use super::format::{ENTRY_HEADER, EntryHeader, TRAILER};
use super::index::Slot;
use super::segments::{Located, Opened};
use crate::{LogError, RawRecord};

/// Bytes of records returned by one read, unless the first is larger.
const READ_BYTES: u64 = 1 << 20;
/// Most records returned by one read.
const READ_RECORDS: usize = 4096;
/// Foreign bytes between two records that are read along rather than read around.
const GAP: u64 = 4096;

/// Reads the located records up to about 1 MiB.
pub(super) fn read(located: &Located, partition: PartitionId) -> Result<Vec<RawRecord>, LogError> {
    let mut out = Vec::with_capacity(located.slots.len());
    let mut buffer = Vec::new();
    let mut total = 0;
    let mut slots = located.slots.as_slice();
    while let Some(first) = slots.first() {
        if total > 0 && total + u64::from(first.len) > READ_BYTES {
            break;
        }
        let run = run_len(slots, READ_BYTES.saturating_sub(total));
        let last = slots[run - 1];
        buffer.resize((last.position - first.position + last.len) as usize, 0);
        located
            .file
            .read_exact_at(&mut buffer, u64::from(first.position))
            .map_err(|e| io_error("cannot read", &located.path, &e))?;
        for slot in &slots[..run] {
            let from = (slot.position - first.position) as usize;
            let offset = Offset(located.first + out.len() as u64);
            out.push(decode(located, slot, &buffer[from..from + slot.len as usize], partition, offset)?);
            total += u64::from(slot.len);
        }
        slots = &slots[run..];
    }
    Ok(out)
}

/// How many of the first slots are read at once; at least one.
fn run_len(slots: &[Slot], most_bytes: u64) -> usize {
    let start = u64::from(slots[0].position);
    let end = |slot: &Slot| u64::from(slot.position) + u64::from(slot.len);
    let near =
        |pair: &[Slot]| u64::from(pair[1].position) <= end(&pair[0]) + GAP && end(&pair[1]) - start <= most_bytes;
    1 + slots.windows(2).take_while(|pair| near(pair)).count()
}

fn decode(
    located: &Located,
    slot: &Slot,
    bytes: &[u8],
    partition: PartitionId,
    offset: Offset,
) -> Result<RawRecord, LogError> {
    let position = u64::from(slot.position);
    let damaged = |reason: &str| LogError::Damaged {
        file: located.path.display().to_string(),
        position,
        offset,
        reason: reason.into(),
    };
    let header = EntryHeader::decode(bytes, located.salt, position)
        .ok_or_else(|| damaged("entry header does not match its crc32c"))?;
    if header.mark
        || header.partition != partition
        || header.offset != offset
        || header.entry_len() != bytes.len() as u64
    {
        return Err(damaged("another entry stands where the index says this one is"));
    }
    let body = &bytes[ENTRY_HEADER..bytes.len() - 1];
    if crc32c::crc32c(body) != header.shape.body_crc || bytes[bytes.len() - 1] != TRAILER {
        return Err(damaged("entry body does not match its crc32c"));
    }
    super::body::decode(&header, body).ok_or_else(|| damaged("lengths in the entry body contradict each other"))
}

/// Reads on from `from` (below the visible end `end`). `opened` keeps an older segment open
/// between calls. Files of older segments are read on a blocking thread.
pub(super) async fn read_from(
    core: &Arc<Core>,
    partition: PartitionId,
    from: u64,
    end: u64,
    opened: &mut Option<Opened>,
) -> Result<Vec<RawRecord>, LogError> {
    let most = usize::try_from(end - from).unwrap_or(usize::MAX).min(READ_RECORDS);
    let sealed = match core.segments.locate(partition, from, most) {
        Ok(located) => {
            *opened = None;
            return read(&located, partition);
        }
        Err(Some(sealed)) => sealed,
        Err(None) => return Err(core.out_of_range(partition, Offset(from))),
    };
    let kept = opened.take().filter(|o| o.number == sealed.number);
    let held = core.clone();
    let work = move || {
        let opened = match kept {
            Some(opened) => opened,
            None => sealed.open(&held.segments, partition)?,
        };
        let located = opened.locate(from, most).ok_or_else(|| held.out_of_range(partition, Offset(from)))?;
        Ok((read(&located, partition)?, opened))
    };
    match super::core::blocking(work).await {
        Ok((records, now_open)) => {
            *opened = Some(now_open);
            Ok(records)
        }
        // Retention may have taken the file between the look-up and the read.
        Err(_) if from < core.segments.start(partition) => Err(core.out_of_range(partition, Offset(from))),
        Err(error) => Err(error),
    }
}
