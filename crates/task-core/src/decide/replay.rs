//! TaskReplayRequested: a closed task is opened again for another run.

use serde::{Deserialize, Serialize};
use task_events::{Body, ExecEpoch, ReplayFrom, RunNo, TaskReplayRequested, Text};

use super::{Draft, Refusal};
use crate::Closed;

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// The run they saw; a replay of another one is refused.
    pub run_no: RunNo,
    /// Where to resume.
    pub replay_from: ReplayFrom,
    /// With [`ReplayFrom::Step`].
    pub from_step: Option<Text>,
    /// Who.
    pub actor: Text,
    /// Why.
    pub reason: Text,
}

/// The next run of a closed task. `lease_left_ms`: what the last attempt's lease still has by the
/// owner's clock, carried so that no second handler starts beside it.
pub fn replay(closed: &Closed, ask: Replay, lease_left_ms: u64) -> Result<Draft, Refusal> {
    check_run(closed, ask.run_no)?;
    if ask.replay_from == ReplayFrom::Step {
        let known = closed.row.steps.iter().any(|s| Some(&s.done.step) == ask.from_step.as_ref())
            || ask.from_step.is_some() && closed.row.failed_step == ask.from_step;
        if !known {
            return Err(Refusal::UnknownStep);
        }
    }
    Ok(Draft {
        task_id: Some(closed.core.id),
        event_sequence: closed.core.version.next().ok_or(Refusal::Exhausted)?,
        run_no: closed.core.run_no.next().ok_or(Refusal::Exhausted)?,
        exec_epoch: ExecEpoch(0),
        trace_id: closed.row.trace_id.clone(),
        sampling: closed.row.sampling,
        body: Body::TaskReplayRequested(Box::new(TaskReplayRequested {
            carried: closed.carried(lease_left_ms),
            replay_from: ask.replay_from,
            from_step: ask.from_step,
            actor: ask.actor,
            reason: ask.reason,
            closed_at_offset: closed.closed_at_offset,
        })),
    })
}

pub(super) fn check_run(closed: &Closed, named: RunNo) -> Result<(), Refusal> {
    if closed.core.run_no == named { Ok(()) } else { Err(Refusal::Run { named, current: closed.core.run_no }) }
}
