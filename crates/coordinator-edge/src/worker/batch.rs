//! What an SDK sends in one go. Payloads first, in one write; then reports and heartbeats to their
//! owners, all at once, those of one attempt in their order.
//!
//! The whole answer waits for nobody longer than [`ANSWER_MS`]: what an owner has not answered by
//! then is told so, item by item, or one slow partition would cost the attempts of all others their
//! leases.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::join_all;
use parking_lot::Mutex;
use rest_contract::{Answered as Verdicts, MAX_BATCH_BYTES, MAX_BATCH_ITEMS, ReportsRequest, ReportsResponse};
use service_kit::{Clock, within};
use snapshot_store::SnapshotStore;
use task_events::{ExecutionId, TaskId};
use worker_protocol::{Heartbeat, HeartbeatAnswer, Report, ReportAnswer};

use super::{fields, payloads, wire};
use crate::problems::Answered;
use crate::{Edge, reply};

/// Longest wait for the owners, ms.
const ANSWER_MS: u64 = 2_000;

pub(super) async fn reports<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
    State(edge): State<Edge<L, S, C, P>>,
    request: Request,
) -> Answered {
    let batch: ReportsRequest = edge.json(request, MAX_BATCH_BYTES).await?;
    let items = batch.payloads.len() + batch.reports.len() + batch.heartbeats.len();
    fields::count("", items, 0, MAX_BATCH_ITEMS)?;
    let numbered = |list: &str, n: usize| format!("/{list}/{n}");
    // Everything is checked before anything is done.
    let stored = batch.payloads.into_iter().enumerate();
    let stored = stored.map(|(n, p)| payloads::checked(&numbered("payloads", n), p)).collect::<Result<Vec<_>, _>>()?;
    let reports = batch.reports.into_iter().enumerate();
    let reports = reports.map(|(n, r)| wire::report(&numbered("reports", n), r)).collect::<Result<Vec<_>, _>>()?;
    let beats = batch.heartbeats.into_iter().enumerate();
    let beats = beats.map(|(n, b)| wire::heartbeat(&numbered("heartbeats", n), b)).collect::<Result<Vec<_>, _>>()?;

    let tasks: Vec<TaskId> = stored.iter().map(|(task, ..)| *task).collect();
    // A heartbeat names no payload, so it does not wait for the store.
    let storing = async {
        let done = payloads::store(&edge, stored).await;
        if let Err(problem) = &done {
            tracing::warn!(%problem, payloads = tasks.len(), "payloads of a batch are not stored");
        }
        let unstored = if done.is_ok() { BTreeSet::new() } else { tasks.iter().copied().collect() };
        (done.is_ok(), tell(&edge, reports, &unstored).await)
    };
    let ((is_stored, reports), heartbeats) = futures::future::join(storing, beat(&edge, beats)).await;
    let payloads_stored = vec![is_stored; tasks.len()];
    reply::json(StatusCode::OK, &ReportsResponse { payloads_stored, reports, heartbeats })
}

async fn tell<L, S, C: Clock, P: Peers>(
    edge: &Edge<L, S, C, P>,
    reports: Vec<(TaskId, Report)>,
    unstored: &BTreeSet<TaskId>,
) -> Vec<Verdicts> {
    let answers = Mutex::new(vec![ReportAnswer::OutcomeUnknown; reports.len()]);
    let mut lines: BTreeMap<ExecutionId, Vec<(usize, Report)>> = BTreeMap::new();
    for (n, (task, report)) in reports.into_iter().enumerate() {
        if unstored.contains(&task) {
            answers.lock()[n] = ReportAnswer::Unavailable;
        } else if task.partition().get() >= edge.surface.partitions() {
            answers.lock()[n] = ReportAnswer::Fenced;
        } else {
            lines.entry(report.attempt.execution_id).or_default().push((n, report));
        }
    }
    let lines = lines.into_values().map(|line| async {
        for (n, report) in line {
            let answer = edge.surface.report(report).await;
            answers.lock()[n] = answer;
        }
    });
    in_time(edge, join_all(lines)).await;
    let answers = std::mem::take(&mut *answers.lock());
    answers.into_iter().map(wire::verdict).collect()
}

async fn beat<L, S, C: Clock, P: Peers>(edge: &Edge<L, S, C, P>, beats: Vec<(TaskId, Heartbeat)>) -> Vec<Verdicts> {
    let answers = Mutex::new(vec![HeartbeatAnswer::Unavailable; beats.len()]);
    let lines = beats.into_iter().enumerate().map(|(n, (task, beat))| {
        let answers = &answers;
        async move {
            let is_ours = task.partition().get() < edge.surface.partitions();
            let answer = if is_ours { edge.surface.heartbeat(beat).await } else { HeartbeatAnswer::Fenced };
            answers.lock()[n] = answer;
        }
    });
    in_time(edge, join_all(lines)).await;
    let answers = std::mem::take(&mut *answers.lock());
    answers.into_iter().map(wire::beat_verdict).collect()
}

async fn in_time<L, S, C: Clock, P>(edge: &Edge<L, S, C, P>, all: impl Future<Output = Vec<()>>) {
    if within(&edge.clock, ANSWER_MS, all).await.is_none() {
        tracing::debug!("owners did not answer a whole batch in time");
    }
}
