//! Where a process sends what it tells of itself: spans by OTLP ([`Exporting`]) and log lines as text or
//! JSON ([`log`]). Both belong to `main`: services hand spans to [`spans::Spans`] and events to `tracing`,
//! and know nothing of this crate.

mod export;
pub mod log;
pub mod metrics;
mod span_data;
#[cfg(feature = "testing")]
pub mod testing;

pub use export::{Exporting, MAX_WAITING, OtlpError, Who, check};
pub use log::LogFormat;
