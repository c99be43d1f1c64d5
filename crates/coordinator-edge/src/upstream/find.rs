//! `GET /api/v1/trace/{trace_id}` and `/api/v1/business/{key}?creator=`.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use coordinator::owner::{Answer, FindBy};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{FoundView, MAX_FOUND};
use service_kit::Clock;
use snapshot_store::{SnapshotRow, SnapshotStore};
use task_events::{Offset, TaskId};

use super::events::store_failure;
use super::parameters::{Part, is_trace, query, text_of};
use super::validate::{DEFAULT_CLIENT, name_of};
use super::view::view_of;
use crate::problems::{Answered, Failure, bad_parameter};
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn by_trace(State(edge): State<Self>, trace: Part, request: Request) -> Answered {
        let trace = text_of("trace_id", trace)?;
        query(request.uri(), &[])?;
        if !is_trace(&trace) {
            return Err(bad_parameter("trace_id", &trace, "32 lower-case hexadecimal digits, not all 0").into());
        }
        edge.find(FindBy::Trace(trace.into())).await
    }

    pub(super) async fn by_business_key(State(edge): State<Self>, key: Part, request: Request) -> Answered {
        let key = text_of("key", key)?.into();
        let mut asked = query(request.uri(), &["creator"])?;
        let creator = asked.remove("creator").unwrap_or_else(|| DEFAULT_CLIENT.to_owned()).into();
        name_of("creator", &creator)?;
        edge.find(FindBy::BusinessKey { creator, key }).await
    }

    // Owners first, then the index: a row acknowledged in between is found twice, never missed.
    async fn find(&self, by: FindBy) -> Result<Response, Failure> {
        let limit = MAX_FOUND + 1;
        let answers = self.surface.find(by.clone(), limit).await;
        let listed = match by {
            FindBy::Trace(trace) => self.store.tasks_by_trace(trace, limit).await,
            FindBy::BusinessKey { creator, key } => self.store.tasks_by_business_key(creator, key, limit).await,
        };
        let mut rows: BTreeMap<TaskId, (SnapshotRow, Offset)> = BTreeMap::new();
        let mut unanswered = Vec::new();
        for (partition, answer) in answers {
            if let Answer::Found(tasks) = answer {
                rows.extend(tasks.into_iter().map(|seen| (seen.row.core.id, (seen.row, seen.as_of))));
            } else {
                unanswered.push(partition.0);
            }
        }
        let listed = listed.map_err(store_failure)?;
        let all: BTreeSet<TaskId> = rows.keys().copied().chain(listed).collect();
        let truncated = all.len() > MAX_FOUND;
        let newest: BTreeSet<TaskId> = all.into_iter().rev().take(MAX_FOUND).collect();
        let missing: Vec<TaskId> = newest.iter().copied().filter(|id| !rows.contains_key(id)).collect();
        let read = self.store.snapshots(missing).await.map_err(store_failure)?;
        for row in read.into_iter().flatten() {
            // What the row knows of the log ends with its last event.
            let as_of = Offset(row.row.applied_offset.0.saturating_add(1));
            rows.insert(row.core.id, (row, as_of));
        }
        let shown = rows.iter().filter(|(id, _)| newest.contains(id));
        let tasks = shown.map(|(_, (row, as_of))| view_of(row, *as_of)).collect();
        let status = if unanswered.is_empty() { StatusCode::OK } else { StatusCode::MULTI_STATUS };
        reply::json(status, &FoundView { tasks, truncated, unanswered })
    }
}
