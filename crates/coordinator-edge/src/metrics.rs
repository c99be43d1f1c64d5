//! What the edge counts.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use service_kit::Clock;

use crate::Edge;
use crate::upstream::parameters::parent_of;

service_kit::metrics! {
    BOARD_READ = Counter "board_read_total" [] "times the board said who owns what";
    GROUP_DESCRIBED = Counter "group_described_total" [] "times the group was asked instead";
    WORKER_POLLS = Counter "worker_polls_total" [] "polls of workers that have begun";
    WORKER_POLLS_ENDED = Counter "worker_polls_ended_total" [] "polls of workers that have ended, whoever ended them";
    HTTP_REQUESTS = Counter "http_requests_total" ["endpoint", "method", "status"] "requests that were answered, by endpoint and class of the status";
    HTTP_REQUEST_SECONDS = Histogram "http_request_seconds" ["endpoint", "method"] "from a request's headers to the headers of its answer; polls and ?wait= wait on purpose";
}

/// Counts a request by its endpoint; one that failed here is logged.
pub(crate) async fn measure<L, S, C: Clock, P>(
    State(edge): State<Edge<L, S, C, P>>,
    request: Request,
    next: Next,
) -> Response {
    let began = edge.clock.boot_us();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let endpoint = path.as_ref().map_or("none", MatchedPath::as_str);
    // Of methods that no endpoint takes there are as many as anybody likes.
    let method = match request.method().as_str() {
        "GET" => "GET",
        "POST" => "POST",
        _ => "other",
    };
    let caller = parent_of(request.headers());
    let response = next.run(request).await;
    let took = edge.clock.boot_us().saturating_sub(began);
    let status = response.status();
    let class = match status.as_u16() / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    edge.metrics.counter_of(&HTTP_REQUESTS, &[endpoint, method, class]).add(1);
    edge.metrics.histogram_of(&HTTP_REQUEST_SECONDS, &[endpoint, method]).observe_us(took);
    // That an instance is not ready is an answer.
    if status.is_server_error() && endpoint != "/readyz" {
        let trace_id = caller.map(|caller| caller.trace_id.to_string());
        let took = Duration::from_micros(took);
        tracing::warn!(endpoint, method, status = status.as_u16(), trace_id, ?took, "a request could not be served");
    }
    response
}
