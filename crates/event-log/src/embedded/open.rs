//! Opening a directory: check the chain of segments, rebuild the newest one's index, repair a torn
//! tail there and refuse everything else that doesn't fit.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use task_events::Offset;

use super::config::EmbeddedConfig;
use super::directory::{Directory, Meta, io_error};
use super::format::SegmentHeader;
use super::index::{SegmentIndex, Summary};
use super::scan::{self, Scan};
use super::segments::{Active, Sealed, remove, scan_whole};
use super::window::Window;
use super::{damage, segment_file};
use crate::LogError;

/// What opening found.
pub(super) struct Recovered {
    pub meta: Meta,
    pub sealed: VecDeque<Arc<Sealed>>,
    pub active: Arc<Active>,
    pub len: u64,
    pub created_ms: i64,
    pub next: Vec<u64>,
    pub marks: u64,
    pub mark_due: bool,
}

/// A header as it stands in a segment file.
enum Head {
    Whole(SegmentHeader),
    /// Creating the segment was cut off; it never held an entry.
    Torn(String),
}

pub(super) fn recover(directory: &Directory, mut meta: Meta, config: &EmbeddedConfig) -> Result<Recovered, LogError> {
    let mut numbers = directory.segment_numbers()?;
    if !meta.initialised {
        // The very first start was cut off before it could take a record.
        for number in std::mem::take(&mut numbers) {
            remove(&directory.segment_path(number))?;
        }
        first_segment(directory, &meta, config)?;
        meta.initialised = true;
        directory.save_meta(&meta)?;
        numbers.push(meta.first_segment);
    }
    for &number in numbers.iter().filter(|&&number| number < meta.first_segment) {
        // Retention was cut off between its note in the metadata and the removal.
        remove(&directory.segment_path(number))?;
        remove(&directory.index_path(number))?;
    }
    numbers.retain(|&number| number >= meta.first_segment);
    let mut headers = read_heads(directory, &meta, &mut numbers)?;
    let (Some(newest), Some(last)) = (headers.pop(), numbers.last().copied()) else {
        return Err(missing(directory, meta.first_segment, "it is the oldest one"));
    };
    let mut sealed = VecDeque::with_capacity(headers.len());
    for (at, header) in headers.iter().enumerate() {
        let next = headers.get(at + 1).unwrap_or(&newest);
        sealed.push_back(Arc::new(check_sealed(directory, &meta, config, header, next)?));
    }
    if directory.index_path(last).exists() {
        return Err(missing(directory, last + 1, "the one before it was sealed"));
    }
    open_newest(directory, meta, newest, sealed)
}

fn missing(directory: &Directory, number: u64, why: &str) -> LogError {
    LogError::Damaged {
        file: directory.segment_path(number).display().to_string(),
        position: 0,
        offset: Offset(0),
        reason: format!("segment is missing although {why}"),
    }
}

fn first_segment(directory: &Directory, meta: &Meta, config: &EmbeddedConfig) -> Result<(), LogError> {
    let header = SegmentHeader {
        log_id: meta.log_id,
        number: meta.first_segment,
        created_ms: (config.clock)(),
        previous_len: 0,
        bases: vec![0; usize::from(meta.partitions)],
    };
    let path = directory.segment_path(meta.first_segment);
    let create =
        || segment_file::create_segment(&path, &header, config.durability).and_then(|_| directory.sync_segments_dir());
    create().map_err(|e| io_error("cannot create", &path, &e))
}

/// Reads all headers; checks that they form one unbroken chain of this log.
fn read_heads(directory: &Directory, meta: &Meta, numbers: &mut Vec<u64>) -> Result<Vec<SegmentHeader>, LogError> {
    let mut headers: Vec<SegmentHeader> = Vec::with_capacity(numbers.len());
    let last = numbers.last().copied();
    for (expected, &number) in (meta.first_segment..).zip(numbers.iter()) {
        if number != expected {
            return Err(missing(directory, expected, "younger ones are there"));
        }
        let path = directory.segment_path(number);
        let damaged = |offset, reason| LogError::Damaged {
            file: path.display().to_string(),
            position: 0,
            offset: Offset(offset),
            reason,
        };
        let header = match read_head(&path, meta).map_err(|e| io_error("cannot read", &path, &e))? {
            Ok(Head::Whole(header)) => header,
            Ok(Head::Torn(reason))
                if Some(number) == last
                    && number > meta.first_segment
                    && !directory.index_path(number - 1).exists() =>
            {
                tracing::warn!(file = %path.display(), offset = 0, %reason, "segment was never finished and holds no record, removed");
                remove(&path)?;
                directory.sync_segments_dir().map_err(|e| io_error("cannot sync directory of", &path, &e))?;
                continue;
            }
            Ok(Head::Torn(reason)) | Err(reason) => return Err(damaged(0, reason)),
        };
        if header.log_id != meta.log_id || header.number != number {
            return Err(damaged(
                0,
                format!("is segment {} of log {}, not {number} of {}", header.number, header.log_id, meta.log_id),
            ));
        }
        headers.push(header);
    }
    numbers.truncate(headers.len());
    Ok(headers)
}

