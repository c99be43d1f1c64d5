//! What the document says of the endpoints of those who create and read tasks.

use rest_contract::{
    BatchCreated, CancelAccepted, CancelRequest, Code, CreateBatch, CreateRequest, Created, DEFAULT_EVENTS_PAGE,
    EventsView, FoundView, MAX_BATCH_BYTES, MAX_BODY_BYTES, ReplayRequest, Replayed, ResultView, TaskView, WhyView,
    forms,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use task_events::ReplayFrom;

use super::validate::DEFAULT_CLIENT;
use crate::api::{BODY, ONE_TASK, OWNER, Operation, PARAMETERS, Parameter, RECORD, schema};
use crate::lists::{page_cursor, page_limit};

/// A create is refused for these, besides.
const CREATE: &[Code] =
    &[Code::IdempotencyConflict, Code::BacklogFull, Code::PlacementConflict, Code::StoreBehind, Code::ClockUnsettled];

fn task_id() -> Parameter {
    Parameter::path("id", schema::<forms::TaskIdText>(), "Task.")
}

// What every operation about one task has.
fn about_task(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary).takes(task_id()).refuses(PARAMETERS).refuses(ONE_TASK).refuses(OWNER)
}

fn creates(id: &'static str, summary: &'static str) -> Operation {
    let key = "A request with the same key and meaning creates nothing again for 24 h; with another meaning it is a \
               conflict. Visible ASCII. Item i of a batch has `KEY#i` unless it names its own.";
    let trace = "W3C Trace Context: the task takes its trace from it, unless the body names one. What cannot be read \
                 counts as absent.";
    Operation::new(id, summary)
        .takes(Parameter::header("Idempotency-Key", schema::<forms::Name>(), key))
        .takes(Parameter::header("traceparent", json!({ "type": "string" }), trace))
        .refuses(PARAMETERS)
        .refuses(BODY)
}

fn example() -> CreateRequest {
    CreateRequest {
        task_type: "word_count".into(),
        payload: to_raw_value(&json!({ "text": "to be or not to be" })).ok(),
        priority: Some(5),
        business_key: Some("order-4711".into()),
        labels: [("country".into(), "DE".into())].into(),
        ..CreateRequest::default()
    }
}

pub(super) fn create() -> Operation {
    let about = "Exactly one of `payload` and `payload_ref` is given. 201 says that the task is in the log, accepted.";
    creates("createTask", "Creates a task")
        .about(about)
        .body(MAX_BODY_BYTES, &example())
        .answers::<Created>(201, "A new task.")
        .answers::<Created>(200, "The key's first task: nothing was created.")
        .refuses(OWNER)
        .refuses(RECORD)
        .refuses(CREATE)
}

pub(super) fn create_batch() -> Operation {
    let about = "Each item is created or refused by itself; a body that is no JSON, or names a key twice, is refused \
                 as a whole.";
    let batch = CreateBatch { tasks: vec![example(), CreateRequest { queue: Some("slow".into()), ..example() }] };
    creates("createTasks", "Creates up to 1,000 tasks")
        .about(about)
        .body(MAX_BATCH_BYTES, &batch)
        .answers::<BatchCreated>(207, "Item by item, in the order sent.")
}

pub(super) fn get() -> Operation {
    let wait = json!({ "type": "string", "pattern": "^[0-9]+(ms|s)?$", "examples": ["30s", "500ms", "0"] });
    let about = "Waits until the task is terminal, at most this long (60 s at most), and tells how it is then.";
    about_task("getTask", "Reads a task")
        .takes(Parameter::query("wait", wait, about).default("0"))
        .answers::<TaskView>(200, "The task, as of a position of the log.")
}

pub(super) fn events() -> Operation {
    let about =
        "Page by page. A cursor belongs to the task it was given for, may be used again, and outlives restarts.";
    about_task("getTaskEvents", "Reads the history of a task: every record, with the verdict on it")
        .about(about)
        .takes(page_limit("Most records of the page.").default(DEFAULT_EVENTS_PAGE))
        .takes(page_cursor())
        .answers::<EventsView>(200, "A page of its records, in the order of the log.")
        .refuses(&[Code::InvalidField, Code::InvalidCursor, Code::LogUnavailable])
}

pub(super) fn why() -> Operation {
    about_task("explainTask", "Tells the one fact that keeps a task where it is")
        .answers::<WhyView>(200, "The fact, whose turn it is, and what can be done.")
}

pub(super) fn result() -> Operation {
    about_task("getTaskResult", "Reads the result of a task, proven by the hash in the log")
        .answers::<ResultView>(200, "The result of the task's last run.")
        .refuses(&[Code::NoResult, Code::PayloadMissing])
}

pub(super) fn cancel() -> Operation {
    let asked = CancelRequest { actor: Some("anna".into()), reason: "ordered twice".into() };
    about_task("cancelTask", "Asks to cancel a task")
        .about("A live attempt is told with its next sign of life, and gets a time of grace to stop.")
        .body(MAX_BODY_BYTES, &asked)
        .or_no_body()
        .answers::<CancelAccepted>(202, "The request is on record.")
        .refuses(BODY)
        .refuses(RECORD)
        .refuses(&[Code::TaskClosed, Code::StateConflict])
}

pub(super) fn replay() -> Operation {
    let asked = ReplayRequest {
        run_no: 1,
        from: ReplayFrom::Failure,
        from_step: None,
        actor: Some("anna".into()),
        reason: "the bank is back".into(),
    };
    about_task("replayTask", "Opens a new run of a closed task")
        .about("It names the run that it replays; another one than the last is refused with the current one.")
        .body(MAX_BODY_BYTES, &asked)
        .answers::<Replayed>(202, "A new run is open.")
        .refuses(BODY)
        .refuses(RECORD)
        .refuses(&[Code::TaskOpen, Code::RunMismatch, Code::StateConflict, Code::UnknownStep])
}

fn found(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary)
        .about("At most 200 tasks, of more the newest.")
        .answers::<FoundView>(200, "Tasks, oldest first.")
        .answers::<FoundView>(207, "The same, but partitions did not answer: their newest tasks may be missing.")
        .refuses(PARAMETERS)
        .refuses(&[Code::StoreUnavailable])
}

pub(super) fn by_trace() -> Operation {
    found("getTrace", "Finds the tasks of a trace").takes(Parameter::path(
        "trace_id",
        schema::<forms::Trace>(),
        "Trace id, not all 0.",
    ))
}

pub(super) fn by_business_key() -> Operation {
    found("getBusinessKey", "Finds the tasks of a business key")
        .takes(Parameter::path("key", schema::<forms::Name>(), "Order number or the like."))
        .takes(Parameter::query("creator", schema::<forms::Name>(), "Client that created them.").default(default()))
        .refuses(&[Code::InvalidField])
}

fn default() -> Value {
    DEFAULT_CLIENT.into()
}
