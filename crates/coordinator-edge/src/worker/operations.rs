//! What the document says of the endpoints of workers.

use rest_contract::{
    Answered, Code, HeartbeatRequest, MAX_BATCH_BYTES, MAX_BODY_BYTES, Outcome, PayloadBody, PayloadName, PollRequest,
    PollResponse, Pong, Register, Registered, ReportBodyJson, ReportItem, ReportsRequest, ReportsResponse,
    ResultRequest, StepBody, StepInProgress, forms,
};
use serde_json::json;
use serde_json::value::to_raw_value;
use task_events::{ExecEpoch, ExecutionId, Incarnation, PartitionId, RunNo, Sha256Hash, TaskId, Text};

use super::polling::MAX_POLL_BYTES;
use super::token;
use crate::api::{BODY, Operation, PARAMETERS, Parameter, schema};

/// What the owner of an attempt may say to a report of it, besides that it is accepted.
const REPORT: &[Code] = &[Code::Fenced, Code::TooEarly, Code::OutcomeUnknown, Code::OwnerUnavailable];

/// The attempt of the examples: the first of a task.
struct Example {
    task_id: TaskId,
    execution_id: ExecutionId,
    attempt_token: Text,
}

fn example() -> Example {
    // Any id will do; this is one of 2026.
    let task_id = TaskId::mint(TaskId::ZERO, PartitionId(3), 1_790_000_000_000).unwrap_or(TaskId::ZERO);
    let token = token::outer(RunNo(1), "c1.7");
    Example { task_id, execution_id: ExecutionId::new(task_id, ExecEpoch(1)), attempt_token: token }
}

fn beat() -> HeartbeatRequest {
    let Example { execution_id, attempt_token, .. } = example();
    HeartbeatRequest {
        execution_id,
        exec_epoch: 1,
        attempt_token,
        worker_id: "w1".into(),
        incarnation: Incarnation(1_764_479_000_123),
        memory_usage_percent: 40,
        step_in_progress: Some(StepInProgress { step: "count".into(), is_idempotent: true }),
        start_time: None,
    }
}

fn task_id() -> Parameter {
    Parameter::path("id", schema::<forms::TaskIdText>(), "Task.")
}

pub(super) fn ping() -> Operation {
    Operation::new("ping", "Measures the way to the coordinator").answers::<Pong>(200, "The instance and its clock.")
}

pub(super) fn register() -> Operation {
    let asked = Register {
        worker_id: "w1".into(),
        incarnation: Incarnation(1_764_479_000_123),
        handler_version: "1".into(),
        queues: vec!["word_count".into()],
        slots: 8,
    };
    Operation::new("registerWorker", "Tells a worker what is expected of it")
        .body(MAX_BODY_BYTES, &asked)
        .answers::<Registered>(200, "Lease, heartbeat and limits.")
        .refuses(BODY)
}

pub(super) fn poll() -> Operation {
    let asked = PollRequest {
        incarnation: Incarnation(1_764_479_000_123),
        handler_version: "1".into(),
        queues: vec!["word_count".into()],
        free_slots: 4,
        held: vec![example().execution_id],
        wait_ms: 30_000,
    };
    let about = "Answers at once if there is work, else when there is or the wait is over. The lease of what it brings \
                 runs from the sending of the poll.";
    Operation::new("pollWork", "Asks for work")
        .about(about)
        .takes(Parameter::path("id", schema::<forms::Name>(), "Worker."))
        .body(MAX_POLL_BYTES, &asked)
        .answers::<PollResponse>(200, "New attempts, and attempts that must stop.")
        .refuses(PARAMETERS)
        .refuses(BODY)
        .refuses(&[Code::Superseded, Code::OwnerUnavailable, Code::Draining])
}

pub(super) fn heartbeat() -> Operation {
    let status = json!({ "type": "string", "enum": ["STARTING", "RUNNING"] });
    let about = "STARTING before the handler is entered, RUNNING while it runs.";
    Operation::new("sendHeartbeat", "Gives a sign of life of an attempt")
        .takes(task_id())
        .takes(Parameter::query("status", status, about).required())
        .body(MAX_BODY_BYTES, &beat())
        .answers::<Answered>(200, "Accepted, or a start that was on record before.")
        .refuses(PARAMETERS)
        .refuses(BODY)
        .refuses(REPORT)
}

pub(super) fn result() -> Operation {
    let Example { task_id: task, execution_id, attempt_token } = example();
    let asked = ResultRequest {
        task_id: task,
        execution_id,
        exec_epoch: 1,
        attempt_token,
        worker_id: "w1".into(),
        status: Outcome::Success,
        result_data_hash: None,
        result: to_raw_value(&json!({ "words": 6 })).ok(),
        execution_time_ms: 12,
        error_code: None,
        error_message: None,
        category: None,
        failed_step: None,
        is_idempotent: None,
        memory_usage_percent: 40,
        steps_done: Vec::new(),
    };
    Operation::new("reportResult", "Reports how an attempt ended")
        .takes(task_id())
        .body(MAX_BODY_BYTES, &asked)
        .answers::<Answered>(200, "Accepted, or on record before.")
        .refuses(PARAMETERS)
        .refuses(BODY)
        .refuses(REPORT)
        .refuses(&[Code::StoreUnavailable])
}

pub(super) fn payload() -> Operation {
    let items: Vec<_> = PayloadName::ALL.iter().map(PayloadName::as_str).collect();
    let about_hash = "With `item` = `step` and `result`, of which there may be several: which one, as the log has it.";
    Operation::new("getPayload", "Reads a payload of a task")
        .takes(task_id())
        .takes(Parameter::query("item", json!({ "type": "string", "enum": items }), "Which one.").required())
        .takes(Parameter::query("step", schema::<forms::Name>(), "With `item` = `step`: which step."))
        .takes(Parameter::query("hash", schema::<forms::HashText>(), about_hash))
        .answers_with(
            200,
            "application/octet-stream",
            json!({ "type": "string", "format": "binary" }),
            "Its bytes, as they were stored.",
        )
        .refuses(PARAMETERS)
        .refuses(&[Code::PayloadMissing, Code::StoreUnavailable])
}

pub(super) fn reports() -> Operation {
    let Example { task_id: task, execution_id, attempt_token } = example();
    let output = b"6";
    let done = StepBody { step: "count".into(), index: 0, output_hash: Sha256Hash::of(output), is_idempotent: true };
    let asked = ReportsRequest {
        payloads: vec![PayloadBody {
            task_id: task,
            item: PayloadName::Step,
            step: Some("count".into()),
            data: output[..].into(),
        }],
        reports: vec![ReportItem {
            run_no: 1,
            exec_epoch: 1,
            execution_id,
            attempt_token,
            worker_id: "w1".into(),
            report: ReportBodyJson::Step { done },
        }],
        heartbeats: vec![beat()],
    };
    let about = "At most 1,000 items in all. Payloads are stored first, in one write; then reports and heartbeats go to \
                 the owners of their tasks, those of one attempt in order. One field that is not valid refuses the \
                 whole batch, with its pointer, before anything is done.";
    Operation::new("sendReports", "Sends payloads, reports and heartbeats in one go")
        .about(about)
        .body(MAX_BATCH_BYTES, &asked)
        .answers::<ReportsResponse>(200, "Item by item, in the order sent.")
        .refuses(BODY)
}
