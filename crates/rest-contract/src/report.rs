//! Heartbeats and reports: the single endpoints people can call with curl, and the batch that SDKs
//! send.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use task_events::{ErrorCategory, ExecutionId, Incarnation, Sha256Hash, TaskId, Text};

use crate::forms;
use crate::limits::{MAX_BATCH_ITEMS, MAX_STEPS};
use crate::worker::{PayloadBody, StepBody};

/// `POST /coordinator/v1/task/{id}/heartbeat?status=STARTING|RUNNING`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatRequest {
    /// Attempt.
    #[serde(with = "forms::ExecutionText")]
    pub execution_id: ExecutionId,
    /// Its fencing token.
    pub exec_epoch: u32,
    /// As the assignment brought it.
    pub attempt_token: Text,
    /// Worker.
    #[schemars(with = "forms::Name")]
    pub worker_id: Text,
    /// Its process.
    #[serde(with = "forms::IncarnationText")]
    pub incarnation: Incarnation,
    /// Percent.
    #[schemars(range(max = 100))]
    pub memory_usage_percent: u32,
    /// Step the handler is in.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "forms::objects::maybe")]
    pub step_in_progress: Option<StepInProgress>,
    /// When the handler is entered, Unix ms, with STARTING; the edge's clock without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start_time: Option<i64>,
}

/// Step the handler is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepInProgress {
    /// Its name.
    #[schemars(with = "forms::Name")]
    pub step: Text,
    /// Declared by the handler.
    pub is_idempotent: bool,
}

/// What the owner says to a heartbeat or a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is in the log as accepted; of a heartbeat: the lease is renewed.
    Accepted,
    /// It was on record before.
    Duplicate,
    /// The attempt is over (409).
    Fenced,
    /// It rests on a report that is not on record yet (425).
    TooEarly,
    /// Whether it will be accepted is not known (504): send it again.
    OutcomeUnknown,
    /// Nobody can answer now (503): keep it and send it again.
    Unavailable,
}

/// Answer to a heartbeat, a report, or one of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The owner's verdict.
    pub answer: Verdict,
    /// Lease from the sending of the heartbeat, ms.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_ms: Option<u64>,
    /// The task's cancel was requested: stop the handler and report.
    #[serde(default)]
    pub cancel_requested: bool,
}

/// `POST /coordinator/v1/task/{id}/result`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRequest {
    /// Task, as in the path.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// Attempt.
    #[serde(with = "forms::ExecutionText")]
    pub execution_id: ExecutionId,
    /// Its fencing token.
    pub exec_epoch: u32,
    /// As the assignment brought it.
    pub attempt_token: Text,
    /// Worker.
    #[schemars(with = "forms::Name")]
    pub worker_id: Text,
    /// How it ended.
    pub status: Outcome,
    /// SHA-256 of the result, with SUCCESS; made here from `result` when that is sent.
    #[serde(with = "forms::HashOpt", skip_serializing_if = "Option::is_none", default)]
    pub result_data_hash: Option<Sha256Hash>,
    /// The result itself, stored exactly as sent.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "forms::present")]
    pub result: Option<Box<RawValue>>,
    /// Handler time, ms.
    pub execution_time_ms: u64,
    /// Machine-readable, with FAILED.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub error_code: Option<Text>,
    /// For people, with FAILED.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_message: Option<String>,
    /// Kind of failure; TRANSIENT without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Category>")]
    pub category: Option<ErrorCategory>,
    /// Step it failed in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub failed_step: Option<Text>,
    /// Whether that step is idempotent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub is_idempotent: Option<bool>,
    /// Percent.
    #[schemars(range(max = 100))]
    pub memory_usage_percent: u32,
    /// Steps completed, earlier attempts' included.
    #[serde(default, deserialize_with = "forms::objects::all")]
    #[schemars(length(max = MAX_STEPS))]
    pub steps_done: Vec<StepBody>,
}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// It returned a result.
    #[serde(rename = "SUCCESS")]
    Success,
    /// It failed.
    #[serde(rename = "FAILED")]
    Failed,
}

