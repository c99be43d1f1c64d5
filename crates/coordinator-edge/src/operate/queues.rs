//! `GET /api/v1/queues`, `POST …/{name}/pause|resume`.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command, Look, Looked, QueueFacts};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{QueueView, QueuesView};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{PartitionId, Text};

use crate::problems::Answered;
use crate::upstream::parameters::{Part, query, text_of};
use crate::upstream::validate::name_of;
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn queues(State(edge): State<Self>, request: Request) -> Answered {
        query(request.uri(), &[])?;
        let answers = edge.surface.ask_all(&Command::Look(Look::Queues)).await;
        let (mut queues, mut unanswered, mut answered) = (BTreeMap::new(), Vec::new(), 0);
        for (partition, answer) in answers {
            let facts = if let Answer::Looked(looked) = answer { Some(*looked) } else { None };
            let Some(Looked::Queues(facts)) = facts else {
                unanswered.push(partition.0);
                continue;
            };
            answered += 1;
            facts.into_iter().for_each(|facts| add(&mut queues, partition, facts));
        }
        let queues = queues
            .into_values()
            .map(|queue: QueueView| QueueView { paused: queue.paused_partitions.len() == answered, ..queue });
        let status = if unanswered.is_empty() { StatusCode::OK } else { StatusCode::MULTI_STATUS };
        reply::json(status, &QueuesView { queues: queues.collect(), unanswered })
    }

    pub(super) async fn pause(State(edge): State<Self>, name: Part, request: Request) -> Answered {
        edge.set(name, request, true).await
    }

    pub(super) async fn resume(State(edge): State<Self>, name: Part, request: Request) -> Answered {
        edge.set(name, request, false).await
    }

    async fn set(&self, name: Part, request: Request, pause: bool) -> Answered {
        let queue = Text::from(text_of("name", name)?);
        name_of("name", &queue)?;
        let (actor, reason) = self.control(request).await?;
        self.everywhere(&Command::Queue { queue, pause, actor, reason }, &Answer::QueueChanged).await
    }
}

fn add(queues: &mut BTreeMap<Text, QueueView>, partition: PartitionId, facts: QueueFacts) {
    let queue = queues.entry(facts.queue.clone()).or_insert_with(|| QueueView {
        queue: facts.queue,
        paused: false,
        paused_partitions: Vec::new(),
        ready: 0,
        running: 0,
        open: 0,
        polled_ms_ago: None,
    });
    queue.paused_partitions.extend(facts.paused.then_some(partition.0));
    queue.ready += facts.ready;
    queue.running += facts.running;
    queue.open += facts.open;
    queue.polled_ms_ago = match (queue.polled_ms_ago, facts.polled_ms_ago) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
}
