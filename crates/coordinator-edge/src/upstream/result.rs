//! `GET /api/v1/task/{id}/result`: the bytes the worker stored, proven by the hash in the log.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{Code, Problem, ResultView};
use service_kit::Clock;
use snapshot_store::{PayloadItem, SnapshotStore};
use task_events::{Sha256Hash, TaskState};

use super::events::store_failure;
use super::parameters::{Part, query, task_of};
use super::read::Known;
use crate::problems::Answered;
use crate::{Edge, json, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn result(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        query(request.uri(), &[])?;
        // A row without a result says nothing of the result: it may be behind.
        let Known { seen, stale } = edge.known(task, |row| row.core.state == TaskState::Success).await?;
        let (core, row) = (&seen.row.core, &seen.row.row);
        let hash = row.result_data_hash.filter(|_| core.state == TaskState::Success);
        let Some(result_data_hash) = hash else {
            let text = format!("the task is {} in run {} and has no result", core.state.as_str(), core.run_no);
            return Err(Problem::new(Code::NoResult, text)
                .fact("task_id", task.to_string())
                .fact("state", core.state.as_str())
                .fact("run_no", core.run_no.0)
                .into());
        };
        let bytes = edge.store.payload(task, PayloadItem::Result { result_data_hash }).await.map_err(store_failure)?;
        let missing = |text: &str| {
            Problem::new(Code::PayloadMissing, text)
                .fact("task_id", task.to_string())
                .fact("result_data_hash", result_data_hash.to_string())
        };
        let Some(bytes) = bytes else { return Err(missing("the store does not hold the result").into()) };
        if Sha256Hash::of(&bytes) != result_data_hash {
            edge.metrics
                .alarm("payload_mismatch", format!("the stored result of task {task} is not what the log names"));
            return Err(missing("what the store holds is not the result that the log names").into());
        }
        let result = json::exact(&bytes);
        let result_base64 = result.is_none().then(|| BASE64_STANDARD.encode(&bytes));
        let view = ResultView { task_id: task, run_no: core.run_no.0, result_data_hash, result, result_base64, stale };
        reply::json(StatusCode::OK, &view)
    }
}
