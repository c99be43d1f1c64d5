//! TaskAssigned: an attempt is handed to a worker.

use task_events::{Body, ExecutionId, Incarnation, Kind, TaskAssigned, Text, TimeoutConfig};

use super::{Draft, Refusal, View};

/// Who gets it, on which terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assign {
    /// Worker.
    pub worker_id: Text,
    /// Its process.
    pub incarnation: Incarnation,
    /// Handler version it runs.
    pub handler_version: Text,
    /// Lease at hand-out, ms.
    pub lease_ms: u64,
    /// Largest lease the attempt can get, ms.
    pub lease_max_ms: u64,
    /// Expected heartbeat interval, ms.
    pub heartbeat_ms: u64,
    /// The handler may start before STARTING was answered.
    pub optimistic_start: bool,
}

/// The next attempt of a task that waits for a worker. In one batch with its TaskCreated or
/// TaskRetried the owner decides on the state that record will leave.
pub fn assign(view: View<'_>, to: Assign, now_ms: i64) -> Result<Draft, Refusal> {
    if view.core.cancel_requested {
        return Err(Refusal::CancelRequested(Kind::TaskAssigned));
    }
    let exec_epoch = view.core.exec_epoch.next().ok_or(Refusal::Exhausted)?;
    let body = Body::TaskAssigned(Box::new(TaskAssigned {
        worker_id: to.worker_id,
        incarnation: to.incarnation,
        execution_id: ExecutionId::new(view.core.id, exec_epoch),
        assignment_time: now_ms,
        timeout_config: TimeoutConfig {
            start_to_close_ms: view.row.created.timeouts.start_to_close_ms,
            heartbeat_ms: to.heartbeat_ms,
            lease_ms: to.lease_ms,
        },
        lease_max_ms: to.lease_max_ms,
        optimistic_start: to.optimistic_start,
        handler_version: to.handler_version,
    }));
    Ok(Draft { exec_epoch, ..view.next(body)? })
}
