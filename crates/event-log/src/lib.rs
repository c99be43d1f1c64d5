//! The event-log port: the one topic `task-execution-events` as the services see it.
//!
//! The port speaks of bytes, partitions and offsets and never of tasks. Adapters: embedded
//! (durable, one directory) and Kafka (rdkafka). Whoever appends learns nothing about acceptance
//! here: that is decided by whoever folds what was read back.

mod client_id;
#[cfg(feature = "conformance")]
pub mod conformance;
mod dump;
mod embedded;
#[cfg(feature = "conformance")]
pub mod fault_proxy;
#[cfg(feature = "kafka")]
mod kafka;
mod port;

pub use client_id::{ClientId, NoClientId};
pub use dump::write_dump;
pub use embedded::*;
#[cfg(feature = "kafka")]
pub use kafka::*;
pub use port::*;
