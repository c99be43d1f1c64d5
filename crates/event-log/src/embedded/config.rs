//! Settings of the embedded log.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::LogError;

/// The broker's clock: Unix milliseconds. It may step back; stamps are taken as it gives them,
/// as Kafka's LogAppendTime does.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The wall clock of this machine.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the embedded log that reads the wall clock; everything else is given a Clock"
)]
pub fn system_clock() -> Clock {
    Arc::new(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}

/// When an append is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After fdatasync: it survives the loss of power.
    Fsync,
    /// After the write: it survives the process, not the machine. For `archive.enabled=false`
    /// (point it at a temporary directory) and tests.
    Volatile,
}

/// Settings of one embedded log; see each field for its range.
#[derive(Clone)]
pub struct EmbeddedConfig {
    /// Directory of the log; created when missing, locked while open.
    pub dir: PathBuf,
    /// Partitions, 1–1,024; fixed for life, another number than the directory's is refused.
    pub partitions: u16,
    /// Refuse the directory when it holds another log than this one.
    pub expected_log_id: Option<Uuid>,
    /// When an append is acknowledged. Default [`Durability::Fsync`].
    pub durability: Durability,
    /// A segment is closed when it has grown to this, 4 KiB – 1 GiB. Default 128 MiB.
    pub segment_bytes: u64,
    /// A segment is closed when it is this old and written to. Default 24 h. Retention deletes
    /// whole segments, so this is also how much longer than asked for a record may stay.
    pub segment_age: Duration,
    /// Largest key + headers + value of a record. Default 2 MiB + 64 KiB, as for Kafka.
    pub max_record_bytes: usize,
    /// Most bytes waiting for the writer; more is answered `NotSent`. Default 64 MiB.
    pub max_queued_bytes: usize,
    /// Most bytes of one commit; bounds how long an append waits behind others. Default 8 MiB.
    pub max_commit_bytes: usize,
    /// Check every entry of every segment when opening, not just the newest segment's. What is
    /// not checked at opening is checked when read. Default false.
    pub verify_all: bool,
    /// Clock of the stamps. Default [`system_clock`].
    pub clock: Clock,
    /// Silence after which a member is dropped from its group. Default 6 s.
    pub session_timeout: Duration,
    /// Time a member has to release a revoked partition. Default 3 s.
    pub revoke_deadline: Duration,
}

impl EmbeddedConfig {
    /// The defaults for a directory.
    pub fn new(dir: impl Into<PathBuf>, partitions: u16) -> Self {
        Self {
            dir: dir.into(),
            partitions,
            expected_log_id: None,
            durability: Durability::Fsync,
            segment_bytes: 128 << 20,
            segment_age: Duration::from_secs(24 * 3600),
            max_record_bytes: (2 << 20) + (64 << 10),
            max_queued_bytes: 64 << 20,
            max_commit_bytes: 8 << 20,
            verify_all: false,
            clock: system_clock(),
            session_timeout: Duration::from_secs(6),
            revoke_deadline: Duration::from_secs(3),
        }
    }

    pub(super) fn check(&self) -> Result<(), LogError> {
        let refuse = |text: String| Err(LogError::Refused(text));
        if self.partitions == 0 || self.partitions > task_events::MAX_PARTITIONS {
            return refuse(format!("partitions = {} is not in 1..={}", self.partitions, task_events::MAX_PARTITIONS));
        }
        if !(4 << 10..=1 << 30).contains(&self.segment_bytes) {
            return refuse(format!("segment_bytes = {} is not in 4096..=1073741824", self.segment_bytes));
        }
        if self.max_record_bytes == 0 || self.max_record_bytes > super::format::MAX_BODY as usize {
            return refuse(format!(
                "max_record_bytes = {} is not in 1..={}",
                self.max_record_bytes,
                super::format::MAX_BODY
            ));
        }
        if self.max_queued_bytes > 1 << 30 {
            return refuse(format!("max_queued_bytes = {} is above 1073741824", self.max_queued_bytes));
        }
        Ok(())
    }
}
