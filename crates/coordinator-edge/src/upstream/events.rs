//! `GET /api/v1/task/{id}/events`: every record with the task's key and what became of it. The log is
//! read at the offsets that the task's history names, never scanned.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::surface::Peers;
use event_log::{EventLog, LogError, RawRecord};
use rest_contract::{Code, EventView, EventsView, Problem};
use service_kit::Clock;
use snapshot_store::{SnapshotStore, StoreError};
use task_core::Reason;
use task_events::{Offset, PartitionId, to_json};

use super::parameters::{Part, query, task_of};
use super::view::as_of_of;
use crate::problems::{Answered, Failure, defect};
use crate::{Edge, reply};

/// Records read from the log at a time.
const READ_AT_ONCE: usize = 256;

/// Verdicts by offset; `None` = accepted.
type Verdicts = BTreeMap<Offset, Option<Reason>>;

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn events(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        query(request.uri(), &[])?;
        let seen = edge.seen(task).await?;
        let beside = edge.store.history_overflow(task).await.map_err(store_failure)?;
        let row = seen.row.row.history.entries();
        // A replayed task's row may repeat what is beside it.
        let history: Verdicts = beside.into_iter().chain(row).map(|entry| (entry.offset, entry.rejected)).collect();
        let (events, deleted) = edge.read_history(task.partition(), &history).await?;
        let as_of = as_of_of(&seen.row, seen.as_of);
        reply::json(StatusCode::OK, &EventsView { task_id: task, events, deleted, as_of })
    }

    async fn read_history(
        &self,
        partition: PartitionId,
        history: &Verdicts,
    ) -> Result<(Vec<EventView>, Vec<u64>), Failure> {
        let mut start = self.log.range(partition).await.map_err(|why| log_failure(&why))?.start;
        let mut events = Vec::with_capacity(history.len());
        let mut next = start;
        loop {
            let wanted: Vec<Offset> = history.range(next..).map(|(at, _)| *at).take(READ_AT_ONCE).collect();
            let Some(last) = wanted.last().copied() else { break };
            match self.log.read_at(partition, wanted).await {
                Ok(records) => events.extend(records.iter().map(|raw| event_of(raw, history))),
                // Retention came in between: what it took is listed with the rest.
                Err(LogError::OutOfRange { start: moved, .. }) if moved > start => {
                    start = moved;
                    next = next.max(moved);
                    continue;
                }
                Err(why) => return Err(log_failure(&why)),
            }
            next = Offset(last.0.saturating_add(1));
        }
        // Read in the order of the log.
        let read = |at: &u64| events.binary_search_by_key(at, |event: &EventView| event.offset).is_ok();
        let deleted = history.range(..start).map(|(at, _)| at.0).filter(|at| !read(at)).collect();
        Ok((events, deleted))
    }
}

fn event_of(raw: &RawRecord, history: &Verdicts) -> EventView {
    let rejected = history.get(&raw.offset).copied().flatten();
    let (verdict, reason, event) = match (raw.event(), rejected) {
        (Err(malformed), _) => ("quarantined", Some(malformed.as_str()), None),
        (Ok(event), Some(reason)) => ("rejected", Some(reason.as_str()), Some(to_json(&event))),
        (Ok(event), None) => ("accepted", None, Some(to_json(&event))),
    };
    EventView {
        offset: raw.offset.0,
        broker_time: raw.broker_ms,
        verdict: verdict.into(),
        reason: reason.map(Into::into),
        event,
    }
}

/// What the log could not do for a read.
fn log_failure(why: &LogError) -> Failure {
    match why {
        LogError::Unavailable(_) | LogError::NotMember(_) => {
            Problem::new(Code::LogUnavailable, "the log cannot be read now").into()
        }
        LogError::OutOfRange { .. } | LogError::Damaged { .. } | LogError::Refused(_) => {
            defect(format!("a task's records cannot be read: {why}"))
        }
    }
}

/// What the store could not do for a read.
pub(crate) fn store_failure(why: StoreError) -> Failure {
    match why {
        StoreError::Unavailable(_) => Problem::new(Code::StoreUnavailable, "the store does not answer").into(),
        StoreError::Damaged(what) => defect(format!("the store is damaged: {what}")),
    }
}
