//! What readers, writer and group members of one open log share.

use std::sync::Arc;

use task_events::{Offset, PartitionId};

use super::reader;
use super::segments::Segments;
use super::visibility::Visibility;
use crate::{LogError, OffsetRange, RawRecord};

/// Shared state of an open log. Readers keep it alive; it needs neither the writer nor the lock.
pub(super) struct Core {
    pub segments: Segments,
    pub visible: Visibility,
    pub partitions: u16,
}

/// Runs file work off the async workers.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(LogError::Unavailable(format!("file work was cut off: {error}"))),
    }
}

impl Core {
    pub fn check(&self, partition: PartitionId) -> Result<(), LogError> {
        if partition.0 < self.partitions {
            return Ok(());
        }
        Err(LogError::Refused(format!("partition {partition} is not one of {}", self.partitions)))
    }

    pub fn range(&self, partition: PartitionId) -> OffsetRange {
        let end = self.visible.end(partition);
        OffsetRange { start: Offset(self.segments.start(partition).min(end)), end: Offset(end) }
    }

    pub fn out_of_range(&self, partition: PartitionId, offset: Offset) -> LogError {
        let OffsetRange { start, end } = self.range(partition);
        LogError::OutOfRange { partition, offset, start, end }
    }

    /// The records at these offsets, in the order given. Touches the disk.
    pub fn read_at(&self, partition: PartitionId, offsets: &[Offset]) -> Result<Vec<RawRecord>, LogError> {
        let range = self.range(partition);
        let mut opened: Option<super::segments::Opened> = None;
        let mut out = Vec::with_capacity(offsets.len());
        for &offset in offsets {
            if offset < range.start || offset >= range.end {
                return Err(self.out_of_range(partition, offset));
            }
            let located = match self.segments.locate(partition, offset.0, 1) {
                Ok(located) => Some(located),
                Err(None) => None,
                Err(Some(sealed)) => {
                    if opened.as_ref().is_none_or(|o| o.number != sealed.number) {
                        opened = Some(sealed.open(&self.segments, partition)?);
                    }
                    opened.as_ref().and_then(|o| o.locate(offset.0, 1))
                }
            };
            let located = located.ok_or_else(|| self.out_of_range(partition, offset))?;
            out.append(&mut reader::read(&located, partition)?);
        }
        Ok(out)
    }

    /// First visible offset whose broker time is at or after `unix_ms`. Touches the disk.
    pub fn offset_at(&self, partition: PartitionId, unix_ms: i64) -> Result<Option<Offset>, LogError> {
        let OffsetRange { start, end } = self.range(partition);
        let visible = |offset: Offset| (offset < end).then_some(offset);
        for sealed in self.segments.sealed_since(partition, unix_ms) {
            let opened = sealed.open(&self.segments, partition)?;
            if let Some(found) = opened.first_at(sealed.summary.base_ms, start.0, unix_ms) {
                return Ok(visible(found));
            }
        }
        let active = self.segments.active();
        let index = active.index.read();
        let part = &index.partitions[usize::from(partition.0)];
        let found = part.slots.iter().position(|slot| index.base_ms + i64::from(slot.ms) >= unix_ms);
        Ok(found.and_then(|at| visible(Offset(part.base + at as u64))))
    }
}

/// A handle that readers share.
pub(super) type SharedCore = Arc<Core>;
