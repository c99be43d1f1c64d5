//! `GET /api/v1/task/{id}/events`: every record with the task's key and what became of it, page by page.
//! The log is read at the offsets that the task's history names, never scanned.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::surface::Peers;
use event_log::{EventLog, LogError, RawRecord};
use rest_contract::{Code, DEFAULT_EVENTS_PAGE, EventView, EventsView, Problem};
use service_kit::Clock;
use snapshot_store::{SnapshotStore, StoreError};
use task_core::Reason;
use task_events::{Offset, PartitionId, Sha256Hash, to_json};

use super::parameters::{Part, page_limit, query, task_of};
use super::view::as_of_of;
use crate::lists::Cursors;
use crate::problems::{Answered, Failure, defect};
use crate::{Edge, reply, verdict};

/// Records read from the log at a time.
const READ_AT_ONCE: usize = 256;

/// Verdicts by offset; `None` = accepted.
type Verdicts = BTreeMap<Offset, Option<Reason>>;

/// A page of a history.
struct Page {
    events: Vec<EventView>,
    deleted: Vec<u64>,
    /// Where the next one begins.
    next: Option<Offset>,
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn events(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        let given = query(request.uri(), &["limit", "cursor"])?;
        let limit = page_limit(given.get("limit"), DEFAULT_EVENTS_PAGE)?;
        let named = format!("events of {task}");
        let cursors = Cursors::new(edge.cursor_secret().await?, Sha256Hash::of(named.as_bytes()));
        let from = given.get("cursor").map_or(Ok(0), |text| cursors.read(text))?;
        let from = Offset(u64::try_from(from).unwrap_or_default());
        let seen = edge.seen(task).await?;
        let beside = edge.store.history_overflow(task).await.map_err(store_failure)?;
        let row = seen.row.row.history.entries();
        // A replayed task's row may repeat what is beside it.
        let all = beside.into_iter().chain(row).filter(|entry| entry.offset >= from);
        let history: Verdicts = all.map(|entry| (entry.offset, entry.rejected)).collect();
        let Page { events, deleted, next } = edge.read_history(task.partition(), &history, limit).await?;
        let next_cursor = next.map(|next| cursors.at(i64::try_from(next.0).unwrap_or(i64::MAX)));
        let as_of = as_of_of(&seen.row, seen.as_of);
        reply::json(StatusCode::OK, &EventsView { task_id: task, events, deleted, as_of, next_cursor })
    }

    // The first records that the log still has, and what it has deleted before them.
    async fn read_history(&self, partition: PartitionId, history: &Verdicts, limit: usize) -> Result<Page, Failure> {
        let mut start = self.log.range(partition).await.map_err(|why| log_failure(&why))?.start;
        let mut events: Vec<EventView> = Vec::new();
        let mut next = start;
        while events.len() < limit {
            let some = READ_AT_ONCE.min(limit - events.len());
            let wanted: Vec<Offset> = history.range(next..).map(|(at, _)| *at).take(some).collect();
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
        Ok(Page { events, deleted, next: history.range(next..).next().map(|(at, _)| *at) })
    }
}

fn event_of(raw: &RawRecord, history: &Verdicts) -> EventView {
    let decoded = raw.event();
    let rejected = history.get(&raw.offset).copied().flatten();
    let (verdict, reason) = verdict::words(decoded.as_ref().map_err(|why| *why), rejected);
    let event = decoded.ok().map(|event| to_json(&event));
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
