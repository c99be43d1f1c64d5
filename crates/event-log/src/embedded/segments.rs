//! The segments of an open log and where each partition's records are in them. Shared by the
//! writer (sole mutator), all readers and retention.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use task_events::{Offset, PartitionId};

use super::directory::{Directory, Meta, io_error};
use super::index::{SegmentIndex, Slot, Summary};
use super::{format, scan};
use crate::LogError;

/// A segment that is full and never written again.
pub(super) struct Sealed {
    pub number: u64,
    pub len: u64,
    pub salt: u32,
    pub path: PathBuf,
    pub index_path: PathBuf,
    pub summary: Summary,
}

/// The newest segment.
pub(super) struct Active {
    pub number: u64,
    pub salt: u32,
    pub path: PathBuf,
    pub file: Arc<File>,
    pub index: RwLock<SegmentIndex>,
}

/// Some records of one partition in one segment.
pub(super) struct Located {
    pub file: Arc<File>,
    pub path: PathBuf,
    pub salt: u32,
    pub slots: Vec<Slot>,
    /// Offset of the first slot.
    pub first: u64,
}

/// One segment as a reader of one partition holds it while it works through it.
#[derive(Clone)]
pub(super) struct Opened {
    pub number: u64,
    path: PathBuf,
    salt: u32,
    file: Arc<File>,
    base: u64,
    slots: Arc<Vec<Slot>>,
}

struct Chain {
    sealed: VecDeque<Arc<Sealed>>,
    active: Arc<Active>,
}

/// All segments, oldest first.
pub(super) struct Segments {
    pub directory: Directory,
    pub meta: Mutex<Meta>,
    chain: RwLock<Chain>,
}

impl Segments {
    pub fn new(directory: Directory, meta: Meta, sealed: VecDeque<Arc<Sealed>>, active: Arc<Active>) -> Self {
        Self { directory, meta: Mutex::new(meta), chain: RwLock::new(Chain { sealed, active }) }
    }

    /// First retained offset of a partition.
    pub fn start(&self, partition: PartitionId) -> u64 {
        let chain = self.chain.read();
        let p = usize::from(partition.0);
        chain
            .sealed
            .front()
            .map_or_else(|| chain.active.index.read().partitions[p].base, |first| first.summary.partitions[p].base)
    }

    pub fn active(&self) -> Arc<Active> {
        self.chain.read().active.clone()
    }

    /// The writer goes on in a new segment.
    pub fn roll(&self, sealed: Sealed, active: Arc<Active>) {
        let mut chain = self.chain.write();
        chain.sealed.push_back(Arc::new(sealed));
        chain.active = active;
    }

    /// Slots from `from` (at most `most`) when they are in the newest segment, where reading them
    /// costs no disk access worth a thread; else the older segment that has them.
    pub fn locate(&self, partition: PartitionId, from: u64, most: usize) -> Result<Located, Option<Arc<Sealed>>> {
        let p = usize::from(partition.0);
        let chain = self.chain.read();
        let active = &chain.active;
        {
            let index = active.index.read();
            let part = &index.partitions[p];
            if from >= part.base {
                let at = (from - part.base) as usize;
                let slots = part.slots.get(at..(at + most).min(part.slots.len())).unwrap_or(&[]).to_vec();
                return Ok(Located {
                    file: active.file.clone(),
                    path: active.path.clone(),
                    salt: active.salt,
                    slots,
                    first: from,
                });
            }
        }
        let after = chain.sealed.partition_point(|sealed| sealed.summary.partitions[p].end() <= from);
        Err(chain.sealed.get(after).filter(|sealed| sealed.summary.partitions[p].base <= from).cloned())
    }

    /// Full segments with records of the partition that could be at or after a time, oldest first.
    pub fn sealed_since(&self, partition: PartitionId, unix_ms: i64) -> Vec<Arc<Sealed>> {
        let p = usize::from(partition.0);
        self.chain
            .read()
            .sealed
            .iter()
            .filter(|sealed| sealed.summary.partitions[p].max_ms >= unix_ms)
            .cloned()
            .collect()
    }

    /// Deletes whole old segments whose records are all older than `cutoff_ms`; how many.
    ///
    /// The metadata moves on first: a crash in between leaves files that the next start removes,
    /// never a hole.
    pub fn delete_before(&self, cutoff_ms: i64) -> Result<usize, LogError> {
        let mut meta = self.meta.lock();
        let old: Vec<Arc<Sealed>> = {
            let chain = self.chain.read();
            let outdated = |s: &&Arc<Sealed>| s.summary.partitions.iter().all(|p| p.max_ms < cutoff_ms);
            chain.sealed.iter().take_while(outdated).cloned().collect()
        };
        let Some(last) = old.last() else { return Ok(0) };
        let moved = Meta { first_segment: last.number + 1, ..meta.clone() };
        self.directory.save_meta(&moved)?;
        *meta = moved;
        self.chain.write().sealed.drain(..old.len());
        for segment in &old {
            remove(&segment.path)?;
            remove(&segment.index_path)?;
        }
        self.directory.sync_segments_dir().map_err(|e| io_error("cannot sync directory of", &last.path, &e))?;
        Ok(old.len())
    }
}

