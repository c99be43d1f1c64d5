//! Rows, acknowledged offsets and checkpoints against the reference fold (invariants 16, 17).

use bytes::Bytes;
use snapshot_store::{CheckpointName, SnapshotRow};
use task_events::{Offset, PartitionId, TaskId};

use super::{Audit, Owes};
use crate::ports::store::Tables;

impl Audit {
    /// A row arrived in the store; `taken` = it won over what was there.
    pub fn row_written(&mut self, clock_us: i64, row: &SnapshotRow, taken: bool, before: Option<Offset>) {
        let id = row.core.id;
        let part = &self.parts[usize::from(id.partition().0)];
        let known = part.rows.get(&id).and_then(|rows| {
            let at = rows.binary_search_by_key(&clock_us, |r| r.clock_us).ok()?;
            rows.get(at)
        });
        match known {
            None => {
                self.find(16, format!("a row of task {id} at row clock {clock_us} that no record gave"), Some(id), None)
            }
            Some(known) if known.core != row.core || *known.row != *row.row => {
                let what = format!(
                    "row of task {id} differs from the fold at offset {}: {:?} {:?}, written {:?} {:?}",
                    known.offset, known.core, known.row, row.core, row.row
                );
                self.find(16, what, Some(id), None);
            }
            Some(_) => {}
        }
        if taken && before.is_some_and(|b| b > row.row.applied_offset) {
            let what = format!("row of task {id} went back from {before:?} to {}", row.row.applied_offset);
            self.find(17, what, Some(id), None);
        }
    }

    /// A payload arrived in the store. One that an event may name stays as it is: it is in no log.
    pub fn payload_written(&mut self, task: TaskId, bytes: &Bytes, before: Option<&Bytes>) {
        if before.is_some_and(|before| before != bytes) {
            self.find(0, format!("parameters of task {task} were overwritten with others"), Some(task), None);
        }
    }

    /// Somebody says that all rows owed below the offset are there.
    pub fn acked(&mut self, partition: PartitionId, below: Offset, tables: &Tables) {
        self.rows_below("acknowledged", partition, below, tables);
    }

    /// A checkpoint is published.
    pub fn published(&mut self, name: &CheckpointName, tables: &Tables) {
        let part = &self.parts[usize::from(name.partition.0)];
        if part.hash_at(name.offset) != Some(name.state_hash) {
            let what =
                format!("checkpoint at offset {} of partition {} has another state hash", name.offset, name.partition);
            self.find(16, what, None, None);
        }
        self.rows_below("checkpointed", name.partition, name.offset, tables);
    }

    fn rows_below(&mut self, how: &str, partition: PartitionId, below: Offset, tables: &Tables) {
        let part = &self.parts[usize::from(partition.0)];
        if below.0 > part.owes.len() as u64 {
            let what = format!("partition {partition} {how} to {below}, beyond its end");
            return self.find(16, what, None, None);
        }
        for offset in part.acked_checked..below.0 {
            let clock = part.clocks[offset as usize];
            let there = |id| tables.snapshots.get(&id).is_some_and(|(at, _)| *at >= clock);
            let (ok, task) = match part.owes[offset as usize] {
                Owes::Nothing => (true, None),
                Owes::Row(id) => (there(id), Some(id)),
                Owes::RowAndKey(id, key) => (there(id) && tables.keys.contains_key(&key), Some(id)),
                Owes::Overflow(id) => (tables.overflow.contains_key(&(id, Offset(offset))), Some(id)),
            };
            if !ok {
                let what = format!("partition {partition} {how} to {below}, but the row of offset {offset} is missing");
                return self.find(16, what, task, Some((partition, Offset(offset))));
            }
        }
        // What is there stays: checked once.
        let part = &mut self.parts[usize::from(partition.0)];
        part.acked_checked = part.acked_checked.max(below.0);
    }
}
