//! Between the bodies of the REST contract and the words of the protocol.

use rest_contract::{
    Answered, AssignmentBody, Code, HeartbeatRequest, PollRequest, Problem, ReportBodyJson, ReportItem, StepBody,
    Verdict,
};
use serde_json::value::RawValue;
use task_events::{ExecEpoch, TaskId, Text};
use worker_protocol::{Assignment, Attempt, Heartbeat, HeartbeatAnswer, Poll, Report, ReportAnswer};

use super::{fields, token};

pub(super) fn poll(worker_id: Text, request: PollRequest) -> Poll {
    Poll {
        worker_id,
        incarnation: request.incarnation,
        handler_version: request.handler_version,
        queues: request.queues,
        free_slots: request.free_slots,
        held: request.held,
        wait_ms: request.wait_ms,
    }
}

pub(super) fn assignment(assignment: Assignment, payload: Option<Box<RawValue>>) -> AssignmentBody {
    let Attempt { run_no, exec_epoch, execution_id } = assignment.attempt;
    AssignmentBody {
        task_id: assignment.task_id,
        run_no: run_no.get(),
        exec_epoch: exec_epoch.get(),
        execution_id,
        attempt_token: token::outer(run_no, &assignment.attempt_token),
        task_type: assignment.task_type,
        payload,
        payload_hash: assignment.payload_hash,
        payload_ref: assignment.payload_ref,
        trace_id: assignment.trace_id,
        traceparent: assignment.traceparent.map(|parent| parent.to_string().into()),
        lease_ms: assignment.lease_ms,
        heartbeat_ms: assignment.heartbeat_ms,
        start_to_close_ms: assignment.start_to_close_ms,
        optimistic_start: assignment.optimistic_start,
        steps_done: assignment.steps_done.into_iter().map(StepBody::from).collect(),
        skip: assignment.skip,
    }
}

/// A sign of life, checked; `below` is its pointer inside the body.
pub(super) fn heartbeat(below: &str, request: HeartbeatRequest) -> Result<(TaskId, Heartbeat), Problem> {
    let task = fields::attempt(below, request.execution_id, request.exec_epoch)?;
    fields::name(&format!("{below}/worker_id"), &request.worker_id)?;
    fields::memory(&format!("{below}/memory_usage_percent"), request.memory_usage_percent)?;
    if let Some(step) = &request.step_in_progress {
        fields::name(&format!("{below}/step_in_progress/step"), &step.step)?;
    }
    let attempt = Attempt {
        run_no: token::run_of(below, &request.attempt_token)?,
        exec_epoch: ExecEpoch(request.exec_epoch),
        execution_id: request.execution_id,
    };
    let heartbeat = Heartbeat {
        attempt,
        worker_id: request.worker_id,
        incarnation: request.incarnation,
        memory_usage_percent: request.memory_usage_percent,
        step_in_progress: request.step_in_progress.map(|s| (s.step, s.is_idempotent)),
    };
    Ok((task, heartbeat))
}

/// A report, checked; `below` is its pointer inside the body.
pub(super) fn report(below: &str, item: ReportItem) -> Result<(TaskId, Report), Problem> {
    let task = fields::attempt(below, item.execution_id, item.exec_epoch)?;
    fields::name(&format!("{below}/worker_id"), &item.worker_id)?;
    let run_no = token::run_of(below, &item.attempt_token)?;
    if run_no.get() != item.run_no {
        let why = format!("is {}, the attempt is of run {run_no}", item.run_no);
        return Err(fields::invalid(format!("{below}/run_no"), &why).value(item.run_no).limit(run_no.get()));
    }
    let attempt = Attempt { run_no, exec_epoch: ExecEpoch(item.exec_epoch), execution_id: item.execution_id };
    check(&format!("{below}/report"), &item.report)?;
    Ok((task, Report { attempt, worker_id: item.worker_id, body: item.report.into() }))
}

fn check(below: &str, body: &ReportBodyJson) -> Result<(), Problem> {
    let memory = |percent: &u32| fields::memory(&format!("{below}/memory_usage_percent"), *percent);
    let steps = |steps: &[StepBody]| fields::steps(&format!("{below}/steps_done"), steps);
    match body {
        ReportBodyJson::Starting { memory_usage_percent, .. } => memory(memory_usage_percent),
        ReportBodyJson::Declined { .. } => Ok(()),
        ReportBodyJson::Step { done } => fields::name(&format!("{below}/done/step"), &done.step),
        ReportBodyJson::Success { memory_usage_percent, steps_done, .. } => {
            memory(memory_usage_percent)?;
            steps(steps_done)
        }
        ReportBodyJson::Failure {
            memory_usage_percent, error_code, error_message, failed_step, steps_done, ..
        } => {
            memory(memory_usage_percent)?;
            fields::name(&format!("{below}/error_code"), error_code)?;
            fields::text(&format!("{below}/error_message"), error_message)?;
            if let Some(step) = failed_step {
                fields::name(&format!("{below}/failed_step"), step)?;
            }
            steps(steps_done)
        }
    }
}

pub(super) fn verdict(answer: ReportAnswer) -> Answered {
    Answered { answer: answer.into(), lease_ms: None, cancel_requested: false }
}

pub(super) fn beat_verdict(answer: HeartbeatAnswer) -> Answered {
    match answer {
        HeartbeatAnswer::Accepted { lease_ms, cancel_requested } => {
            Answered { answer: Verdict::Accepted, lease_ms: Some(lease_ms), cancel_requested }
        }
        HeartbeatAnswer::Fenced => verdict(ReportAnswer::Fenced),
        HeartbeatAnswer::Unavailable => verdict(ReportAnswer::Unavailable),
    }
}

/// The problem that a verdict is, asked for alone.
pub(super) fn problem_of(verdict: Verdict, task: TaskId) -> Option<Problem> {
    let (code, detail) = match verdict {
        Verdict::Accepted | Verdict::Duplicate => return None,
        Verdict::Fenced => (Code::Fenced, "the attempt is over: stop its handler"),
        Verdict::TooEarly => (Code::TooEarly, "the attempt is not on record as started: report STARTING first"),
        Verdict::OutcomeUnknown => (Code::OutcomeUnknown, "whether the report will be accepted is not known"),
        Verdict::Unavailable => (Code::OwnerUnavailable, "the owner of the task's partition cannot answer now"),
    };
    Some(Problem::new(code, detail).fact("task_id", task.to_string()))
}
