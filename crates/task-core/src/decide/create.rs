//! TaskCreated: a task is born.

use serde::{Deserialize, Serialize};
use task_events::{EventSequence, ExecEpoch, RunNo, Sampling, TaskCreated, TaskId, Text};

use super::Draft;
use task_events::Body;

/// A task to create; validated at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// What the event will say.
    pub created: TaskCreated,
    /// 32 hex digits, the caller's or minted at the edge.
    pub trace_id: Text,
    /// Whether its caller records that trace.
    #[serde(default)]
    pub sampling: Sampling,
}

/// The birth of `id`, which the owner minted above the highest accepted one.
pub fn create(id: TaskId, task: NewTask) -> Draft {
    Draft {
        task_id: Some(id),
        event_sequence: EventSequence(1),
        run_no: RunNo(1),
        exec_epoch: ExecEpoch(0),
        trace_id: task.trace_id,
        sampling: task.sampling,
        body: Body::TaskCreated(Box::new(task.created)),
    }
}
