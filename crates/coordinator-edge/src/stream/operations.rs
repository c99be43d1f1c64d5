//! What the document says of the stream of events.

use rest_contract::{Code, forms};
use serde_json::json;
use task_events::Kind;

use crate::api::{Operation, PARAMETERS, Parameter, schema};

const ABOUT: &str = "Server-sent events. Each message of the type `record` has a StreamRecord as its data, and as its id \
                     the position behind it in all partitions: `Last-Event-ID` or `cursor` goes on exactly there. \
                     Records of one partition come in its order. A message of the type `end` is the last one; its \
                     data is a Problem: `draining`, `reader_too_slow`, or what kept the log from being read. With \
                     `until=now` the last one is of the type `reached`, and its id goes on behind it.";

pub(super) fn events() -> Operation {
    let from = json!({ "type": "string", "pattern": "^(now|start|[0-9]+)$" });
    let number = json!({ "type": "integer", "format": "int64", "minimum": 0 });
    let partition = json!({ "type": "integer", "minimum": 0 });
    let all: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    let one = all.join("|");
    let kinds =
        json!({ "type": "string", "pattern": format!("^({one})(,({one}))*$"), "examples": ["TaskCreated,TaskLost"] });
    let verdict = json!({ "type": "string", "enum": ["accepted", "all"] });
    let until = json!({ "type": "string", "enum": ["now"] });
    let text = || json!({ "type": "string" });
    Operation::new("streamEvents", "Streams the records of the log as they come, from any position")
        .about(ABOUT)
        .takes(
            Parameter::query("from", from, "`now`, `start`, or the first record at or after a time in Unix ms.")
                .default("now"),
        )
        .takes(Parameter::query("partition", partition, "Only this partition."))
        .takes(Parameter::query("offset", number, "Begins at this offset of `partition`."))
        .takes(Parameter::query("cursor", text(), "Begins behind the message of this id."))
        .takes(Parameter::header("Last-Event-ID", text(), "The same, as browsers send it; it goes before `cursor`."))
        .takes(Parameter::query("kind", kinds, "Any of these kinds, separated by commas; all without it."))
        .takes(Parameter::query("task", schema::<forms::TaskIdText>(), "Records of this task."))
        .takes(Parameter::query("trace", schema::<forms::Trace>(), "Records of this trace."))
        .takes(Parameter::query("worker", schema::<forms::Name>(), "Records that name this worker."))
        .takes(Parameter::query("verdict", verdict, "`all`: rejected and quarantined records too.").default("accepted"))
        .takes(Parameter::query("until", until, "`now`: ends with what the log holds when the stream is opened."))
        .answers_with(
            200,
            "text/event-stream",
            json!({ "type": "string" }),
            "Messages, without end unless `until` is given.",
        )
        .refuses(PARAMETERS)
        .refuses(&[Code::InvalidField, Code::PositionGone, Code::LogUnavailable])
}
