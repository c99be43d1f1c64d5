//! The worker SDK: handlers run here, everywhere else they are only talked about.
//!
//! [`machine`] holds the rules of design.md §9 as a pure state machine: when a handler may be
//! entered, when it must stop, what is reported and for how long. It has no clock, no network and
//! no threads, so that a simulator can run it against a hostile network. [`Worker`] is the thin
//! shell around it: it sends, runs handlers and keeps the [`Outbox`].
//!
//! ```
//! use worker_sdk::{Context, HandlerError, Handlers};
//! use bytes::Bytes;
//!
//! async fn settle(ctx: Context) -> Result<Bytes, HandlerError> {
//!     let total = ctx.step("sum").idempotent(true).run(|| async { Ok(Bytes::from("42")) }).await?;
//!     ctx.step("pay").run(|| async {
//!         // Not idempotent: runs at most once unless people say otherwise.
//!         Ok(Bytes::new())
//!     }).await?;
//!     Ok(total)
//! }
//!
//! let handlers = Handlers::new().on("invoice.settle", settle);
//! ```
//!
//! [`Worker::connect`] runs them against a coordinator.

mod clock;
mod context;
mod handler;
pub mod http;
pub mod machine;
mod memory;
mod outbox;
mod payloads;
mod port;
mod runner;
pub mod testing;

pub use clock::{SystemClock, WorkerClock};
pub use context::{Context, GuardedFile, Hold, RecordedStep, Step};
pub use handler::{HandlerError, Handlers};
pub use http::HttpCoordinator;
pub use outbox::{FileOutbox, NoOutbox, Outbox};
pub use port::{CoordinatorPort, NoAnswer, PayloadKey, PayloadPort, PayloadUnavailable};
pub use runner::Worker;
pub use spans::{Span, SpanKind, SpanSink, Spans, Value};
