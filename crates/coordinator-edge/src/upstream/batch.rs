//! `POST /api/v1/task/create-batch`: item by item, concurrently; one that is not valid keeps no
//! other one back. A body that is no JSON, or bears a key twice, is refused as a whole.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::join_all;
use rest_contract::{
    BatchCreated, BatchItem, Code, CreateRequest, ItemOutcome, MAX_BATCH_BYTES, MAX_BATCH_ITEMS, MAX_NAME_BYTES,
    Problem,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::Text;

use super::asked::Asking;
use super::create::created_of;
use super::parameters::{key_of, query};
use super::validate::name_of;
use crate::problems::{Answered, Asked, Failure, bad_field, failure_of};
use crate::{Edge, json, reply};

// Items are read one by one, so that each is refused by itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Items<'a> {
    #[serde(borrow)]
    tasks: Vec<&'a RawValue>,
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn create_batch(State(edge): State<Self>, request: Request) -> Answered {
        let asking = edge.asking(request.headers());
        let answered = edge.batch_created(request, asking).await;
        edge.answered(asking, "/api/v1/task/create-batch", &answered);
        answered
    }

    async fn batch_created(&self, request: Request, asking: Asking) -> Answered {
        query(request.uri(), &[])?;
        let key = key_of(request.headers())?;
        let bytes = self.json_bytes(request, MAX_BATCH_BYTES).await?;
        json::check(&bytes)?;
        let Items { tasks } = json::decode(&bytes, "")?;
        if tasks.is_empty() || tasks.len() > MAX_BATCH_ITEMS {
            return Err(bad_field("/tasks", tasks.len(), &format!("1 to {MAX_BATCH_ITEMS} items")).into());
        }
        let items = tasks.into_iter().enumerate().map(|(index, raw)| {
            let key = key.as_ref();
            async move {
                match self.item(index, raw, key, asking).await {
                    Ok(item) => item,
                    Err(failure) => refused(index, failure.into_problem()),
                }
            }
        });
        let items = join_all(items).await;
        reply::json(StatusCode::MULTI_STATUS, &BatchCreated { items })
    }

    async fn item(
        &self,
        index: usize,
        raw: &RawValue,
        key: Option<&Text>,
        asking: Asking,
    ) -> Result<BatchItem, Failure> {
        let below = format!("/tasks/{index}");
        let mut create: CreateRequest = json::decode(raw.get().as_bytes(), &below)?;
        let own = create.idempotency_key.take();
        if let Some(own) = &own {
            name_of(&format!("{below}/idempotency_key"), own)?;
        }
        let key = own.or_else(|| key.map(|key| format!("{key}#{index}").into()));
        if let Some(long) = key.as_ref().filter(|key| key.len() > MAX_NAME_BYTES) {
            return Err(bad_field("Idempotency-Key", long.as_str(), "so short that it fits with #index").into());
        }
        let answer = self.create_one(create, key.clone(), (asking, None), &below).await?;
        match created_of(answer) {
            Ok((status, created)) => Ok(BatchItem {
                index,
                outcome: if created.duplicate { ItemOutcome::Duplicate } else { ItemOutcome::Created },
                status: status.as_u16(),
                task_id: Some(created.task_id.to_string().into()),
                create_timestamp: Some(created.create_timestamp),
                problem: None,
            }),
            Err(answer) => Err(failure_of(answer, &Asked { task: None, key })),
        }
    }
}

fn refused(index: usize, problem: Problem) -> BatchItem {
    let unknown = matches!(problem.code, Code::OutcomeUnknown | Code::Internal);
    BatchItem {
        index,
        outcome: if unknown { ItemOutcome::Unknown } else { ItemOutcome::Rejected },
        status: problem.status,
        task_id: problem.facts.get("task_id").and_then(|id| id.as_str()).map(Text::from),
        create_timestamp: None,
        problem: Some(Box::new(problem)),
    }
}
