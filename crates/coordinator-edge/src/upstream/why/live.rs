//! What a task waits for whose attempt is with a worker.

use coordinator::owner::{AttemptFacts, WhyFacts};
use task_core::{CoreState, Row};
use task_events::TaskState;

use super::{Fact, duration, fact};

pub(super) fn fact_of(core: &CoreState, row: &Row, facts: &WhyFacts) -> Fact {
    let none = AttemptFacts::default();
    let attempt = facts.attempt.as_ref().unwrap_or(&none);
    let who = format!("attempt {} on worker {:?}", core.exec_epoch, row.worker_id);
    let sign = format!("last sign of life {} ago", duration(attempt.sign_ms_ago));
    let lease = duration(attempt.lease_ends_in_ms);
    if core.cancel_requested {
        let left = attempt.grace_ends_in_ms.unwrap_or(0);
        let text = format!(
            "cancel requested, {who} is told with its next sign of life ({sign}); grace ends in {}",
            duration(left)
        );
        return fact("cancelling", "worker", text).ends_in(left);
    }
    if attempt.under_way {
        let text = format!("{who} is on record; the worker hears of it when its lock was asked for");
        return fact("handing_out", "coordinator", text);
    }
    if core.state == TaskState::Assigned {
        let left = attempt.not_started_in_ms.unwrap_or(attempt.lease_ends_in_ms);
        let text =
            format!("{who} was handed out and its handler is not entered yet; it comes back in {}", duration(left));
        return fact("not_started", "worker", text).ends_in(left);
    }
    let step = match &attempt.step {
        Some((step, true)) => format!(", in step {step:?}"),
        Some((step, false)) => format!(", in step {step:?}, which must not run twice"),
        None => String::new(),
    };
    fact("executing", "worker", format!("{who} runs{step}: {sign}, lease ends in {lease}"))
        .ends_in(attempt.lease_ends_in_ms)
        .next(format!("POST /api/v1/task/{}/cancel, if it must stop", core.id))
}
