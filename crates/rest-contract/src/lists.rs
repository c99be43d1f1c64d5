//! Lists of tasks: `GET /api/v1/tasks` and `GET /api/v1/review`, page by page.
//!
//! A list is in the order of ids, which is that of creation. A page says where the next one begins by
//! an opaque cursor: it belongs to the question it was given for (the same filters and order, any
//! `limit`), may be used again, and outlives restarts and hand-overs. A page may hold fewer tasks than
//! its limit, or none, and still have a next one: each looks at a bounded number of tasks only, and
//! says how many and how far.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use task_events::{ReviewOutcome, TaskId, TaskState, Text};

use crate::forms;

/// In which order a list is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    /// The newest task first.
    #[default]
    Newest,
    /// The oldest task first.
    Oldest,
}

impl ListOrder {
    /// As it stands in `order=`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }

    /// The one of this text.
    pub fn named(text: &str) -> Option<Self> {
        [Self::Newest, Self::Oldest].into_iter().find(|order| order.as_str() == text)
    }
}

/// Which tasks are listed, and where the page begins: the parameters of `GET /api/v1/tasks`. Every
/// one that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TasksQuery {
    /// Any of these states (`state=FAILED,LOST`); all of them if it is empty.
    pub states: Vec<TaskState>,
    /// `type`.
    pub task_type: Option<Text>,
    /// `queue`.
    pub queue: Option<Text>,
    /// `creator`.
    pub creator: Option<Text>,
    /// Worker of the last attempt.
    pub worker: Option<Text>,
    /// Code of the last failure.
    pub code: Option<Text>,
    /// The time in the task's id, which is within a second of `created_at`, is this one or later, Unix ms.
    pub from: Option<i64>,
    /// The time in the task's id is before this one, Unix ms; not below `from`.
    pub to: Option<i64>,
    /// Labels (`label=KEY=VALUE`, once for each).
    pub labels: BTreeMap<Text, Text>,
    /// Order.
    pub order: ListOrder,
    /// Most tasks of the page, 1 to [`MAX_PAGE`](crate::MAX_PAGE); [`DEFAULT_PAGE`](crate::DEFAULT_PAGE) without it.
    pub limit: Option<u32>,
    /// `next_cursor` of the page before; the first page without it.
    pub cursor: Option<String>,
}

impl TasksQuery {
    /// Its parameters, as they stand in the URL.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if !self.states.is_empty() {
            let states: Vec<_> = self.states.iter().map(|state| state.as_str()).collect();
            found.push(("state", states.join(",")));
        }
        for (name, text) in [
            ("type", &self.task_type),
            ("queue", &self.queue),
            ("creator", &self.creator),
            ("worker", &self.worker),
            ("code", &self.code),
        ] {
            found.extend(text.as_ref().map(|text| (name, text.to_string())));
        }
        found.extend(self.from.map(|at| ("from", at.to_string())));
        found.extend(self.to.map(|at| ("to", at.to_string())));
        found.extend(self.labels.iter().map(|(key, value)| ("label", format!("{key}={value}"))));
        if self.order != ListOrder::default() {
            found.push(("order", self.order.as_str().to_owned()));
        }
        found.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        found.extend(self.cursor.clone().map(|cursor| ("cursor", cursor)));
        found
    }
}

/// A page of `GET /api/v1/tasks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TasksPage {
    /// Tasks in the order asked for; each is on one page only, whatever happens to it meanwhile.
    pub tasks: Vec<TaskItem>,
    /// Where the page came from and how it goes on.
    #[serde(flatten)]
    pub page: PageEnd,
}

/// How far a page looked, and where the next one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageEnd {
    /// Begins the next page; absent when nothing can follow.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
    /// How many tasks were looked at for this page, those that do not match included.
    pub looked_at: u64,
    /// Time in the ids up to which every task was looked at, Unix ms (down to which, newest first);
    /// absent when nothing is left to be looked at.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub looked_to: Option<i64>,
    /// Partitions whose owner did not answer (the answer is 207 then): their open tasks are missing on
    /// this page. The same cursor again brings them once they have an owner.
    #[serde(default)]
    pub unanswered: Vec<u16>,
}

/// A task in a list. `GET /api/v1/task/{id}` tells the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskItem {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// State.
    #[schemars(with = "forms::State")]
    pub status: TaskState,
    /// Run.
    pub run_no: u32,
    /// Handler that runs it.
    pub task_type: Text,
    /// Queue.
    pub queue: Text,
    /// Client that created it.
    pub creator: Text,
    /// Worker of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worker_id: Option<Text>,
    /// Unix ms.
    pub created_at: i64,
    /// End of its last run, Unix ms; absent while it is open.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed_at: Option<i64>,
    /// Code of the last failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_code: Option<Text>,
    /// Its first 256 characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_summary: Option<Text>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub labels: BTreeMap<Text, Text>,
}

/// A page of `GET /api/v1/review`: tasks that failed for good and that nobody has decided about.
/// Takes `type`, `queue`, `creator`, `code`, `order`, `limit` and `cursor` of [`TasksQuery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewPage {
    /// Tasks in the order asked for. One leaves the list when it is reviewed or replayed.
    pub items: Vec<ReviewItem>,
    /// How the list goes on.
    #[serde(flatten)]
    pub page: PageEnd,
}

/// A task that waits for somebody's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewItem {
    /// The task.
    #[serde(flatten)]
    pub task: TaskItem,
    /// Kind of failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub category: Option<Text>,
    /// Step it failed in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed_step: Option<Text>,
}

/// `POST /api/v1/review/{id}`: a decision about a closed task, as a TaskReviewed of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    /// The run that was looked at; another one than the last is refused with the current one.
    #[schemars(range(min = 1))]
    pub run_no: u32,
    /// `ACCEPTED` (it is well as it is) or `ABANDONED` (it is given up).
    #[schemars(with = "forms::Decision")]
    pub outcome: ReviewOutcome,
    /// The decision that stands, to take it back; without it another one than stands is refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Decision>")]
    pub instead_of: Option<ReviewOutcome>,
    /// Who decides; `default` without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub actor: Option<Text>,
    /// Why.
    #[serde(default)]
    #[schemars(with = "forms::Note")]
    pub note: Text,
}

/// 200: the decision is on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reviewed {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
}

/// What is still known of a task whose rows are gone: `summary` of the problem `replay_window_over`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoneSummary {
    /// The task as it ended.
    #[serde(flatten)]
    pub task: TaskItem,
}
