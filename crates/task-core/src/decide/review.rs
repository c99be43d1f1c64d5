//! TaskReviewed: people decided about a closed task; nothing opens.

use task_events::{Body, ExecEpoch, ReviewOutcome, RunNo, TaskReviewed, Text};

use super::replay::check_run;
use super::{Draft, Refusal};
use crate::{Closed, Review};

/// Records the decision about the run that was named. Another one that is on record already is taken back
/// only if it is named: who decides has seen it then.
pub fn review(
    closed: &Closed,
    run_no: RunNo,
    outcome: ReviewOutcome,
    instead_of: Option<ReviewOutcome>,
    actor: Text,
    note: Text,
) -> Result<Draft, Refusal> {
    check_run(closed, run_no)?;
    let stands = decided(closed);
    // To say the same again, with another note, takes nothing back.
    let may = stands == instead_of || instead_of.is_none() && stands == Some(outcome);
    if !may {
        return Err(Refusal::Decided(stands));
    }
    Ok(Draft {
        task_id: Some(closed.core.id),
        event_sequence: closed.core.version.next().ok_or(Refusal::Exhausted)?,
        run_no: closed.core.run_no,
        exec_epoch: ExecEpoch(0),
        trace_id: closed.row.trace_id.clone(),
        sampling: closed.row.sampling,
        body: Body::TaskReviewed(Box::new(TaskReviewed {
            carried: closed.carried(closed.row.lease_left_ms),
            outcome,
            actor,
            note,
        })),
    })
}

/// The decision that stands, if there is one.
pub fn decided(closed: &Closed) -> Option<ReviewOutcome> {
    match closed.row.review {
        Some(Review::Decided(outcome)) => Some(outcome),
        Some(Review::Waiting) | None => None,
    }
}
