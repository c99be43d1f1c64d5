//! Workers and queues: what operators see and do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use task_events::{ExecutionId, Incarnation, TaskId, TaskState, Text};

use crate::forms;
use crate::problem::Problem;

/// Who asks and why; body of `…/drain`, `…/release`, `…/pause`, `…/resume`. May be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlRequest {
    /// Who asks; `default` without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub actor: Option<Text>,
    /// Why.
    #[serde(default)]
    #[schemars(with = "forms::Note")]
    pub reason: Text,
}

/// `GET /api/v1/workers`: 207 when an instance or a partition did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkersView {
    /// Every worker that polled within the last ten minutes or holds an attempt, by name.
    pub workers: Vec<WorkerView>,
    /// Instances that did not answer: workers that poll there may be missing.
    pub unanswered_instances: Vec<Text>,
    /// Partitions whose owner did not answer: attempts may be missing.
    pub unanswered: Vec<u16>,
}

/// A worker, as its last poll and its attempts show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerView {
    /// Worker.
    pub worker_id: Text,
    /// Its newest process; absent if it has not polled since the instances started.
    #[serde(with = "forms::IncarnationOpt", skip_serializing_if = "Option::is_none", default)]
    pub incarnation: Option<Incarnation>,
    /// Version of its handlers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handler_version: Option<Text>,
    /// Queues it serves.
    pub queues: Vec<Text>,
    /// Slots it had free when it last polled.
    pub free_slots: u32,
    /// Attempts it said it holds then.
    pub held: u32,
    /// Its last poll, Unix ms by the clock of the instance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_poll_at: Option<i64>,
    /// Instance it polled.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub instance: Option<Text>,
    /// It is asked to drain: it gets no work any more.
    pub draining: bool,
    /// Live attempts it has on record.
    pub running: u64,
}

/// `GET /api/v1/workers/{id}`; 404 `worker_unknown` if nobody has heard of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerDetail {
    /// The worker.
    #[serde(flatten)]
    pub worker: WorkerView,
    /// Its live attempts, the oldest first; at most 1,000.
    pub attempts: Vec<AttemptView>,
    /// Instances that did not answer.
    pub unanswered_instances: Vec<Text>,
    /// Partitions whose owner did not answer.
    pub unanswered: Vec<u16>,
}

/// A live attempt of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptView {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// Handler that runs it.
    pub task_type: Text,
    /// Queue.
    pub queue: Text,
    /// `ASSIGNED` or `EXECUTING`.
    #[schemars(with = "forms::State")]
    pub status: TaskState,
    /// Run.
    pub run_no: u32,
    /// Fencing token.
    pub exec_epoch: u32,
    /// Identity of the attempt.
    #[serde(with = "forms::ExecutionText")]
    pub execution_id: ExecutionId,
    /// Its assignment, Unix ms.
    pub assigned_at: i64,
}

/// `POST /api/v1/workers/{id}/drain`: 207 when an instance did not answer. The worker hears of it with
/// its next poll, finishes what it holds and ends. It is asked of the process that is there now, not of
/// the worker for ever: a process that is started later, or `…/release`, takes work again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainView {
    /// Worker.
    pub worker_id: Text,
    /// Instances that know of it now.
    pub instances: Vec<Text>,
    /// Instances that did not answer: polled there, it may still get work.
    pub unanswered_instances: Vec<Text>,
}

/// What goes to every partition: 200 when all did it, else 207.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionAnswers {
    /// One for each partition, in their order.
    pub partitions: Vec<PartitionAnswer>,
}

impl PartitionAnswers {
    /// Whether every partition did it.
    pub fn is_done(&self) -> bool {
        self.partitions.iter().all(|answer| answer.problem.is_none())
    }
}

/// What became of it in one partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionAnswer {
    /// Partition.
    pub partition: u16,
    /// Why it is not on record there, or not known to be; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<Problem>,
}

/// `GET /api/v1/queues`: 207 when a partition did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuesView {
    /// Every queue that has open tasks, is paused, or was polled within the last ten minutes, by name.
    pub queues: Vec<QueueView>,
    /// Partitions whose owner did not answer: their tasks are not counted.
    pub unanswered: Vec<u16>,
}

/// A queue, over all partitions that answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueView {
    /// Queue.
    pub queue: Text,
    /// Nothing of it is handed out, in any partition.
    pub paused: bool,
    /// Partitions in which it is paused.
    pub paused_partitions: Vec<u16>,
    /// Tasks that could be handed out now.
    pub ready: u64,
    /// Tasks with a live attempt.
    pub running: u64,
    /// All open tasks, those that back off or wait for a verdict included.
    pub open: u64,
    /// Since a worker last asked for its tasks, ms; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub polled_ms_ago: Option<u64>,
}

/// `GET /api/v1/rules`: 207 when a partition or the log's groups did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulesView {
    /// Newest acceptance rules that the server that answers knows.
    pub known: u32,
    /// Rules that are active, by partition.
    pub partitions: Vec<PartitionRules>,
    /// Partitions whose owner did not answer.
    pub unanswered: Vec<u16>,
    /// Every live member of the groups of coordinators, engines, replayers and audit, by group and client
    /// id; absent if the log does not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub members: Option<Vec<MemberRules>>,
}

/// Rules of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionRules {
    /// Partition.
    pub partition: u16,
    /// Version of the rules its next record is judged by.
    pub active: u32,
}

/// A live member of a group, and the rules it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberRules {
    /// Group: the service's name.
    pub group: Text,
    /// What it says of itself: `service|instance|rules=FROM-TO|url`, unless it is something else.
    pub client_id: Text,
    /// Its name; absent if its client id does not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub instance: Option<Text>,
    /// Oldest rules it knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rules_from: Option<u32>,
    /// Newest rules it knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rules_to: Option<u32>,
    /// Partitions it holds now.
    pub partitions: Vec<u16>,
}

impl MemberRules {
    /// Whether it says that it knows these rules.
    pub fn knows(&self, version: u32) -> bool {
        self.rules_from.is_some_and(|from| from <= version) && self.rules_to.is_some_and(|to| version <= to)
    }
}

/// `POST /api/v1/rules`: activates rules in every partition, for good. Asking again does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActivateRequest {
    /// Version.
    #[schemars(range(min = 1))]
    pub version: u32,
}
