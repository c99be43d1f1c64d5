//! One heartbeat, one result: for people with curl, and for SDKs in other languages.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use bytes::Bytes;
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{
    Answered as Verdicts, HeartbeatRequest, MAX_BODY_BYTES, MAX_PAYLOAD_BYTES, Outcome, Problem, ResultRequest,
};
use service_kit::Clock;
use snapshot_store::{PayloadItem, SnapshotStore};
use task_events::{ErrorCategory, ExecEpoch, Sha256Hash, StepDone, TaskId, Text};
use worker_protocol::{Attempt, Report, ReportAnswer, ReportBody};

use super::{fields, payloads, token, wire};
use crate::problems::Answered;
use crate::{Edge, reply};

/// Characters of an error message that the event keeps; the whole text is a payload.
const MESSAGE_CHARS: usize = 256;

pub(super) async fn heartbeat<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
    State(edge): State<Edge<L, S, C, P>>,
    path: fields::PathText,
    request: Request,
) -> Answered {
    let task = fields::task(path)?;
    let [status] = fields::query(request.uri(), ["status"])?;
    let status = status.unwrap_or_default();
    let is_start = match status.as_str() {
        "STARTING" => true,
        "RUNNING" => false,
        _ => return Err(fields::parameter("status", &status, "is neither STARTING nor RUNNING").into()),
    };
    let body: HeartbeatRequest = edge.json(request, MAX_BODY_BYTES).await?;
    let start_time = body.start_time;
    if let Some(time) = start_time.filter(|_| !is_start) {
        return Err(fields::invalid("/start_time", "stands only beside STARTING").value(time).into());
    }
    let (of, beat) = wire::heartbeat("", body)?;
    same_task(task, of)?;
    let verdicts = if !is_known(&edge, task) {
        wire::verdict(ReportAnswer::Fenced)
    } else if is_start {
        let start_time = start_time.unwrap_or_else(|| edge.clock.wall_ms());
        let body = ReportBody::Starting { start_time, memory_usage_percent: beat.memory_usage_percent };
        wire::verdict(edge.surface.report(Report { attempt: beat.attempt, worker_id: beat.worker_id, body }).await)
    } else {
        wire::beat_verdict(edge.surface.heartbeat(beat).await)
    };
    answer(verdicts, task)
}

pub(super) async fn result<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
    State(edge): State<Edge<L, S, C, P>>,
    path: fields::PathText,
    request: Request,
) -> Answered {
    let task = fields::task(path)?;
    let body: ResultRequest = edge.json(request, MAX_BODY_BYTES).await?;
    same_task(task, body.task_id)?;
    let of = fields::attempt("", body.execution_id, body.exec_epoch)?;
    if of != task {
        let why = format!("is of task {of}, not of {task}");
        return Err(fields::invalid("/execution_id", &why).value(body.execution_id.to_string()).into());
    }
    fields::name("/worker_id", &body.worker_id)?;
    fields::memory("/memory_usage_percent", body.memory_usage_percent)?;
    fields::steps("/steps_done", &body.steps_done)?;
    let run_no = token::run_of("", &body.attempt_token)?;
    let attempt = Attempt { run_no, exec_epoch: ExecEpoch(body.exec_epoch), execution_id: body.execution_id };
    let worker_id = body.worker_id.clone();
    let (report, stored) = match body.status {
        Outcome::Success => success(body)?,
        Outcome::Failed => failure(body)?,
    };
    if !is_known(&edge, task) {
        return answer(wire::verdict(ReportAnswer::Fenced), task);
    }
    // What the event names by its hash is in the store before it.
    let stored = stored.into_iter().map(|(item, bytes)| (task, item, bytes)).collect();
    payloads::store(&edge, stored).await?;
    answer(wire::verdict(edge.surface.report(Report { attempt, worker_id, body: report }).await), task)
}

type Parts = (ReportBody, Option<(PayloadItem, Bytes)>);

