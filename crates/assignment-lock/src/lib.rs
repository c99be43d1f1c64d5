//! The lock server (design.md §6): assignment locks and the board, each a port with its adapters.
//!
//! Locks: `SET task:ID:assignee worker_id#exec_epoch NX PX ttl`.
//!
//! A lock shows who runs what and stops a second hand-out outside our control. It is never
//! authority: that is exec_epoch in the log, and expiry alone never reassigns anything.

mod board;
#[cfg(feature = "conformance")]
pub mod conformance;
mod memory;
mod port;
#[cfg(feature = "redis")]
mod redis;

pub use board::{Board, Entry};
pub use memory::MemoryLock;
pub use port::*;
#[cfg(feature = "redis")]
pub use redis::{RedisClient, RedisConfig, RedisLock, RedisRefused};