/// `Ok(Err(_))` when the header is damaged.
fn read_head(path: &Path, meta: &Meta) -> io::Result<Result<Head, String>> {
    let file = File::open(path)?;
    let mut window = Window::new(&file)?;
    let len = SegmentHeader::len_for(meta.partitions);
    let file_len = window.file_len;
    let bytes = window.get(0, len)?;
    Ok(match SegmentHeader::decode(bytes, meta.partitions) {
        Ok(header) => Ok(Head::Whole(header)),
        // No longer than its header it holds no entry; of longer ones zeros are what was never written.
        Err(reason) if file_len <= len as u64 || bytes.iter().all(|&byte| byte == 0) => Ok(Head::Torn(reason)),
        Err(reason) => Err(reason),
    })
}

/// A full segment: its length, its end and (when asked for, or without an index) every entry.
fn check_sealed(
    directory: &Directory,
    meta: &Meta,
    config: &EmbeddedConfig,
    header: &SegmentHeader,
    next: &SegmentHeader,
) -> Result<Sealed, LogError> {
    let number = header.number;
    let path = directory.segment_path(number);
    let index_path = directory.index_path(number);
    let file = File::open(&path).map_err(|e| io_error("cannot open", &path, &e))?;
    let len = file.metadata().map_err(|e| io_error("cannot read", &path, &e))?.len();
    let known = Summary::load(&index_path, meta.log_id, number, next.previous_len, header.bases.len());
    let summary = match known {
        Some(summary) if len == next.previous_len && !config.verify_all => summary,
        _ => {
            let index = scan_whole(&path, &file, meta, number, next.previous_len)?;
            fs::write(&index_path, index.encode(meta.log_id, number, len))
                .map_err(|e| io_error("cannot write", &index_path, &e))?;
            index.summary()
        }
    };
    for (p, (part, base)) in summary.partitions.iter().zip(&next.bases).enumerate() {
        if part.end() != *base {
            let reason = format!("partition {p} ends at offset {}, the next segment begins at {base}", part.end());
            return Err(LogError::Damaged {
                file: path.display().to_string(),
                position: len,
                offset: Offset(part.end()),
                reason,
            });
        }
    }
    Ok(Sealed { number, len, salt: header.salt(), path, index_path, summary })
}

/// The newest segment: scan, repair a torn tail, make sure that all of it is on disk.
fn open_newest(
    directory: &Directory,
    meta: Meta,
    header: SegmentHeader,
    sealed: VecDeque<Arc<Sealed>>,
) -> Result<Recovered, LogError> {
    let path = directory.segment_path(header.number);
    let failed = |e: io::Error| io_error("cannot recover", &path, &e);
    let file = segment_file::open_segment(&path).map_err(failed)?;
    let scan = scan::scan(&file, &header).map_err(failed)?;
    if scan.bad.is_some() {
        repair(&path, &file, &scan, header.salt())?;
    }
    // A killed writer may have left entries that only the page cache has; what is marked from
    // now on as synced must be.
    file.sync_all().map_err(failed)?;
    let Scan { index, end, marks, ends_with_mark, .. } = scan;
    let next = index.partitions.iter().map(super::index::PartitionIndex::end).collect();
    let active =
        Active { number: header.number, salt: header.salt(), path, file: Arc::new(file), index: RwLock::new(index) };
    Ok(Recovered {
        meta,
        sealed,
        active: Arc::new(active),
        len: end,
        created_ms: header.created_ms,
        next,
        marks,
        mark_due: !ends_with_mark,
    })
}

/// Cuts a torn tail off; anything else is refused.
fn repair(path: &Path, file: &File, scan: &Scan, salt: u32) -> Result<(), LogError> {
    let failed = |e: io::Error| io_error("cannot recover", path, &e);
    let Some(bad) = &scan.bad else { return Ok(()) };
    let mut window = Window::new(file).map_err(failed)?;
    if !damage::is_torn_tail(&mut window, scan, bad, salt).map_err(failed)? {
        return Err(damage::refuse(path, &mut window, scan, bad, salt));
    }
    let cut = window.file_len - scan.end;
    let torn = bad.header.filter(|header| !header.mark);
    tracing::warn!(
        file = %path.display(),
        position = scan.end,
        cut_bytes = cut,
        partition = torn.map(|header| header.partition.0),
        offset = torn.map(|header| header.offset.0),
        ends = ?ends(&scan.index),
        reason = %bad.reason,
        "torn tail repaired: cut after the last whole entry"
    );
    file.set_len(scan.end).map_err(failed)
}

/// (partition, end offset) of every partition of the segment that has records.
fn ends(index: &SegmentIndex) -> Vec<(usize, u64)> {
    index.partitions.iter().enumerate().filter(|(_, p)| !p.slots.is_empty()).map(|(p, part)| (p, part.end())).collect()
}
