//! What the document says of what operators see and do.

use rest_contract::{
    ActivateRequest, Code, ControlRequest, DrainView, MAX_BODY_BYTES, PartitionAnswers, QueuesView, RulesView,
    WorkerDetail, WorkersView, forms,
};

use crate::api::{BODY, Operation, PARAMETERS, Parameter, schema};

/// Of an answer that lacks something.
const PARTLY: &str = "The same, but some did not answer: what they know is missing.";

fn looks(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary).refuses(PARAMETERS)
}

fn acts(id: &'static str, summary: &'static str, name: &str, about: &str) -> Operation {
    let asked = ControlRequest { actor: Some("anna".into()), reason: "maintenance".into() };
    looks(id, summary)
        .takes(Parameter::path(name, schema::<forms::Name>(), about))
        .body(MAX_BODY_BYTES, &asked)
        .or_no_body()
        .refuses(BODY)
}

fn everywhere(operation: Operation) -> Operation {
    operation
        .answers::<PartitionAnswers>(200, "It is on record in every partition.")
        .answers::<PartitionAnswers>(207, "Partition by partition: in some it is not on record, or not known to be.")
}

pub(super) fn queues() -> Operation {
    looks("listQueues", "Lists queues that have open tasks, are paused, or were polled lately")
        .answers::<QueuesView>(200, "Queues, by name.")
        .answers::<QueuesView>(207, PARTLY)
}

pub(super) fn pause() -> Operation {
    everywhere(acts("pauseQueue", "Hands out nothing of a queue any more", "name", "Queue."))
}

pub(super) fn resume() -> Operation {
    everywhere(acts("resumeQueue", "Hands out tasks of a queue again", "name", "Queue."))
}

pub(super) fn workers() -> Operation {
    looks("listWorkers", "Lists workers that polled lately or hold an attempt")
        .answers::<WorkersView>(200, "Workers, by name.")
        .answers::<WorkersView>(207, PARTLY)
}

pub(super) fn worker() -> Operation {
    looks("getWorker", "Reads a worker and its live attempts")
        .takes(Parameter::path("id", schema::<forms::Name>(), "Worker."))
        .answers::<WorkerDetail>(200, "The worker.")
        .answers::<WorkerDetail>(207, PARTLY)
        .refuses(&[Code::WorkerUnknown, Code::InvalidField])
}

pub(super) fn drain() -> Operation {
    acts("drainWorker", "Asks a worker to finish what it holds and to end", "id", "Worker.")
        .about("It is asked of the process that is there now: one that is started later takes work again.")
        .answers::<DrainView>(200, "Every instance gives it no work any more.")
        .answers::<DrainView>(207, "Instances did not answer: polled there, it may still get work.")
        .refuses(&[Code::WorkerUnknown])
}

pub(super) fn release() -> Operation {
    everywhere(acts("releaseWorker", "Lets a drained or quarantined worker take work again", "id", "Worker."))
}

pub(super) fn rules() -> Operation {
    looks("getRules", "Reads which acceptance rules are active, and who knows which")
        .answers::<RulesView>(200, "Rules by partition, members by group.")
        .answers::<RulesView>(207, PARTLY)
}

pub(super) fn activate() -> Operation {
    everywhere(looks("activateRules", "Activates acceptance rules in every partition, for good"))
        .body(MAX_BODY_BYTES, &ActivateRequest { version: 2 })
        .about("Refused while any live member of a group does not know them. There is no way back.")
        .refuses(BODY)
        .refuses(&[Code::RulesUnsupported, Code::RulesNotForward, Code::LogUnavailable])
}
