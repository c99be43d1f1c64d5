//! Between the words of the protocol and the bodies of the REST contract.

use bytes::Bytes;
use rest_contract::{
    Answered, AssignmentBody, HeartbeatRequest, PayloadBody, PayloadName, PollRequest, ReportItem, StepInProgress,
    Verdict,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use task_events::{ExecEpoch, RunNo, StepDone, TaskId, Text, TraceParent};
use worker_protocol::{Assignment, Attempt, Heartbeat, HeartbeatAnswer, Poll, Report, ReportAnswer};

use super::batches::Reply;
use crate::{NoAnswer, PayloadKey};

pub(super) fn to_json(value: &impl Serialize) -> Result<Bytes, NoAnswer> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|why| NoAnswer(format!("a request cannot be written: {why}")))
}

pub(super) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NoAnswer> {
    serde_json::from_slice(bytes).map_err(|why| NoAnswer(format!("an answer cannot be read: {why}")))
}

pub(super) fn poll_request(poll: &Poll) -> PollRequest {
    PollRequest {
        incarnation: poll.incarnation,
        handler_version: poll.handler_version.clone(),
        queues: poll.queues.clone(),
        free_slots: poll.free_slots,
        held: poll.held.clone(),
        wait_ms: poll.wait_ms,
    }
}

/// An assignment, and the payload that came with it.
pub(super) fn assignment(body: AssignmentBody) -> (Assignment, Option<Bytes>) {
    let payload = body.payload.map(|raw| Bytes::from(String::from(Box::<str>::from(raw))));
    let attempt =
        Attempt { run_no: RunNo(body.run_no), exec_epoch: ExecEpoch(body.exec_epoch), execution_id: body.execution_id };
    let assignment = Assignment {
        task_id: body.task_id,
        attempt,
        attempt_token: body.attempt_token,
        task_type: body.task_type,
        payload_hash: body.payload_hash,
        payload_ref: body.payload_ref,
        trace_id: body.trace_id,
        traceparent: body.traceparent.and_then(|text| TraceParent::parse(text.as_bytes())),
        lease_ms: body.lease_ms,
        heartbeat_ms: body.heartbeat_ms,
        start_to_close_ms: body.start_to_close_ms,
        optimistic_start: body.optimistic_start,
        steps_done: body.steps_done.into_iter().map(StepDone::from).collect(),
        skip: body.skip,
    };
    (assignment, payload)
}

pub(super) fn heartbeat(beat: Heartbeat, attempt_token: Text) -> HeartbeatRequest {
    HeartbeatRequest {
        execution_id: beat.attempt.execution_id,
        exec_epoch: beat.attempt.exec_epoch.get(),
        attempt_token,
        worker_id: beat.worker_id,
        incarnation: beat.incarnation,
        memory_usage_percent: beat.memory_usage_percent,
        step_in_progress: beat.step_in_progress.map(|(step, is_idempotent)| StepInProgress { step, is_idempotent }),
        start_time: None,
    }
}

pub(super) fn report(report: Report, attempt_token: Text) -> ReportItem {
    let Report { attempt, worker_id, body } = report;
    ReportItem {
        run_no: attempt.run_no.get(),
        exec_epoch: attempt.exec_epoch.get(),
        execution_id: attempt.execution_id,
        attempt_token,
        worker_id,
        report: body.into(),
    }
}

pub(super) fn payload(task_id: TaskId, key: &PayloadKey, data: Bytes) -> PayloadBody {
    let (item, step) = payload_name(key);
    PayloadBody { task_id, item, step, data }
}

pub(super) fn payload_name(key: &PayloadKey) -> (PayloadName, Option<Text>) {
    match key {
        PayloadKey::Parameters { .. } => (PayloadName::Parameters, None),
        PayloadKey::StepOutput { step, .. } => (PayloadName::Step, Some(step.clone())),
        PayloadKey::Result => (PayloadName::Result, None),
        PayloadKey::ErrorText => (PayloadName::ErrorText, None),
    }
}

pub(super) fn is_stored(reply: Reply) -> bool {
    matches!(reply, Reply::Stored(true))
}

pub(super) fn report_answer(reply: Reply) -> ReportAnswer {
    let Reply::Answered(Answered { answer, .. }) = reply else { return ReportAnswer::OutcomeUnknown };
    answer.into()
}

pub(super) fn heartbeat_answer(reply: Reply) -> HeartbeatAnswer {
    let Reply::Answered(answered) = reply else { return HeartbeatAnswer::Unavailable };
    match (answered.answer, answered.lease_ms) {
        (Verdict::Accepted | Verdict::Duplicate, Some(lease_ms)) => {
            HeartbeatAnswer::Accepted { lease_ms, cancel_requested: answered.cancel_requested }
        }
        (Verdict::Fenced, _) => HeartbeatAnswer::Fenced,
        (Verdict::Accepted | Verdict::Duplicate, None)
        | (Verdict::TooEarly | Verdict::OutcomeUnknown | Verdict::Unavailable, _) => HeartbeatAnswer::Unavailable,
    }
}
