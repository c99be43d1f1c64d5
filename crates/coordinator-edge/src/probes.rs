//! `/healthz` (the process answers), `/readyz` (its partitions get on), `/metrics`, `/openapi.json`.

mod exposition;
mod operations;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use coordinator::owner::{Answer, Command, Look, Looked, OwnerFacts};
use coordinator::surface::{PartitionStatus, Peers};
use event_log::EventLog;
use futures::future::{join, join_all};
use service_http::probes::{Health, LOG_MS, Ready, ends, exposed};
use service_kit::{Clock, Standing, within};
use snapshot_store::SnapshotStore;
use task_events::PartitionId;

use crate::api::Routes;
use crate::problems::Answered;
use crate::{Edge, reply};

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

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    async fn healthz(State(edge): State<Self>) -> Answered {
        reply::json(StatusCode::OK, &Health::of(&edge.instance, &edge.metrics))
    }

    async fn readyz(State(edge): State<Self>) -> Answered {
        let status = edge.surface.status();
        let ends = ends(&edge.log, &edge.clock, status.assigned.keys().copied().collect()).await;
        let standings = status.assigned.iter().map(|(partition, owner)| (*partition, standing(owner))).collect();
        let now = edge.clock.boot_ms();
        let leaving = edge.leaving.is_requested();
        let ready: Ready<'_> = edge.progress().judge(&edge.instance, now, &standings, &ends, leaving);
        reply::json(ready.status(), &ready)
    }

    // What owners say of themselves, of those that answer in time.
    async fn facts(&self, partitions: Vec<PartitionId>) -> BTreeMap<PartitionId, OwnerFacts> {
        let asks = partitions.into_iter().map(|partition| async move {
            let asked = self.surface.ask_here(partition, &Command::Look(Look::Facts));
            let Answer::Looked(looked) = within(&self.clock, LOG_MS, asked).await? else { return None };
            let Looked::Facts(facts) = *looked else { return None };
            Some((partition, *facts))
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
        let status = edge.surface.status();
        let partitions: Vec<_> = status.assigned.keys().copied().collect();
        let beside: Vec<_> = edge.beside.iter().map(|(service, standings)| (*service, standings.all())).collect();
        let of_all: BTreeSet<_> =
            partitions.iter().chain(beside.iter().flat_map(|(_, standings)| standings.keys())).copied().collect();
        let of_all = of_all.into_iter().collect();
        let (ends, facts) = join(ends(&edge.log, &edge.clock, of_all), edge.facts(partitions)).await;
        exposed(edge.metrics.scrape(|scrape| {
            exposition::fill(scrape, &status, &ends, &facts);
            for (service, standings) in &beside {
                exposition::standings(scrape, (service, status.partitions), standings, &ends);
            }
        }))
    }
}

const fn standing(owner: &PartitionStatus) -> Standing {
    Standing { owning: owner.owning, applied: owner.applied }
}
