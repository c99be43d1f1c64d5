//! TaskReplayPlanned: what remains to be done (auto-replay).

use task_events::{Body, EventSequence, Kind, SkippedStep, TaskReplayPlanned, Text, Witness};

use super::{Draft, Refusal, View};
use crate::StepEntry;

/// Rule name of a skip that rests on a recorded output.
const RECORDED: Text = Text::const_new("recorded_output");

/// Resume after the last completed step: the completed steps without a gap from the first one are
/// not run again, each citing the event that recorded its output. What lies beyond a gap runs again:
/// it may rest on the output of the step that is missing. Two handler versions may give one index
/// to two steps; that is no gap.
pub fn replay_plan(view: View<'_>, witness: Witness) -> Result<Draft, Refusal> {
    if view.core.cancel_requested {
        return Err(Refusal::CancelRequested(Kind::TaskReplayPlanned));
    }
    let mut next = 0;
    let no_gap = |s: &&StepEntry| {
        let follows = s.done.index <= next;
        next = next.max(s.done.index.saturating_add(1));
        follows
    };
    let done: Vec<_> = view.row.steps.iter().take_while(no_gap).collect();
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
