//! What is still known of a task whose rows are gone: 410 with its summary, while that lives (design.md
//! §4.8).

use coordinator::owner::Answer;
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::GoneSummary;
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::TaskId;

use super::item::item;
use crate::Edge;
use crate::problems::{Asked, Failure, failure_of};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    /// The problem that an answer about a task is.
    pub(crate) async fn refusal(&self, answer: Answer, task: TaskId) -> Failure {
        let gone = answer == Answer::Gone;
        let Failure(problem) = failure_of(answer, &Asked::about(task));
        if !gone {
            return Failure(problem);
        }
        // What it says is worth less than an answer: a store that is away does not change that.
        let ended = self.store.ended_task(task).await.ok().flatten();
        let summary = ended.and_then(|ended| serde_json::to_value(GoneSummary { task: item(ended) }).ok());
        match summary {
            Some(summary) => Failure(problem.fact("summary", summary)),
            None => Failure(problem),
        }
    }
}
