//! `POST /api/v1/review/{id}`: somebody's decision about a closed task, put on record.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{MAX_BODY_BYTES, MAX_TEXT_BYTES, ReviewRequest, Reviewed};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::RunNo;

use crate::problems::{Answered, bad_field};
use crate::upstream::parameters::{Part, query, task_of};
use crate::upstream::validate::{DEFAULT_CLIENT, name_of, text_within};
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn decide(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        query(request.uri(), &[])?;
        let asked: ReviewRequest = edge.json(request, MAX_BODY_BYTES).await?;
        let actor = asked.actor.unwrap_or_else(|| DEFAULT_CLIENT.into());
        name_of("/actor", &actor)?;
        text_within("/note", &asked.note, MAX_TEXT_BYTES)?;
        if asked.run_no == 0 {
            return Err(bad_field("/run_no", 0, "the run that was looked at, from 1").into());
        }
        edge.known_partition(task)?;
        let ReviewRequest { outcome, instead_of, note, .. } = asked;
        let run_no = RunNo(asked.run_no);
        let answer = edge.surface.about(task, Command::Review { task, run_no, outcome, instead_of, actor, note }).await;
        if answer == Answer::Reviewed {
            return reply::json(StatusCode::OK, &Reviewed { task_id: task });
        }
        Err(edge.refusal(answer, task).await)
    }
}
