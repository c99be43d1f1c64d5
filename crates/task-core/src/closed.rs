//! A task as it is forgotten: everything its row, a replay, a review or a late report will need.

use std::sync::Arc;

use task_events::{ClosedTask, Offset};

use crate::{CoreState, Row};

/// A closed task. The owner turns it into owed rows; nobody else needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Judged state at the close, with the terminal state in it.
    pub core: CoreState,
    /// Row fields at the close.
    pub row: Arc<Row>,
    /// Offset of its last event: the one that closed it, or a review since.
    pub closed_at_offset: Offset,
}

impl Closed {
    /// The state a TaskReplayRequested or TaskReviewed carries. `lease_left_ms` is what is left of
    /// the last attempt's lease by the owner's own clock.
    pub fn carried(&self, lease_left_ms: u64) -> Box<ClosedTask> {
        let row = &self.row;
        Box::new(ClosedTask {
            state: self.core.state,
            run_no: self.core.run_no,
            event_sequence: self.core.version,
            exec_epoch: self.core.exec_epoch,
            execution_id: self.core.execution_id,
            created: Box::new((*row.created).clone()),
            created_at: row.created_at,
            steps: row.steps.iter().map(|s| s.done.clone()).collect(),
            handler_version: (!row.handler_version.is_empty()).then(|| row.handler_version.clone()),
            lease_left_ms,
            history: row.history.to_bytes(),
            worker_id: row.worker_id.clone(),
            assigned_at: row.assigned_at,
            start_time: row.start_time,
            end_time: row.end_time,
            memory_usage_percent: row.memory_usage_percent,
            retry_count: self.core.retry_count,
            lost_count: self.core.lost_count,
            result_data_hash: row.result_data_hash,
            error_code: row.error_code.clone(),
            error_message: row.error_message.clone(),
            category: row.category,
            failed_step: row.failed_step.clone(),
        })
    }
}
