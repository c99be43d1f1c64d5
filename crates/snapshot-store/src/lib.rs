//! The snapshot-store port (design.md §7): what people see and what a successor starts from.
//!
//! Nothing in here is authority. Every row can be rebuilt from the log, payloads apart; every write
//! carries the row clock of the record that caused it, so a late writer of an old state loses by
//! timestamp and never takes a row back in time (invariant 17).

mod memory;
mod port;

pub use memory::MemoryStore;
pub use port::*;
