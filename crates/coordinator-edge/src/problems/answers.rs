//! What the owner answers, as problems: every answer has its one row here.

use coordinator::owner::{Answer, Why};
use rest_contract::{Code, Problem};
use serde_json::Value;
use task_core::decide::Refusal;
use task_events::{RuleVersion, RunNo, TaskId, TaskState, Text};

use super::{Failure, defect};

/// What was asked, as far as a problem must name it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Task meant.
    pub task: Option<TaskId>,
    /// Idempotency key of a create.
    pub key: Option<Text>,
}

impl Asked {
    /// Something about a task.
    pub(crate) const fn about(task: TaskId) -> Self {
        Self { task: Some(task), key: None }
    }
}

/// The problem that an answer is, where it is not what was hoped for.
pub(crate) fn failure_of(answer: Answer, asked: &Asked) -> Failure {
    let problem = match answer {
        Answer::KeyConflict { task_id } => Problem::new(
            Code::IdempotencyConflict,
            format!("the idempotency key was used for another request, which created task {task_id}"),
        )
        .fact("task_id", task_id.to_string()),
        Answer::BacklogFull { limit } => {
            let text = format!("the creator has {limit} open tasks in this partition, the limit is {limit}");
            Problem::new(Code::BacklogFull, text).limit(limit)
        }
        Answer::PlacementConflict { beside, of_key } => Problem::new(
            Code::PlacementConflict,
            format!("same_partition_as asks for partition {beside}, the concurrency key for partition {of_key}"),
        )
        .field("/same_partition_as")
        .value(beside.0)
        .limit(of_key.0),
        Answer::TaskClosed { state, run_no } => stands(Code::TaskClosed, "closed", state, run_no),
        Answer::TaskOpen { state, run_no } => stands(Code::TaskOpen, "open", state, run_no),
        Answer::NotFound => Problem::new(Code::TaskUnknown, "no task has this id"),
        Answer::Gone => Problem::new(Code::ReplayWindowOver, "the task is older than 30 days; its rows are gone"),
        Answer::Refused(refusal) => refused(refusal),
        Answer::RulesRefused { version, active, known } => rules_refused(version, active, known),
        Answer::Unavailable(Why::Unwritable) => return defect("a request was let in that the schema cannot hold"),
        Answer::Unavailable(why) => unavailable(why),
        Answer::OutcomeUnknown { task_id } => return unknown(task_id, asked),
        Answer::Created { .. }
        | Answer::Duplicate { .. }
        | Answer::Poll(_)
        | Answer::Heartbeat(_)
        | Answer::Report(_)
        | Answer::CancelAccepted
        | Answer::Replayed { .. }
        | Answer::Reviewed
        | Answer::QueueChanged
        | Answer::Task(_)
        | Answer::Why(_)
        | Answer::Found(_)
        | Answer::Looked(_)
        | Answer::RulesActive
        | Answer::WorkerReleased => return defect(format!("the owner answered another question: {answer:?}")),
    };
    Failure(match asked.task {
        Some(task) if !problem.facts.contains_key("task_id") => problem.fact("task_id", task.to_string()),
        Some(_) | None => problem,
    })
}

/// The task of an id whose partition the topic does not have.
pub(crate) fn no_such_task(task: TaskId) -> Failure {
    failure_of(Answer::NotFound, &Asked::about(task))
}

fn stands(code: Code, what: &str, state: TaskState, run_no: RunNo) -> Problem {
    Problem::new(code, format!("the task is {what}: {} in run {run_no}", state.as_str()))
        .fact("state", state.as_str())
        .fact("run_no", run_no.0)
}

