//! The few facts about a record that are asked for again and again while it is in flight.

use task_core::Record;
use task_events::{Kind, PartitionEpoch, Service, TaskId, writer_of};

/// What a writer remembers of a record it wrote.
#[derive(Clone, Copy, Debug)]
pub struct Brief {
    /// Kind.
    pub kind: Kind,
    /// Service that writes the kind.
    pub writer: Service,
    /// Fence it was written under.
    pub epoch: Option<PartitionEpoch>,
    /// Its owner_seq.
    pub owner_seq: u64,
    /// Subject.
    pub task: Option<TaskId>,
}

impl Brief {
    /// Of this record.
    pub fn of(record: &Record) -> Self {
        let event = &record.event;
        Self {
            kind: event.kind,
            writer: writer_of(event.kind),
            epoch: event.partition_epoch,
            owner_seq: event.owner_seq.map_or(0, |o| o.0),
            task: event.task_id,
        }
    }
}
