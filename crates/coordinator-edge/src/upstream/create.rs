//! `POST /api/v1/task/create`.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use coordinator::owner::Answer;
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{CreateRequest, Created, MAX_BODY_BYTES};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_core::decide::Refusal;
use task_events::Text;

use super::asked::Asking;
use super::parameters::{key_of, query};
use super::validate::{Around, late, validate};
use crate::problems::{Answered, Asked, Failure, bad_field, failure_of};
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn create(State(edge): State<Self>, request: Request) -> Answered {
        let asking = edge.asking(request.headers());
        let answered = edge.created(request, asking).await;
        edge.answered(asking, "/api/v1/task/create", &answered);
        answered
    }

    async fn created(&self, request: Request, asking: Asking) -> Answered {
        query(request.uri(), &[])?;
        let key = key_of(request.headers())?;
        let create: CreateRequest = self.json(request, MAX_BODY_BYTES).await?;
        if let Some(own) = &create.idempotency_key {
            let must = "absent: the key of a single create is the header Idempotency-Key";
            return Err(bad_field("/idempotency_key", own.as_str(), must).into());
        }
        // The only task of a request that names no trace begins the request's.
        let trace = asking.parent().map(|parent| Text::from(parent.trace_id.to_string()));
        let answer = self.create_one(create, key.clone(), (asking, trace), "").await?;
        created(answer, key)
    }

    /// Checks and asks.
    pub(super) async fn create_one(
        &self,
        create: CreateRequest,
        key: Option<Text>,
        (asking, trace): (Asking, Option<Text>),
        below: &str,
    ) -> Result<Answer, Failure> {
        let around = Around {
            now: self.clock.wall_ms(),
            partitions: self.surface.partitions(),
            key,
            caller: asking.caller,
            parent: asking.parent(),
            mint: &|| trace.clone().unwrap_or_else(|| self.mint_trace()),
            below,
        };
        let (create, placement) = validate(create, around)?;
        let answer = self.surface.create(create, placement).await;
        if let Answer::Refused(Refusal::DeadlinePassed { deadline, now }) = answer {
            return Err(late(&format!("{below}/deadline"), deadline, now).into());
        }
        Ok(answer)
    }
}

fn created(answer: Answer, key: Option<Text>) -> Result<Response, Failure> {
    let asked = Asked { task: None, key };
    match created_of(answer) {
        Ok((status, created)) => reply::json(status, &created),
        Err(answer) => Err(failure_of(answer, &asked)),
    }
}

/// What was created, or the answer that says why nothing was.
pub(super) fn created_of(answer: Answer) -> Result<(StatusCode, Created), Answer> {
    match answer {
        Answer::Created { task_id, created_at } => {
            Ok((StatusCode::CREATED, Created { task_id, create_timestamp: created_at, duplicate: false }))
        }
        Answer::Duplicate { task_id } => {
            Ok((StatusCode::OK, Created { task_id, create_timestamp: task_id.unix_ms(), duplicate: true }))
        }
        Answer::KeyConflict { .. }
        | Answer::BacklogFull { .. }
        | Answer::Poll(_)
        | Answer::Heartbeat(_)
        | Answer::Report(_)
        | Answer::CancelAccepted
        | Answer::Replayed { .. }
        | Answer::Reviewed
        | Answer::QueueChanged
        | Answer::Task(_)
        | Answer::Why(_)
        | Answer::Found(_)
        | Answer::Looked(_)
        | Answer::WorkerReleased
        | Answer::RulesActive
        | Answer::RulesRefused { .. }
        | Answer::PlacementConflict { .. }
        | Answer::TaskClosed { .. }
        | Answer::TaskOpen { .. }
        | Answer::NotFound
        | Answer::Gone
        | Answer::Refused(_)
        | Answer::Unavailable(_)
        | Answer::OutcomeUnknown { .. } => Err(answer),
    }
}
