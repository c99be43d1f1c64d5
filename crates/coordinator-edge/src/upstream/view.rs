//! A task as people see it.

use rest_contract::{AsOf, ErrorView, StepBody, TaskView, TimeoutsBody, shown};
use snapshot_store::SnapshotRow;
use task_events::{Offset, Text};

/// The view of a row, as of the next offset to fold.
pub(crate) fn view_of(seen: &SnapshotRow, as_of: Offset) -> TaskView {
    let (core, row) = (&seen.core, &seen.row);
    let created = &row.created;
    TaskView {
        task_id: core.id,
        status: core.state,
        cancel_requested: core.cancel_requested,
        run_no: core.run_no.0,
        version: core.version.0,
        task_type: created.task_type.clone(),
        queue: created.queue.clone(),
        creator: created.creator.clone(),
        priority: created.priority,
        created_at: row.created_at,
        assigned_at: row.assigned_at,
        start_time: row.start_time,
        end_time: row.end_time,
        not_before: row.not_before,
        deadline: created.deadline,
        timeouts: TimeoutsBody {
            start_to_close_ms: Some(created.timeouts.start_to_close_ms),
            schedule_to_start_ms: created.timeouts.schedule_to_start_ms,
        },
        worker_id: some(&row.worker_id),
        exec_epoch: core.exec_epoch.0,
        execution_id: shown(core.execution_id),
        retry_count: core.retry_count,
        max_retries: core.max_retries,
        lost_count: core.lost_count,
        memory_usage_percent: row.memory_usage_percent,
        trace_id: row.trace_id.clone(),
        business_key: created.business_key.clone(),
        labels: created.labels.clone(),
        concurrency_key: created.concurrency_key.clone(),
        payload_hash: created.payload_hash,
        payload_ref: created.payload_ref.clone(),
        result_data_hash: row.result_data_hash.map(|hash| hash.to_string()),
        error: row.error_code.clone().map(|code| ErrorView {
            code,
            message: row.error_message.clone().unwrap_or_default(),
            category: row.category.map(|category| category.as_str().into()),
            failed_step: row.failed_step.clone(),
        }),
        steps: row.steps.iter().map(|step| StepBody::from(step.done.clone())).collect(),
        as_of: as_of_of(seen, as_of),
        stale: false,
    }
}

/// Where a row was read.
pub(crate) fn as_of_of(seen: &SnapshotRow, as_of: Offset) -> AsOf {
    AsOf { partition: seen.core.id.partition().0, offset: as_of.0 }
}

fn some(text: &Text) -> Option<Text> {
    (!text.is_empty()).then(|| text.clone())
}
