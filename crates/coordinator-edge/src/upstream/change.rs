//! `POST /api/v1/task/{id}/cancel` and `…/replay`.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{CancelAccepted, CancelRequest, MAX_BODY_BYTES, MAX_TEXT_BYTES, Problem, ReplayRequest, Replayed};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_core::decide::Replay;
use task_events::{ReplayFrom, RunNo, Text};

use super::parameters::{Part, query, task_of};
use super::validate::{DEFAULT_CLIENT, name_of, text_within};
use crate::problems::{Answered, bad_field};
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn cancel(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        query(request.uri(), &[])?;
        let asked: CancelRequest = edge.json_or_default(request, MAX_BODY_BYTES).await?;
        let (actor, reason) = who_and_why(asked.actor, asked.reason)?;
        edge.known_partition(task)?;
        let answer = edge.surface.about(task, Command::Cancel { task, actor, reason }).await;
        if matches!(answer, Answer::CancelAccepted) {
            return reply::json(StatusCode::ACCEPTED, &CancelAccepted { task_id: task });
        }
        Err(edge.refusal(answer, task).await)
    }

    pub(super) async fn replay(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        query(request.uri(), &[])?;
        let asked: ReplayRequest = edge.json(request, MAX_BODY_BYTES).await?;
        let (actor, reason) = who_and_why(asked.actor, asked.reason)?;
        if asked.run_no == 0 {
            return Err(bad_field("/run_no", 0, "the run that is replayed, from 1").into());
        }
        match (asked.from, &asked.from_step) {
            (ReplayFrom::Step, Some(step)) => name_of("/from_step", step)?,
            (ReplayFrom::Step, None) => {
                return Err(bad_field("/from_step", serde_json::Value::Null, "a step, with from = STEP").into());
            }
            (ReplayFrom::Failure | ReplayFrom::Start, None) => {}
            (ReplayFrom::Failure | ReplayFrom::Start, Some(step)) => {
                return Err(bad_field("/from_step", step.as_str(), "absent unless from = STEP").into());
            }
        }
        edge.known_partition(task)?;
        let ask =
            Replay { run_no: RunNo(asked.run_no), replay_from: asked.from, from_step: asked.from_step, actor, reason };
        let answer = edge.surface.about(task, Command::Replay { task, ask }).await;
        if let Answer::Replayed { run_no } = answer {
            return reply::json(StatusCode::ACCEPTED, &Replayed { task_id: task, run_no: run_no.0 });
        }
        Err(edge.refusal(answer, task).await)
    }
}

fn who_and_why(actor: Option<Text>, reason: Text) -> Result<(Text, Text), Problem> {
    let actor = actor.unwrap_or_else(|| DEFAULT_CLIENT.into());
    name_of("/actor", &actor)?;
    text_within("/reason", &reason, MAX_TEXT_BYTES)?;
    Ok((actor, reason))
}
