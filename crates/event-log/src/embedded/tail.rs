//! Reader of one partition of the embedded log.

use task_events::{Offset, PartitionId};
use tokio::sync::watch;

use super::core::SharedCore;
use super::reader;
use super::segments::Opened;
use super::visibility::Visible;
use crate::{LogError, RawRecord, Tail};

/// Reads one partition in offset order and waits at its end.
pub struct EmbeddedTail {
    core: SharedCore,
    partition: PartitionId,
    next: u64,
    end: watch::Receiver<Visible>,
    opened: Option<Opened>,
}

impl EmbeddedTail {
    pub(super) fn open(core: SharedCore, partition: PartitionId, from: Offset) -> Result<Self, LogError> {
        let range = core.range(partition);
        if from < range.start || from > range.end {
            return Err(core.out_of_range(partition, from));
        }
        let end = core.visible.subscribe(partition);
        Ok(Self { core, partition, next: from.0, end, opened: None })
    }
}

impl Tail for EmbeddedTail {
    async fn next(&mut self) -> Result<Vec<RawRecord>, LogError> {
        loop {
            let Visible { end, closed } = *self.end.borrow_and_update();
            if self.next < end {
                let records = reader::read_from(&self.core, self.partition, self.next, end, &mut self.opened).await?;
                if let Some(last) = records.last() {
                    self.next = last.offset.0 + 1;
                    return Ok(records);
                }
                return Err(self.core.out_of_range(self.partition, Offset(self.next)));
            }
            if closed || self.end.changed().await.is_err() {
                return Err(LogError::Unavailable("the log was closed".into()));
            }
        }
    }
}
