//! What operators see and do: queues and workers.

mod queues;
mod workers;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::{get, post};
use coordinator::owner::{Answer, Command};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{ControlRequest, MAX_BODY_BYTES, MAX_TEXT_BYTES, PartitionAnswer, PartitionAnswers};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{PartitionId, Text};

use crate::problems::{Answered, Asked, Failure, failure_of};
use crate::upstream::parameters::query;
use crate::upstream::validate::{DEFAULT_CLIENT, name_of, text_within};
use crate::{Edge, reply};

pub(crate) fn router<L, S, C, P>() -> Router<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Router::new()
        .route("/api/v1/queues", get(Edge::<L, S, C, P>::queues))
        .route("/api/v1/queues/{name}/pause", post(Edge::<L, S, C, P>::pause))
        .route("/api/v1/queues/{name}/resume", post(Edge::<L, S, C, P>::resume))
        .route("/api/v1/workers", get(Edge::<L, S, C, P>::workers))
        .route("/api/v1/workers/{id}", get(Edge::<L, S, C, P>::worker))
        .route("/api/v1/workers/{id}/drain", post(Edge::<L, S, C, P>::drain))
        .route("/api/v1/workers/{id}/release", post(Edge::<L, S, C, P>::release))
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
