//! The snapshot-store port (design.md §7): what people see and what a successor starts from.
//!
//! Nothing in here is authority. Every row can be rebuilt from the log, payloads apart; every write
//! carries the row clock of the record that caused it, so a late writer of an old state loses by
//! timestamp and never takes a row back in time (invariant 17).
//!
//! Adapters: [`MemoryStore`], volatile; with the feature `embedded` `EmbeddedStore`, durable in a
//! directory; with the feature `cassandra` `CassandraStore`, in a keyspace of Cassandra or ScyllaDB. What
//! all promise is the suite in `conformance` (feature `conformance`).

#[cfg(feature = "cassandra")]
mod cassandra;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "embedded")]
mod embedded;
mod ended;
mod lifetimes;
mod listing;
mod memory;
mod port;

#[cfg(feature = "cassandra")]
pub use cassandra::{
    CassandraClient, CassandraConfig, CassandraConsistency, CassandraRefused, CassandraStore, CassandraTls,
    ConnectError, Schema, check, migrate,
};
#[cfg(feature = "embedded")]
pub use embedded::{Durability, EmbeddedConfig, EmbeddedStore, OpenError};
pub use ended::{EndedList, EndedPage, EndedSpan, TaskSummary};
pub use lifetimes::{Clock, DAY_MS, KEY_TTL_MS, LISTING_TTL_MS, OVERFLOW_TTL_MS, PAYLOAD_TTL_MS, SNAPSHOT_TTL_MS};
pub use memory::MemoryStore;
pub use port::*;
