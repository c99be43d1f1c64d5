//! Somebody has the next move, and it counts: no open task is ever stuck.

use task_core::{Pen, pending_work};
use task_events::TaskState;

use crate::honest::{Cmd, propose};
use crate::lab::Lab;
use crate::subject::TASKS;

/// Why an open task of this state would stay as it is for ever, whatever its pens do, and the
/// record that is never accepted.
pub fn stuck(lab: &mut Lab, fold: u32) -> Option<(String, Option<u32>)> {
    if !lab.healthy.insert(fold) {
        return None;
    }
    let state = *lab.fold(fold);
    if state.epoch.0 == 0 {
        return None; // nobody owns it yet; whoever claims finds it as it is
    }
    for task in 0..TASKS {
        let Some(core) = state.core(task) else { continue };
        let waiting = matches!(core.state, TaskState::Created | TaskState::Retrying);
        let cmd = match [Pen::Owner, Pen::Engine, Pen::Replayer].into_iter().find(|pen| pending_work(core, *pen)) {
            Some(Pen::Owner) if core.cancel_requested => Cmd::End(task),
            Some(Pen::Owner) => Cmd::Retry { task, assign: false },
            Some(Pen::Engine) => Cmd::Verdict { task, annotated: false },
            Some(Pen::Replayer) => Cmd::Plan(task),
            None if core.state.is_live() => Cmd::Lost(task),
            None if waiting => Cmd::Assign(task),
            None => return Some((format!("stuck: nobody has the pen of a task in {}", core.state), None)),
        };
        let records = propose(lab, fold, cmd, state.owner_seq.0 + 1);
        let Some(first) = records.first() else {
            return Some((format!("stuck: the pen of a task in {} has no move", core.state), None));
        };
        if let Some(reason) = lab.land(fold, *first).rejected {
            let kind = lab.brief(*first).kind;
            return Some((format!("livelock: {kind} in {} is always {reason}", core.state), Some(*first)));
        }
    }
    None
}
