//! The assignment-lock port (design.md §6): `SET task:ID:assignee worker#epoch NX EX ttl`.
//!
//! A lock shows who runs what and stops a second hand-out outside our control. It is never
//! authority: that is exec_epoch in the log, and expiry alone never reassigns anything.

#[cfg(feature = "conformance")]
pub mod conformance;
mod memory;
mod port;

pub use memory::MemoryLock;
pub use port::*;
