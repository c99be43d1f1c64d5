//! What the document says of lists.

use rest_contract::{
    Code, DEFAULT_PAGE, MAX_BODY_BYTES, MAX_LABELS, MAX_PAGE, ReviewPage, ReviewRequest, Reviewed, TasksPage, forms,
};
use serde_json::{Value, json};
use task_events::{ReviewOutcome, TaskState};

use crate::api::{BODY, ONE_TASK, OWNER, Operation, PARAMETERS, Parameter, RECORD, schema};

/// How lists go from page to page.
const PAGES: &str = "A page may hold fewer tasks than its limit, or none, and still have a next one: each looks at a \
                     bounded number of tasks, and says how many and how far. A cursor belongs to the question it was \
                     given for, may be used again, and outlives restarts.";

fn name(name: &str, about: &str) -> Parameter {
    Parameter::query(name, schema::<forms::Name>(), about)
}

/// How much a page holds.
pub(crate) fn page_limit(about: &str) -> Parameter {
    Parameter::query("limit", json!({ "type": "integer", "minimum": 1, "maximum": MAX_PAGE }), about)
}

/// Which page.
pub(crate) fn page_cursor() -> Parameter {
    Parameter::query("cursor", json!({ "type": "string" }), "`next_cursor` of the page before.")
}

// Parameters of both lists.
fn list(id: &'static str, summary: &'static str) -> Operation {
    let order = json!({ "type": "string", "enum": ["newest", "oldest"] });
    Operation::new(id, summary)
        .about(PAGES)
        .takes(name("type", "Task type."))
        .takes(name("queue", "Queue."))
        .takes(name("creator", "Client that created it."))
        .takes(name("code", "Code of the last failure."))
        .takes(Parameter::query("order", order, "By creation.").default("newest"))
        .takes(page_limit("Most tasks of the page.").default(DEFAULT_PAGE))
        .takes(page_cursor())
        .refuses(PARAMETERS)
        .refuses(&[Code::InvalidField, Code::InvalidCursor, Code::StoreUnavailable])
}

fn time(name: &str, about: &str) -> Parameter {
    Parameter::query(name, json!({ "type": "integer", "format": "int64", "minimum": 0 }), about)
}

pub(super) fn tasks() -> Operation {
    let all: Vec<_> = TaskState::ALL.iter().map(|state| state.as_str()).collect();
    let one = all.join("|");
    let states: Value =
        json!({ "type": "string", "pattern": format!("^({one})(,({one}))*$"), "examples": ["FAILED,LOST"] });
    let label = json!({ "type": "string", "pattern": "^[^=]+=", "examples": ["country=DE"] });
    let labels = json!({ "type": "array", "items": label, "maxItems": MAX_LABELS });
    list("listTasks", "Lists tasks: every filter that is given must hold")
        .takes(Parameter::query("state", states, "Any of these states, separated by commas; all without it."))
        .takes(name("worker", "Worker of the last attempt."))
        .takes(time(
            "from",
            "Unix ms. The time in the task's id, which is within a second of its creation, is this one or later.",
        ))
        .takes(time("to", "Unix ms. The time in the task's id is before this one."))
        .takes(Parameter::query("label", labels, "`KEY=VALUE`, once for each label."))
        .answers::<TasksPage>(200, "A page, in the order asked for; each task is on one page only.")
        .answers::<TasksPage>(207, "The same, but partitions did not answer: their open tasks are missing.")
}

pub(super) fn review() -> Operation {
    list("listReview", "Lists tasks that failed for good and wait for somebody's decision")
        .answers::<ReviewPage>(200, "A page, in the order asked for.")
        .answers::<ReviewPage>(207, "The same, but partitions did not answer: their newest tasks may be missing.")
}

pub(super) fn decide() -> Operation {
    let asked = ReviewRequest {
        run_no: 1,
        outcome: ReviewOutcome::Abandoned,
        instead_of: None,
        actor: Some("anna".into()),
        note: "the customer is gone".into(),
    };
    Operation::new("reviewTask", "Puts a decision about a closed task on record")
        .about("Another decision that stands is taken back only if `instead_of` names it.")
        .takes(Parameter::path("id", schema::<forms::TaskIdText>(), "Task."))
        .body(MAX_BODY_BYTES, &asked)
        .answers::<Reviewed>(200, "The decision is on record.")
        .refuses(PARAMETERS)
        .refuses(BODY)
        .refuses(ONE_TASK)
        .refuses(OWNER)
        .refuses(RECORD)
        .refuses(&[Code::TaskOpen, Code::RunMismatch, Code::StateConflict])
}
