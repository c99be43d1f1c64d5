//! `GET /api/v1/task/{id}/why`: the one fact that keeps the task where it is, in words with numbers.
//! The owner tells the facts at one moment, proven current; which of them blocks is chosen here.

mod live;
#[cfg(test)]
mod tests;
mod waiting;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command, WhyFacts};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::WhyView;
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_core::{CoreState, Pen, Row, pen_of};
use task_events::TaskState;

use super::parameters::{Part, query, task_of};
use super::view::as_of_of;
use crate::problems::Answered;
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn why(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        query(request.uri(), &[])?;
        edge.known_partition(task)?;
        let answer = edge.surface.about(task, Command::Why { task }).await;
        if let Answer::Why(facts) = &answer {
            return reply::json(StatusCode::OK, &explain(facts));
        }
        Err(edge.refusal(answer, task).await)
    }
}

/// A fact in words.
struct Fact {
    name: &'static str,
    waits_for: &'static str,
    text: String,
    /// When the wait ends by itself, in so many ms.
    ends_in_ms: Option<u64>,
    next: Option<String>,
}

fn fact(name: &'static str, waits_for: &'static str, text: impl Into<String>) -> Fact {
    Fact { name, waits_for, text: text.into(), ends_in_ms: None, next: None }
}

impl Fact {
    const fn ends_in(mut self, ms: u64) -> Self {
        self.ends_in_ms = Some(ms);
        self
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

fn explain(facts: &WhyFacts) -> WhyView {
    let (core, row) = (&facts.seen.row.core, &facts.seen.row.row);
    let fact = match core.state {
        TaskState::Success | TaskState::FailedPermanently | TaskState::Cancelled => closed(core, row),
        TaskState::Assigned | TaskState::Executing => live::fact_of(core, row, facts),
        TaskState::Created
        | TaskState::Failed
        | TaskState::Lost
        | TaskState::RetryApproved
        | TaskState::ReplayPlanned
        | TaskState::Retrying
            if core.cancel_requested =>
        {
            fact(
                "cancelling",
                "coordinator",
                "a cancel request is on record and no attempt runs: the task is being closed",
            )
        }
        TaskState::Created | TaskState::Retrying => waiting::fact_of(core, row, facts),
        TaskState::Failed | TaskState::Lost | TaskState::RetryApproved | TaskState::ReplayPlanned => {
            pen(core, row, facts)
        }
    };
    WhyView {
        task_id: core.id,
        status: core.state,
        fact: fact.name.into(),
        text: fact.text,
        waits_for: fact.waits_for.into(),
        until: fact.ends_in_ms.map(|ms| facts.now.saturating_add_unsigned(ms)),
        next: fact.next,
        as_of: as_of_of(&facts.seen.row, facts.seen.as_of),
    }
}

fn closed(core: &CoreState, row: &Row) -> Fact {
    let run = core.run_no;
    let code = row.error_code.as_deref().unwrap_or("no code");
    let said = row.error_message.as_deref().unwrap_or_default();
    let replay = format!("POST /api/v1/task/{}/replay with run_no {run}", core.id);
    match core.state {
        TaskState::Cancelled => fact("cancelled", "nobody", format!("it was cancelled in run {run}")).next(replay),
        TaskState::FailedPermanently => {
            let text = format!(
                "it failed for good in run {run} after {} attempts and {} retries: {code}: {said}",
                core.exec_epoch, core.retry_count
            );
            fact("failed_permanently", "people", text).next(replay)
        }
        TaskState::Success
        | TaskState::Created
        | TaskState::Assigned
        | TaskState::Executing
        | TaskState::Failed
        | TaskState::Lost
        | TaskState::RetryApproved
        | TaskState::ReplayPlanned
        | TaskState::Retrying => {
            let hash = row.result_data_hash.map(|hash| hash.to_string()).unwrap_or_default();
            let text = format!("it succeeded in run {run} with attempt {}; its result is {hash}", core.exec_epoch);
            fact("succeeded", "nobody", text).next(format!("GET /api/v1/task/{}/result", core.id))
        }
    }
}

// Whose verdict is awaited.
fn pen(core: &CoreState, row: &Row, facts: &WhyFacts) -> Fact {
    let for_ms = facts.now.saturating_sub(row.changed_broker_ms);
    let since = format!("for {} (since {})", duration(u64::try_from(for_ms).unwrap_or(0)), row.changed_broker_ms);
    let code = row.error_code.as_deref().unwrap_or("no code");
    match pen_of(core) {
        Pen::Engine => {
            let text = format!(
                "attempt {} ended ({}: {code}); the task-engine's verdict is awaited {since}",
                core.exec_epoch,
                core.state.as_str()
            );
            fact("verdict_awaited", "task-engine", text)
                .next("look whether the task-engine runs, if this lasts longer than seconds")
        }
        Pen::Replayer => {
            let text = format!("a retry is approved; the plan of auto-replay is awaited {since}");
            fact("plan_awaited", "auto-replay", text)
                .next("look whether auto-replay runs, if this lasts longer than seconds")
        }
        Pen::Owner => {
            let text = format!("the plan is on record; the owner writes the retry, {since}");
            fact("retry_awaited", "coordinator", text)
        }
    }
}

/// A duration for people.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000.. => format!("{} h", ms / 3_600_000),
    }
}