fn success(body: ResultRequest) -> Result<Parts, Problem> {
    absent("/error_code", body.error_code.is_some(), "FAILED")?;
    absent("/error_message", body.error_message.is_some(), "FAILED")?;
    absent("/category", body.category.is_some(), "FAILED")?;
    absent("/failed_step", body.failed_step.is_some(), "FAILED")?;
    absent("/is_idempotent", body.is_idempotent.is_some(), "FAILED")?;
    let result = body.result.map(|raw| Bytes::from(raw.get().to_owned()));
    if let Some(bytes) = result.as_ref().filter(|bytes| bytes.len() > MAX_PAYLOAD_BYTES) {
        return Err(payloads::too_large("/result".into(), bytes.len()));
    }
    let made = result.as_ref().map(|bytes| Sha256Hash::of(bytes));
    let result_data_hash = match (made, body.result_data_hash) {
        (Some(made), Some(given)) if made != given => {
            let why = format!("is {given}, the result's own is {made}");
            return Err(fields::invalid("/result_data_hash", &why).value(given.to_string()).limit(made.to_string()));
        }
        (Some(hash), _) | (None, Some(hash)) => hash,
        (None, None) => return Err(fields::invalid("/result_data_hash", "or result must stand beside SUCCESS")),
    };
    let report = ReportBody::Success {
        result_data_hash,
        execution_time_ms: body.execution_time_ms,
        steps_done: body.steps_done.into_iter().map(StepDone::from).collect(),
        memory_usage_percent: body.memory_usage_percent,
    };
    Ok((report, result.map(|bytes| (PayloadItem::Result { result_data_hash }, bytes))))
}

fn failure(body: ResultRequest) -> Result<Parts, Problem> {
    absent("/result", body.result.is_some(), "SUCCESS")?;
    absent("/result_data_hash", body.result_data_hash.is_some(), "SUCCESS")?;
    let Some(error_code) = body.error_code else {
        return Err(fields::invalid("/error_code", "must stand beside FAILED"));
    };
    fields::name("/error_code", &error_code)?;
    if let Some(step) = &body.failed_step {
        fields::name("/failed_step", step)?;
    }
    let whole = body.error_message.unwrap_or_default();
    if whole.len() > MAX_PAYLOAD_BYTES {
        return Err(payloads::too_large("/error_message".into(), whole.len()));
    }
    let error_message: Text = whole.chars().take(MESSAGE_CHARS).collect();
    let stored = (error_message.len() < whole.len()).then(|| (PayloadItem::ErrorText, Bytes::from(whole)));
    let report = ReportBody::Failure {
        error_code,
        error_message,
        category: body.category.unwrap_or(ErrorCategory::Transient),
        failed_step: body.failed_step,
        is_idempotent: body.is_idempotent,
        execution_time_ms: body.execution_time_ms,
        steps_done: body.steps_done.into_iter().map(StepDone::from).collect(),
        memory_usage_percent: body.memory_usage_percent,
    };
    Ok((report, stored))
}

fn absent(pointer: &str, is_there: bool, belongs_to: &str) -> Result<(), Problem> {
    if is_there { Err(fields::invalid(pointer, &format!("stands only beside {belongs_to}"))) } else { Ok(()) }
}

fn same_task(path: TaskId, body: TaskId) -> Result<(), Problem> {
    if path == body {
        return Ok(());
    }
    let why = format!("is {body}, the path names {path}");
    Err(fields::invalid("/task_id", &why).value(body.to_string()).limit(path.to_string()))
}

fn is_known<L, S, C: Clock, P: Peers>(edge: &Edge<L, S, C, P>, task: TaskId) -> bool {
    task.partition().get() < edge.surface.partitions()
}

fn answer(verdicts: Verdicts, task: TaskId) -> Answered {
    match wire::problem_of(verdicts.answer, task) {
        None => reply::json(StatusCode::OK, &verdicts),
        Some(problem) => Err(problem.into()),
    }
}
