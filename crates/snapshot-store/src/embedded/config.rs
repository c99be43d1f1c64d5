//! Settings of an embedded store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Clock;

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After fdatasync: it survives the loss of power.
    Fsync,
    /// After the write: it survives the process, not the machine. For `archive.enabled=false`
    /// (point it at a temporary directory) and tests.
    Volatile,
}

/// Settings of one embedded store.
#[derive(Clone)]
pub struct EmbeddedConfig {
    /// Directory of the store; created when missing, locked while open.
    pub dir: PathBuf,
    /// By what things expire.
    pub clock: Clock,
    /// When a write is acknowledged. Default [`Durability::Fsync`].
    pub durability: Durability,
    /// Memory for blocks that were read. Default 32 MiB.
    pub cache_bytes: u64,
    /// Most bytes waiting for the writer; more is answered `Unavailable`, unless nothing else
    /// waits. Default 64 MiB, what a partition may owe (design.md §4.9).
    pub max_queued_bytes: usize,
    /// A commit takes no more once it has this many bytes; bounds how long a write waits behind
    /// others. Default 8 MiB.
    pub max_commit_bytes: usize,
}

impl EmbeddedConfig {
    /// The defaults for a directory. The clock tells Unix ms.
    pub fn new(dir: impl Into<PathBuf>, clock: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self {
            dir: dir.into(),
            clock: Arc::new(clock),
            durability: Durability::Fsync,
            cache_bytes: 32 << 20,
            max_queued_bytes: 64 << 20,
            max_commit_bytes: 8 << 20,
        }
    }
}
