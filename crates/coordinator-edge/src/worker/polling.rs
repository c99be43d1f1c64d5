//! Work for a worker. The answer carries the payloads, so that a handler needs no request of its own.
//!
//! A connection that closes takes its poll along: hyper drops the handler. What an owner had handed
//! out by then is ASSIGNED and was never delivered; the worker's next poll does not list it, and gets
//! it again.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::{Either, select};
use rest_contract::{
    Code, MAX_BATCH_BYTES, MAX_BODY_BYTES, MAX_HELD, MAX_SLOTS, MAX_WAIT_MS, PollRequest, PollResponse, Problem,
};
use serde_json::value::RawValue;
use service_kit::{Clock, Counter, Metrics, Shutdown, within};
use snapshot_store::{PayloadItem, SnapshotStore};
use task_events::Text;
use worker_protocol::{Assignment, PollAnswer};

use super::{fields, wire};
use crate::metrics::{WORKER_POLLS, WORKER_POLLS_ENDED};
use crate::problems::Answered;
use crate::{Edge, json, reply};

/// Longest wait for the payloads, ms: leases run already, and a handler can read its payload itself.
const PAYLOADS_MS: u64 = 1_000;
/// A list of held attempts has 40 bytes each.
pub(super) const MAX_POLL_BYTES: usize = MAX_BODY_BYTES + MAX_HELD * 40;

pub(super) async fn poll<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
    State(edge): State<Edge<L, S, C, P>>,
    path: fields::PathText,
    shutdown: Option<Extension<Shutdown>>,
    request: Request,
) -> Answered {
    let worker = Text::from(fields::path_text(path)?);
    if let Err(problem) = fields::name("id", &worker) {
        return Err(Problem { code: Code::InvalidParameter, status: Code::InvalidParameter.status(), ..problem }.into());
    }
    let request: PollRequest = edge.json(request, MAX_POLL_BYTES).await?;
    fields::name("/handler_version", &request.handler_version)?;
    fields::queues("/queues", &request.queues)?;
    fields::within("/free_slots", request.free_slots, 0, MAX_SLOTS)?;
    fields::count("/held", request.held.len(), 0, MAX_HELD)?;
    fields::within("/wait_ms", request.wait_ms, 0, MAX_WAIT_MS)?;
    let _under_way = UnderWay::begin(&edge.metrics);
    let asking = Box::pin(edge.surface.poll(wire::poll(worker, request)));
    let shutdown = shutdown.map(|Extension(shutdown)| shutdown).unwrap_or_default();
    let answer = match select(asking, shutdown.requested()).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => return Err(Problem::new(Code::Draining, "this instance is shutting down").into()),
    };
    match answer {
        PollAnswer::Work { assignments, stop } => {
            let payloads = payloads(&edge, &assignments).await;
            let bodies = assignments.into_iter().zip(payloads).map(|(a, payload)| wire::assignment(a, payload));
            reply::json(StatusCode::OK, &PollResponse { assignments: bodies.collect(), stop, drain: false })
        }
        PollAnswer::Drain => {
            let (assignments, stop) = (Vec::new(), Vec::new());
            reply::json(StatusCode::OK, &PollResponse { assignments, stop, drain: true })
        }
        PollAnswer::Superseded => {
            Err(Problem::new(Code::Superseded, "a newer process of this worker has polled: drain").into())
        }
        PollAnswer::Unavailable => Err(Problem::new(Code::OwnerUnavailable, "no owner can answer now").into()),
    }
}

/// Counts a poll while it is asked for work, whoever ends it.
struct UnderWay(Counter);

impl UnderWay {
    fn begin(metrics: &Metrics) -> Self {
        metrics.counter(&WORKER_POLLS).add(1);
        Self(metrics.counter(&WORKER_POLLS_ENDED))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.add(1);
    }
}

// In one read. What is missing, late, beyond the size of an answer, or no JSON text is left out.
async fn payloads<L, S: SnapshotStore, C: Clock, P>(
    edge: &Edge<L, S, C, P>,
    assignments: &[Assignment],
) -> Vec<Option<Box<RawValue>>> {
    let item = |a: &Assignment| (a.task_id, PayloadItem::Parameters { payload_hash: a.payload_hash });
    let wanted: Vec<_> = assignments.iter().filter(|a| a.payload_ref.is_none()).map(item).collect();
    if wanted.is_empty() {
        return vec![None; assignments.len()];
    }
    let found = match within(&edge.clock, PAYLOADS_MS, edge.store.payloads(wanted)).await {
        Some(Ok(found)) => found,
        Some(Err(why)) => {
            tracing::warn!(%why, "payloads are not sent along");
            Vec::new()
        }
        None => Vec::new(),
    };
    let (mut found, mut room) = (found.into_iter(), MAX_BATCH_BYTES);
    let mut next = |a: &Assignment| {
        let bytes = if a.payload_ref.is_none() { found.next().flatten()? } else { return None };
        room = room.checked_sub(bytes.len())?;
        json::exact(&bytes)
    };
    assignments.iter().map(&mut next).collect()
}
