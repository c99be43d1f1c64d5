//! Tasks by trace or business key, as far as the store may not show them yet: what is owed.

use snapshot_store::SnapshotRow;
use task_core::Row;

use super::work::Job;
use super::{Answer, Command, FindBy, Now, Owner, TaskSeen};

impl Owner {
    /// Looks through what is owed, and nothing else.
    pub(super) fn find(&mut self, now: Now, job: Job) {
        let Command::Find { by, limit } = &job.command else { return };
        if !self.is_current(now) {
            // Decided anew with the proof; what is owed now would be gathered for nothing.
            self.wants_proof = true;
            return self.unproven.push_back(job);
        }
        let mut found: Vec<SnapshotRow> =
            self.owed.tasks().filter_map(|id| self.in_memory(id)).filter(|row| matches_row(by, &row.row)).collect();
        found.sort_unstable_by_key(|row| std::cmp::Reverse(row.core.id));
        found.truncate(*limit);
        let as_of = self.as_of();
        let found = found.into_iter().map(|row| TaskSeen { row, as_of }).collect();
        self.reply(job.token, Answer::Found(found));
    }
}

fn matches_row(by: &FindBy, row: &Row) -> bool {
    match by {
        FindBy::Trace(trace) => row.trace_id == *trace,
        FindBy::BusinessKey { creator, key } => {
            row.created.creator == *creator && row.created.business_key.as_ref() == Some(key)
        }
    }
}
