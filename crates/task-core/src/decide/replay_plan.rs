//! TaskReplayPlanned: what remains to be done (auto-replay).

use task_events::{Body, EventSequence, Kind, SkippedStep, TaskReplayPlanned, Text, Witness};

use super::{Draft, Refusal, View};

/// Rule name of a skip that rests on a recorded output.
const RECORDED: Text = Text::const_new("recorded_output");

/// Resume after the last completed step: the steps of [`crate::Row::kept_steps`] are not run again,
/// each citing the event that recorded its output.
pub fn replay_plan(view: View<'_>, witness: Witness) -> Result<Draft, Refusal> {
    if view.core.cancel_requested {
        return Err(Refusal::CancelRequested(Kind::TaskReplayPlanned));
    }
    let done = view.row.kept_steps();
    let skip = done
        .iter()
        .map(|s| SkippedStep { step: s.done.step.clone(), rule: RECORDED, evidence: vec![s.evidence] })
        .collect();
    let mut based_on: Vec<EventSequence> = done.iter().map(|s| s.evidence).collect();
    based_on.push(view.core.version);
    based_on.dedup();
    view.next(Body::TaskReplayPlanned(Box::new(TaskReplayPlanned {
        resume_from_step: view.row.failed_step.clone().filter(|f| !done.iter().any(|s| s.done.step == *f)),
        resume_index: done.len() as u32,
        skip,
        based_on,
        witness,
    })))
}
