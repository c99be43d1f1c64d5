//! `/healthz` (the process answers), `/readyz` (its partitions get on), `/metrics`: what they say, for
//! every program; and [`router`], the endpoints of programs that have no others.

mod exposition;
mod progress;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use event_log::EventLog;
use schemars::JsonSchema;
use serde::Serialize;
use service_kit::{Clock, Metrics, Shutdown, Standings};

pub use exposition::{STANDINGS, exposed, standings};
pub use progress::{LOG_MS, Progress, Seen, ends};

/// That the process is alive.
#[derive(Serialize, JsonSchema)]
pub struct Health<'a> {
    /// Instance that answered.
    pub instance: &'a str,
    /// Its version.
    pub version: &'static str,
    /// `alive`.
    pub status: &'static str,
    /// Alarms that stand, with their last words: what is wrong although the process is alive.
    pub alarms: BTreeMap<&'static str, String>,
}

impl<'a> Health<'a> {
    /// What these counters and alarms say.
    pub fn of(instance: &'a str, metrics: &Metrics) -> Self {
        let alarms = metrics.alarms().into_iter().filter(|(_, alarm)| alarm.active);
        let alarms = alarms.map(|(name, alarm)| (name, alarm.last)).collect();
        Self { instance, version: env!("CARGO_PKG_VERSION"), status: "alive", alarms }
    }
}

/// Whether the instance can do its work, and why not.
#[derive(Serialize, JsonSchema)]
pub struct Ready<'a> {
    /// Instance that answered.
    pub instance: &'a str,
    /// It can do its work.
    pub ready: bool,
    /// Partitions assigned to it.
    pub partitions: BTreeMap<u16, Progress>,
    /// Why it cannot; empty if it can.
    pub reasons: Vec<String>,
}

impl Ready<'_> {
    /// 200 or 503.
    pub const fn status(&self) -> StatusCode {
        if self.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    }
}

/// What the probes of a program without other endpoints look at.
pub struct Probed<L, C> {
    /// Its service, as its group is called.
    pub service: &'static str,
    /// Its name.
    pub instance: String,
    /// Asked for the ends of partitions.
    pub log: L,
    /// Clock.
    pub clock: C,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// How far its folds are.
    pub standings: Standings,
    /// It hands over and ends: not ready any more.
    pub leaving: Shutdown,
}

struct Inner<L, C> {
    probed: Probed<L, C>,
    seen: Seen,
}

/// The three endpoints.
pub fn router<L: EventLog, C: Clock>(probed: Probed<L, C>) -> Router {
    Router::new()
        .route("/healthz", get(healthz::<L, C>))
        .route("/readyz", get(readyz::<L, C>))
        .route("/metrics", get(metrics::<L, C>))
        .with_state(Arc::new(Inner { probed, seen: Seen::default() }))
}

async fn healthz<L: EventLog, C: Clock>(State(of): State<Arc<Inner<L, C>>>) -> Response {
    let health = Health::of(&of.probed.instance, &of.probed.metrics);
    answer(StatusCode::OK, &health)
}

async fn readyz<L: EventLog, C: Clock>(State(of): State<Arc<Inner<L, C>>>) -> Response {
    let Probed { instance, log, clock, standings, leaving, .. } = &of.probed;
    let standings = standings.all();
    let ends = ends(log, clock, standings.keys().copied().collect()).await;
    let ready = of.seen.judge(instance, clock.boot_ms(), &standings, &ends, leaving.is_requested());
    answer(ready.status(), &ready)
}

async fn metrics<L: EventLog, C: Clock>(State(of): State<Arc<Inner<L, C>>>) -> Response {
    let Probed { service, log, clock, metrics, standings, .. } = &of.probed;
    let standings = standings.all();
    let ends = ends(log, clock, standings.keys().copied().collect()).await;
    let told = metrics.scrape(|scrape| {
        scrape.clear(&STANDINGS);
        exposition::standings(scrape, (service, log.partition_count()), &standings, &ends);
    });
    exposed(told)
}

fn answer<T: Serialize>(status: StatusCode, value: &T) -> Response {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