/// `POST /coordinator/v1/reports`: what an SDK sends in one go. Payloads are stored first, in one
/// write; then reports and heartbeats go to their owners. Reports of one attempt are sent in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportsRequest {
    /// Payloads.
    #[serde(default, deserialize_with = "forms::objects::all")]
    #[schemars(length(max = MAX_BATCH_ITEMS))]
    pub payloads: Vec<PayloadBody>,
    /// Reports.
    #[serde(default, deserialize_with = "forms::objects::all")]
    #[schemars(length(max = MAX_BATCH_ITEMS))]
    pub reports: Vec<ReportItem>,
    /// Signs of life.
    #[serde(default, deserialize_with = "forms::objects::all")]
    #[schemars(length(max = MAX_BATCH_ITEMS))]
    pub heartbeats: Vec<HeartbeatRequest>,
}

/// One report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportItem {
    /// Run of the attempt.
    pub run_no: u32,
    /// Its fencing token.
    pub exec_epoch: u32,
    /// Attempt; names the task.
    #[serde(with = "forms::ExecutionText")]
    pub execution_id: ExecutionId,
    /// As the assignment brought it.
    pub attempt_token: Text,
    /// Worker.
    #[schemars(with = "forms::Name")]
    pub worker_id: Text,
    /// What it says.
    #[serde(deserialize_with = "forms::objects::one")]
    pub report: ReportBodyJson,
}

/// What a report says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE", deny_unknown_fields)]
pub enum ReportBodyJson {
    /// The handler is about to be entered.
    Starting {
        /// Unix ms by the worker.
        start_time: i64,
        /// Percent.
        #[schemars(range(max = 100))]
        memory_usage_percent: u32,
    },
    /// The handler will not be entered.
    Declined {
        /// The worker drains; else it declines this task.
        draining: bool,
    },
    /// A step is done and its output stored.
    Step {
        /// The step.
        #[serde(deserialize_with = "forms::objects::one")]
        done: StepBody,
    },
    /// The handler returned and its result is stored.
    Success {
        /// SHA-256 of the result.
        #[serde(with = "forms::HashText")]
        result_data_hash: Sha256Hash,
        /// Handler time, ms.
        execution_time_ms: u64,
        /// All steps, earlier attempts' included.
        #[serde(deserialize_with = "forms::objects::all")]
        #[schemars(length(max = MAX_STEPS))]
        steps_done: Vec<StepBody>,
        /// Percent.
        #[schemars(range(max = 100))]
        memory_usage_percent: u32,
    },
    /// The handler failed, or was stopped by a cancel.
    Failure {
        /// Machine-readable.
        #[schemars(with = "forms::Name")]
        error_code: Text,
        /// For people; the event keeps the first 256 characters.
        #[schemars(with = "forms::Note")]
        error_message: Text,
        /// Kind of failure.
        #[schemars(with = "forms::Category")]
        category: ErrorCategory,
        /// Step it failed in.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        #[schemars(with = "Option<forms::Name>")]
        failed_step: Option<Text>,
        /// Whether that step is idempotent.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        is_idempotent: Option<bool>,
        /// Handler time, ms.
        execution_time_ms: u64,
        /// Steps completed.
        #[serde(deserialize_with = "forms::objects::all")]
        #[schemars(length(max = MAX_STEPS))]
        steps_done: Vec<StepBody>,
        /// Percent.
        #[schemars(range(max = 100))]
        memory_usage_percent: u32,
    },
}

/// Answer to a batch: item by item, in the order sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportsResponse {
    /// `false`: the store did not answer, and no report of that task was passed on.
    pub payloads_stored: Vec<bool>,
    /// Reports.
    pub reports: Vec<Answered>,
    /// Signs of life.
    pub heartbeats: Vec<Answered>,
}

#[cfg(test)]
mod tests {
    use task_events::ExecEpoch;

    use super::*;

    #[test]
    fn a_report_names_its_kind_and_refuses_what_it_does_not_know() {
        let task = TaskId::from_raw(7 << 22).expect("an id");
        let item = ReportItem {
            run_no: 1,
            exec_epoch: 2,
            execution_id: ExecutionId::new(task, ExecEpoch(2)),
            attempt_token: "token".into(),
            worker_id: "w1".into(),
            report: ReportBodyJson::Declined { draining: true },
        };
        let text = serde_json::to_string(&item).expect("JSON");
        assert!(text.contains(r#""report":{"kind":"DECLINED","draining":true}"#), "{text}");
        assert_eq!(serde_json::from_str::<ReportItem>(&text).expect("and back"), item);
        let more = text.replace(r#""draining":true"#, r#""draining":true,"mood":"good""#);
        assert!(serde_json::from_str::<ReportItem>(&more).expect_err("refused").to_string().contains("mood"));
    }
}
