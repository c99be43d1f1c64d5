//! Which records a stream shows.

use task_events::{Event, Kind, TaskId, Text};

/// What must hold for a record to be shown.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub kinds: Vec<Kind>,
    pub task: Option<TaskId>,
    pub trace: Option<Text>,
    pub worker: Option<Text>,
    /// Rejected and quarantined records too.
    pub all_verdicts: bool,
}

impl Filter {
    /// Whether it shows this event, as far as its envelope tells.
    pub fn takes(&self, event: &Event) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.task.is_none_or(|task| event.task_id == Some(task))
            && self.trace.as_ref().is_none_or(|trace| event.trace_id == *trace)
    }

    /// Whether it shows this event by the worker that its body names.
    pub fn takes_worker(&self, event: &serde_json::Value) -> bool {
        self.worker
            .as_ref()
            .is_none_or(|worker| event.pointer("/body/worker_id").and_then(serde_json::Value::as_str) == Some(worker))
    }

    /// Whether it shows what cannot be decoded: nothing is known of it.
    pub fn takes_malformed(&self) -> bool {
        let nothing = self.task.is_none() && self.trace.is_none() && self.worker.is_none();
        self.all_verdicts && self.kinds.is_empty() && nothing
    }
}
