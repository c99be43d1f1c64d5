//! What other instances of the coordinator ask (`/internal/v1`): commands as bytes, one hop only. It
//! is answered by this instance's owners or by nobody; nothing is passed on again.
//!
//! Whoever reaches it speaks as an edge that has checked what it passes on; until instances are
//! authenticated it is served on loopback, or with `insecure`, like everything else.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use coordinator::forwarding::{ForwardingError, decode_ask, decode_command, encode_answer, encode_seen};
use coordinator::owner::{Answer, Command};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{Code, Problem};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::PartitionId;

use crate::Edge;
use crate::problems::{Answered, Failure, bad_parameter, defect};
use crate::upstream::parameters::query;

/// Path of the command that a partition's owner is asked.
pub(crate) const ASK: &str = "/internal/v1/ask";
/// Path of polls, which go to every owner of the instance.
pub(crate) const POLL: &str = "/internal/v1/poll";
/// Path of what is asked about workers.
pub(crate) const WORKERS: &str = "/internal/v1/workers";
/// Content type of both sides.
pub(crate) const MSGPACK: &str = "application/msgpack";

/// Longest command, bytes: a create with its payload, a report with its steps.
const MAX_COMMAND_BYTES: usize = 4 * 1024 * 1024;

pub(crate) fn router<L, S, C, P>() -> Router<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Router::new()
        .route(ASK, post(Edge::<L, S, C, P>::ask))
        .route(POLL, post(Edge::<L, S, C, P>::poll))
        .route(WORKERS, post(Edge::<L, S, C, P>::told_workers))
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    async fn ask(State(edge): State<Self>, request: Request) -> Answered {
        let asked = query(request.uri(), &["partition"])?;
        let text = asked.get("partition").map_or("", String::as_str);
        let partition = text.parse().ok().filter(|partition| *partition < edge.surface.partitions());
        let Some(partition) = partition else {
            let must = format!("a partition below {}", edge.surface.partitions());
            return Err(bad_parameter("partition", text, &must).into());
        };
        let command = edge.command(request).await?;
        told(&edge.surface.ask_here(PartitionId(partition), &command).await)
    }

    async fn poll(State(edge): State<Self>, request: Request) -> Answered {
        query(request.uri(), &[])?;
        let Command::Poll(poll) = edge.command(request).await? else {
            return Err(Problem::new(Code::InvalidParameter, "the command is no poll").into());
        };
        told(&Answer::Poll(edge.surface.poll_here(poll).await))
    }

    async fn told_workers(State(edge): State<Self>, request: Request) -> Answered {
        query(request.uri(), &[])?;
        let ask = decode_ask(&edge.packed(request).await?).map_err(|why| bad_command(&why))?;
        packed(encode_seen(&edge.surface.workers_here(&ask)))
    }

    async fn command(&self, request: Request) -> Result<Command, Failure> {
        // One that this release does not know was certainly not carried out.
        decode_command(&self.packed(request).await?).map_err(|why| bad_command(&why))
    }

    async fn packed(&self, request: Request) -> Result<Bytes, Failure> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if kind != Some(MSGPACK) {
            let text = format!("the content type must be {MSGPACK}");
            return Err(Problem::new(Code::UnsupportedMediaType, text).field("Content-Type").limit(MSGPACK).into());
        }
        self.bytes(request, MAX_COMMAND_BYTES).await
    }
}

fn bad_command(why: &ForwardingError) -> Failure {
    Problem::new(Code::InvalidParameter, why.to_string()).into()
}

fn told(answer: &Answer) -> Answered {
    packed(encode_answer(answer))
}

fn packed(bytes: Result<Vec<u8>, ForwardingError>) -> Answered {
    let bytes = bytes.map_err(|why| defect(why.to_string()))?;
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MSGPACK));
    Ok(response)
}
