//! `GET /api/v1/events/stream`: the log as server-sent events, read from the topic itself.
//!
//! Which records count the owner says, who folded them already. Of records that it no longer remembers a
//! stream folds the partition anew from a checkpoint, one partition at a time.
//!
//! A stream holds a bounded number of bytes: a reader that takes nothing for a while is cut off and goes
//! on later with its last cursor, since the log keeps what it missed. They are 1 MiB of messages that wait,
//! one that does not fit in yet, one batch of records of the log (about 1 MiB) of the partition whose turn
//! it is, and 64 KiB of verdicts for each partition: about 4 MiB with 16 partitions, and so 64 MiB for the
//! 16 streams of an instance, besides the buffers of the log's readers and of connections.

mod feed;
mod filter;
mod old;
mod operations;
mod position;
mod query;
mod reader;
mod show;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::stream::{StreamExt as _, once, unfold};
use parking_lot::Mutex;
use rest_contract::{Code, END_MESSAGE, Problem, REACHED_MESSAGE, RECORD_MESSAGE};
use service_kit::{Clock, Shutdown};
use snapshot_store::SnapshotStore;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::Edge;
use crate::api::Routes;
use crate::problems::{Answered, Failure, defect};

/// Streams of an instance at a time.
const STREAMS: usize = 16;

/// Partitions that are folded anew at a time, over all streams: each holds a partition's open tasks.
const FOLDS: usize = 2;

/// Messages that wait for a reader, and bytes of their JSON.
const WAITING: usize = 64;
const WAITING_BYTES: u32 = 1024 * 1024;

/// Pause between comments that keep a connection alive.
const ALIVE: Duration = Duration::from_secs(10);

/// What streams of an instance share.
#[derive(Clone)]
pub(crate) struct Streams {
    open: Arc<Semaphore>,
    folds: Arc<Semaphore>,
}

impl Default for Streams {
    fn default() -> Self {
        Self { open: Arc::new(Semaphore::new(STREAMS)), folds: Arc::new(Semaphore::new(FOLDS)) }
    }
}

/// A record on its way to the reader: its cursor and its JSON.
struct Message {
    cursor: String,
    json: String,
    _room: OwnedSemaphorePermit,
}

/// Why a stream ended.
enum Ended {
    /// Nothing is left of what was asked for; the cursor behind it.
    Reached(String),
    Failed(Problem),
}

type End = Arc<Mutex<Option<Ended>>>;

/// Group of the document.
const TAG: &str = "events";

pub(crate) fn routes<L, S, C, P>() -> Routes<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Routes::new().get(TAG, "/api/v1/events/stream", Edge::<L, S, C, P>::events_stream, operations::events())
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    async fn events_stream(State(edge): State<Self>, request: Request) -> Answered {
        let asked = query::asked(&request, edge.surface.partitions())?;
        let place = edge.streams().open.clone().try_acquire_owned();
        let place = place.map_err(|_| {
            let text = format!("{STREAMS} streams of events are open, the limit is {STREAMS}");
            Failure(Problem::new(Code::Overloaded, text).limit(STREAMS))
        })?;
        let begin = edge.begin(&asked).await?;
        let shutdown = request.extensions().get::<Shutdown>().cloned().unwrap_or_default();
        let (send, receive) = mpsc::channel(WAITING);
        let (filter, end) = (asked.filter, End::default());
        let room = Arc::new(Semaphore::new(WAITING_BYTES as usize));
        let feed =
            feed::Feed { edge, filter, position: begin.position, ends: begin.ends, send, room, end: end.clone() };
        tokio::spawn(async move {
            feed.run(shutdown).await;
            drop(place);
        });
        Ok(answer(receive, end))
    }
}

fn answer(receive: mpsc::Receiver<Message>, end: End) -> Response {
    let records = unfold(receive, |mut receive| async move {
        let Message { cursor, json, _room } = receive.recv().await?;
        Some((Event::default().id(cursor).event(RECORD_MESSAGE).data(json), receive))
    });
    // Written before the channel was closed, so it is there by now.
    let last = once(async move {
        let ended = end.lock().take();
        match ended.unwrap_or_else(|| Ended::Failed(defect("a stream ended without a reason").into_problem())) {
            Ended::Reached(cursor) => Event::default().id(cursor).event(REACHED_MESSAGE).data("{}"),
            Ended::Failed(why) => {
                Event::default().event(END_MESSAGE).data(serde_json::to_string(&why).unwrap_or_default())
            }
        }
    });
    let messages = records.chain(last).map(Ok::<_, Infallible>);
    Sse::new(messages).keep_alive(KeepAlive::new().interval(ALIVE).text("alive")).into_response()
}
