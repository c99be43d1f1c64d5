//! Tasks of lists as people see them.

use rest_contract::{ReviewItem, TaskItem};
use snapshot_store::TaskSummary;

pub(super) fn item(task: TaskSummary) -> TaskItem {
    TaskItem {
        task_id: task.id,
        status: task.state,
        run_no: task.run_no.0,
        task_type: task.task_type,
        queue: task.queue,
        creator: task.creator,
        worker_id: Some(task.worker_id).filter(|worker| !worker.is_empty()),
        created_at: task.created_at,
        completed_at: task.completed_at,
        error_code: task.error_code,
        error_summary: task.error_summary,
        labels: task.labels,
    }
}

pub(super) fn review_item(mut task: TaskSummary) -> ReviewItem {
    let category = task.category.map(|category| category.as_str().into());
    let failed_step = task.failed_step.take();
    ReviewItem { task: item(task), category, failed_step }
}
