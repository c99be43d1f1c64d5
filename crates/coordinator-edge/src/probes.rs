//! `/healthz` (the process answers), `/readyz` (its partitions get on), `/metrics`, `/openapi.json`.

mod exposition;
mod operations;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;
use service_kit::{Clock, within};
use snapshot_store::SnapshotStore;
use task_events::{Offset, PartitionId};

use crate::api::Routes;
use crate::problems::Answered;
use crate::{Edge, reply};

/// A partition that lags behind its log and does not move for this long stands still, ms; also how
/// long one that was just assigned may take to be owned (loading a checkpoint).
const STANDS_STILL_MS: u64 = 10_000;

/// Longest the log is waited for, ms.
const LOG_MS: u64 = 1_000;

/// How far partitions were when they were last seen to move: (applied, boot ms).
pub(crate) type Seen = BTreeMap<PartitionId, (Offset, u64)>;

/// Group of the document.
const TAG: &str = "server";

pub(crate) fn routes<L, S, C, P>() -> Routes<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Routes::new()
        .get(TAG, "/healthz", Edge::<L, S, C, P>::healthz, operations::healthz())
        .get(TAG, "/readyz", Edge::<L, S, C, P>::readyz, operations::readyz())
        .get(TAG, "/metrics", Edge::<L, S, C, P>::metrics, operations::metrics())
        .get(TAG, "/openapi.json", Edge::<L, S, C, P>::document, operations::document())
}

/// That the process is alive.
#[derive(Serialize, JsonSchema)]
struct Health<'a> {
    /// Instance that answered.
    instance: &'a str,
    /// `alive`.
    status: &'static str,
    /// Alarms that stand, with their last words: what is wrong although the process is alive.
    alarms: BTreeMap<&'static str, String>,
}

/// Whether the instance can take requests, and why not.
#[derive(Serialize, JsonSchema)]
struct Ready<'a> {
    /// Instance that answered.
    instance: &'a str,
    /// It can take requests.
    ready: bool,
    /// Partitions assigned to it.
    partitions: BTreeMap<u16, Progress>,
    /// Why it cannot; empty if it can.
    reasons: Vec<String>,
}

/// How far a partition is.
#[derive(Serialize, JsonSchema)]
struct Progress {
    /// Its claim was read back.
    owning: bool,
    /// Offset of the next record it folds.
    applied: u64,
    /// Records of the log it has not folded yet; absent when the log does not answer.
    lag: Option<u64>,
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    async fn healthz(State(edge): State<Self>) -> Answered {
        let alarms = edge.metrics.alarms().into_iter().filter(|(_, alarm)| alarm.active);
        let alarms = alarms.map(|(name, alarm)| (name, alarm.last)).collect();
        reply::json(StatusCode::OK, &Health { instance: &edge.instance, status: "alive", alarms })
    }

    async fn readyz(State(edge): State<Self>) -> Answered {
        let status = edge.surface.status();
        let ends = edge.ends(status.assigned.keys().copied().collect()).await;
        let now = edge.clock.boot_ms();
        let mut reasons = Vec::new();
        if status.assigned.is_empty() {
            reasons.push("no partition is assigned to this instance".to_owned());
        }
        let mut partitions = BTreeMap::new();
        let mut seen = edge.progress();
        seen.retain(|partition, _| status.assigned.contains_key(partition));
        for (partition, owner) in &status.assigned {
            let (moved_to, since) = seen.entry(*partition).or_insert((owner.applied, now));
            let end = ends.get(partition).copied();
            let lag = end.map(|end| end.0.saturating_sub(owner.applied.0));
            if *moved_to != owner.applied || owner.owning && lag == Some(0) {
                (*moved_to, *since) = (owner.applied, now);
            }
            let still = now.saturating_sub(*since);
            if still >= STANDS_STILL_MS {
                let what = if owner.owning { "stands still" } else { "is not owned yet" };
                reasons.push(format!("partition {partition} {what}: at offset {} for {still} ms", owner.applied));
            }
            partitions.insert(partition.0, Progress { owning: owner.owning, applied: owner.applied.0, lag });
        }
        drop(seen);
        if ends.len() < status.assigned.len() {
            reasons.push(format!("the log did not answer within {LOG_MS} ms"));
        }
        if !status.assigned.is_empty() && !status.assigned.values().any(|owner| owner.owning) {
            reasons.push("no partition is owned yet".to_owned());
        }
        let ready = reasons.is_empty();
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        reply::json(status, &Ready { instance: &edge.instance, ready, partitions, reasons })
    }

    // End offsets, of those partitions whose log answers in time.
    async fn ends(&self, partitions: Vec<PartitionId>) -> BTreeMap<PartitionId, Offset> {
        let asks = partitions.into_iter().map(|partition| async move {
            let range = within(&self.clock, LOG_MS, self.log.range(partition)).await?.ok()?;
            Some((partition, range.end))
        });
        join_all(asks).await.into_iter().flatten().collect()
    }

    async fn document() -> Response {
        // The same for every edge of this program.
        static TEXT: OnceLock<Bytes> = OnceLock::new();
        let text = TEXT.get_or_init(|| crate::openapi::<L, S, C, P>().into());
        let mut response = Response::new(Body::from(text.clone()));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    async fn metrics(State(edge): State<Self>) -> Response {
        let text = exposition::text(&edge.metrics, &edge.surface.status());
        let mut response = Response::new(Body::from(text));
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