fn refused(refusal: Refusal) -> Problem {
    let text = refusal.to_string();
    match refusal {
        Refusal::State { state, .. } => Problem::new(Code::StateConflict, text).fact("state", state.as_str()),
        Refusal::CancelRequested(_) | Refusal::NotRequested | Refusal::Exhausted => {
            Problem::new(Code::StateConflict, text)
        }
        Refusal::Run { named, current } => Problem::new(Code::RunMismatch, text)
            .field("/run_no")
            .value(named.0)
            .limit(current.0)
            .fact("run_no", current.0),
        Refusal::Decided(stands) => {
            let problem = Problem::new(Code::StateConflict, text).field("/instead_of");
            match stands {
                Some(outcome) => problem.limit(outcome.as_str()).fact("outcome", outcome.as_str()),
                None => problem,
            }
        }
        Refusal::DeadlinePassed { deadline, now } => {
            Problem::new(Code::InvalidField, text).field("/deadline").value(deadline).limit(now)
        }
        Refusal::UnknownStep => Problem::new(Code::UnknownStep, text).field("/from_step"),
    }
}

fn rules_refused(version: RuleVersion, active: RuleVersion, known: RuleVersion) -> Problem {
    let problem = if version < active {
        let text = format!("rules {active} are active in this partition, rules {version} cannot be activated any more");
        Problem::new(Code::RulesNotForward, text).limit(active.0)
    } else {
        let text = format!("the owner of this partition knows rules up to {known}; nothing was written");
        Problem::new(Code::RulesUnsupported, text).limit(known.0)
    };
    problem.field("/version").value(version.0)
}

fn unavailable(why: Why) -> Problem {
    let (code, text) = match why {
        Why::NotOwner => (Code::OwnerUnavailable, "the partition has no proven owner now; one is expected in seconds"),
        Why::StoreBehind => (Code::StoreBehind, "the store is behind by half of what may be owed to it"),
        Why::StoreUnavailable => (Code::StoreUnavailable, "the store does not answer"),
        Why::ClockUnsettled => (Code::ClockUnsettled, "the clocks of owner and log disagree by more than is allowed"),
        Why::InFlightFull => (Code::InFlightFull, "too many records of the partition are in flight"),
        Why::LogUnavailable => (Code::LogUnavailable, "the log takes no records"),
        Why::Draining => (Code::Draining, "the instance hands its partitions over"),
        Why::Unwritable => (Code::Internal, "the record cannot be written"),
    };
    Problem::new(code, format!("{text}; nothing was written"))
}

fn unknown(minted: Option<TaskId>, asked: &Asked) -> Failure {
    let (text, facts) = match (&asked.key, minted.or(asked.task)) {
        (Some(key), _) => (
            format!("whether a task was created is not known yet; send the same request with the key {key:?} again"),
            vec![("idempotency_key", Value::from(key.as_str()))],
        ),
        (None, Some(task)) => (
            format!("whether it was written is not known yet; read task {task} before it is sent again"),
            vec![("task_id", Value::from(task.to_string()))],
        ),
        (None, None) => (
            "whether a task was created is not known, and the id it would have is not known either".to_owned(),
            vec![("task_id", Value::Null)],
        ),
    };
    let problem = Problem::new(Code::OutcomeUnknown, text);
    Failure(facts.into_iter().fold(problem, |problem, (name, value)| problem.fact(name, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_outcome_names_what_to_ask_by() {
        let task = TaskId::from_raw(77).expect("an id");
        let keyed = Asked { task: None, key: Some("k".into()) };
        let of = |answer, asked: &Asked| failure_of(answer, asked).into_problem();
        let problem = of(Answer::OutcomeUnknown { task_id: None }, &keyed);
        assert_eq!((problem.status, problem.facts["idempotency_key"].as_str()), (504, Some("k")));
        let problem = of(Answer::OutcomeUnknown { task_id: Some(task) }, &Asked::default());
        assert_eq!(problem.facts["task_id"], "77");
        let problem = of(Answer::OutcomeUnknown { task_id: None }, &Asked::default());
        assert_eq!(problem.facts["task_id"], Value::Null);
        let problem = of(Answer::OutcomeUnknown { task_id: None }, &Asked::about(task));
        assert_eq!(problem.facts["task_id"], "77");
        let problem = of(Answer::Unavailable(Why::NotOwner), &Asked::about(task));
        assert_eq!((problem.status, problem.facts["retry_after_ms"].as_u64()), (503, Some(1000)));
    }
}
