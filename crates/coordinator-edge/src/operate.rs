//! What operators see and do: queues, workers, acceptance rules.

mod operations;
mod queues;
mod rules;
mod workers;

use std::collections::BTreeMap;

use axum::extract::Request;
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{ControlRequest, MAX_BODY_BYTES, MAX_TEXT_BYTES, PartitionAnswer, PartitionAnswers};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{PartitionId, Text};

use crate::api::Routes;
use crate::problems::{Answered, Asked, Failure, failure_of};
use crate::upstream::parameters::query;
use crate::upstream::validate::{DEFAULT_CLIENT, name_of, text_within};
use crate::{Edge, reply};

/// Group of the document.
const TAG: &str = "operation";

pub(crate) fn routes<L, S, C, P>() -> Routes<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Routes::new()
        .get(TAG, "/api/v1/queues", Edge::<L, S, C, P>::queues, operations::queues())
        .post(TAG, "/api/v1/queues/{name}/pause", Edge::<L, S, C, P>::pause, operations::pause())
        .post(TAG, "/api/v1/queues/{name}/resume", Edge::<L, S, C, P>::resume, operations::resume())
        .get(TAG, "/api/v1/rules", Edge::<L, S, C, P>::rules, operations::rules())
        .post(TAG, "/api/v1/rules", Edge::<L, S, C, P>::activate, operations::activate())
        .get(TAG, "/api/v1/workers", Edge::<L, S, C, P>::workers, operations::workers())
        .get(TAG, "/api/v1/workers/{id}", Edge::<L, S, C, P>::worker, operations::worker())
        .post(TAG, "/api/v1/workers/{id}/drain", Edge::<L, S, C, P>::drain, operations::drain())
        .post(TAG, "/api/v1/workers/{id}/release", Edge::<L, S, C, P>::release, operations::release())
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    // Who asks and why.
    async fn control(&self, request: Request) -> Result<(Text, Text), Failure> {
        query(request.uri(), &[])?;
        let asked: ControlRequest = self.json_or_default(request, MAX_BODY_BYTES).await?;
        let actor = asked.actor.unwrap_or_else(|| DEFAULT_CLIENT.into());
        name_of("/actor", &actor)?;
        text_within("/reason", &asked.reason, MAX_TEXT_BYTES)?;
        Ok((actor, asked.reason))
    }

    // To every partition; each says for itself what became of it there.
    async fn everywhere(&self, command: &Command, done: &Answer) -> Answered {
        let answers: BTreeMap<PartitionId, Answer> = self.surface.ask_all(command).await;
        let partitions = answers.into_iter().map(|(partition, answer)| {
            let failed = (answer != *done).then(|| failure_of(answer, &Asked::default()).into_problem());
            PartitionAnswer { partition: partition.0, problem: failed }
        });
        let answers = PartitionAnswers { partitions: partitions.collect() };
        let status = if answers.is_done() { StatusCode::OK } else { StatusCode::MULTI_STATUS };
        reply::json(status, &answers)
    }
}