/// Removes a file; that it isn't there is fine.
pub(super) fn remove(path: &PathBuf) -> Result<(), LogError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("cannot remove", path, &error)),
        _ => Ok(()),
    }
}

impl Sealed {
    /// Opens the segment for reading one partition; may touch the disk. A wrong index file is
    /// rebuilt from the segment, and if the segment is the one that's wrong, that is the error.
    pub fn open(&self, directory: &Segments, partition: PartitionId) -> Result<Opened, LogError> {
        let p = usize::from(partition.0);
        let file = File::open(&self.path).map_err(|e| io_error("cannot open", &self.path, &e))?;
        let slots = match self.summary.slots(&self.index_path, p) {
            Ok(Some(slots)) => slots,
            Ok(None) => {
                let mut rebuilt = self.rebuild_index(&file, directory)?;
                std::mem::take(&mut rebuilt.partitions[p].slots)
            }
            Err(error) => return Err(io_error("cannot read", &self.index_path, &error)),
        };
        Ok(Opened {
            number: self.number,
            path: self.path.clone(),
            salt: self.salt,
            file: Arc::new(file),
            base: self.summary.partitions[p].base,
            slots: Arc::new(slots),
        })
    }

    fn rebuild_index(&self, file: &File, segments: &Segments) -> Result<SegmentIndex, LogError> {
        let meta = segments.meta.lock().clone();
        let index = scan_whole(&self.path, file, &meta, self.number, self.len)?;
        tracing::warn!(file = %self.index_path.display(), "index file missing or wrong, rebuilt from its segment");
        if index.summary() == self.summary {
            let bytes = index.encode(meta.log_id, self.number, self.len);
            fs::write(&self.index_path, bytes).map_err(|e| io_error("cannot write", &self.index_path, &e))?;
        }
        Ok(index)
    }
}

impl Opened {
    /// Slots from `from`, at most `most`; `None` when this segment doesn't hold it.
    pub fn locate(&self, from: u64, most: usize) -> Option<Located> {
        let at = usize::try_from(from.checked_sub(self.base)?).ok()?;
        let slots = self.slots.get(at..(at + most).min(self.slots.len())).filter(|slots| !slots.is_empty())?.to_vec();
        Some(Located { file: self.file.clone(), path: self.path.clone(), salt: self.salt, slots, first: from })
    }

    /// First offset from `from` on whose time is at or after `unix_ms`.
    pub fn first_at(&self, base_ms: i64, from: u64, unix_ms: i64) -> Option<Offset> {
        let skip = from.saturating_sub(self.base) as usize;
        let found = self.slots.iter().skip(skip).position(|slot| base_ms + i64::from(slot.ms) >= unix_ms)?;
        Some(Offset(self.base + (skip + found) as u64))
    }
}

/// Scans a segment that must be whole: any misfit is damage.
pub(super) fn scan_whole(
    path: &std::path::Path,
    file: &File,
    meta: &Meta,
    number: u64,
    len: u64,
) -> Result<SegmentIndex, LogError> {
    let failed = |e: io::Error| io_error("cannot read", path, &e);
    let mut window = super::window::Window::new(file).map_err(failed)?;
    let damaged =
        |position, reason| LogError::Damaged { file: path.display().to_string(), position, offset: Offset(0), reason };
    let head = window.get(0, format::SegmentHeader::len_for(meta.partitions)).map_err(failed)?;
    let header = format::SegmentHeader::decode(head, meta.partitions).map_err(|reason| damaged(0, reason))?;
    if header.number != number || header.log_id != meta.log_id {
        return Err(damaged(
            0,
            format!("is segment {} of log {}, not {number} of {}", header.number, header.log_id, meta.log_id),
        ));
    }
    let scan = scan::scan(file, &header).map_err(failed)?;
    if let Some(bad) = &scan.bad {
        return Err(super::damage::refuse(path, &mut window, &scan, bad, header.salt()));
    }
    if scan.end != len {
        return Err(damaged(scan.end.min(len), format!("segment has {} bytes, the next one says {len}", scan.end)));
    }
    Ok(scan.index)
}
