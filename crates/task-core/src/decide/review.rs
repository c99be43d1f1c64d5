//! TaskReviewed: people decided about a closed task; nothing opens.

use task_events::{Body, ExecEpoch, ReviewOutcome, RunNo, TaskReviewed, Text};

use super::replay::check_run;
use super::{Draft, Refusal};
use crate::Closed;

/// Records the decision about the run that was named.
pub fn review(
    closed: &Closed,
    run_no: RunNo,
    outcome: ReviewOutcome,
    actor: Text,
    note: Text,
) -> Result<Draft, Refusal> {
    check_run(closed, run_no)?;
    Ok(Draft {
        task_id: Some(closed.core.id),
        event_sequence: closed.core.version.next().ok_or(Refusal::Exhausted)?,
        run_no: closed.core.run_no,
        exec_epoch: ExecEpoch(0),
        trace_id: closed.row.trace_id.clone(),
        body: Body::TaskReviewed(Box::new(TaskReviewed {
            carried: closed.carried(closed.row.lease_left_ms),
            outcome,
            actor,
            note,
        })),
    })
}
