//! The embedded log: durable, in one directory, for one process. What `dualtrack dev` and tests
//! run on instead of Kafka. docs/adr/010 and 011 have the reasons and the figures.
//!
//! One writer thread commits everything that is queued with one fdatasync, all partitions into
//! one sequence of segment files; readers find a partition's records by a per-segment index.

mod body;
mod config;
mod core;
mod damage;
mod directory;
mod faults;
mod format;
mod groups;
mod index;
mod open;
mod queue;
mod reader;
mod scan;
mod segment_file;
mod segments;
mod tail;
mod visibility;
mod window;
mod writer;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use held_directory::Held;
use parking_lot::Mutex;
use task_events::{Offset, PartitionId};
use tokio::sync::oneshot;
use uuid::Uuid;

pub use self::config::{Clock, Durability, EmbeddedConfig, system_clock};
pub use self::faults::{AppendFault, Faults};
pub use self::groups::EmbeddedMember;
pub use self::tail::EmbeddedTail;
use crate::{AppendOutcome, EventLog, LogError, MemberInfo, MemberSpec, OffsetRange, OutRecord, RawRecord};

use self::body::EncodedBatch;
use self::core::{Core, blocking};
use self::directory::Directory;
use self::groups::Groups;
use self::queue::{Answer, Job, Queue};
use self::segments::Segments;
use self::visibility::Visibility;
use self::writer::Writer;

/// An open embedded log. Clones share it; the last one to go closes it: what is queued is
/// written, the writer thread ends, the directory is unlocked.
#[derive(Clone)]
pub struct EmbeddedLog {
    shared: Arc<Shared>,
}

struct Shared {
    core: Arc<Core>,
    queue: Arc<Queue>,
    groups: Arc<Groups>,
    faults: Faults,
    log_id: Uuid,
    max_record_bytes: usize,
    /// Both are gone once the log is closed.
    running: Mutex<Option<(JoinHandle<()>, Held)>>,
}

impl EmbeddedLog {
    /// Opens or creates the log of a directory. Blocking: it reads the newest segment in full
    /// (all segments with [`EmbeddedConfig::verify_all`]).
    ///
    /// # Errors
    /// [`LogError::Refused`]: invalid settings, directory in use, another partition count or log.
    /// [`LogError::Damaged`]: an entry doesn't fit and isn't a torn tail.
    /// [`LogError::Unavailable`]: the file system said no.
    pub fn open(config: EmbeddedConfig) -> Result<Self, LogError> {
        config.check()?;
        let (directory, lock, meta) = Directory::open(&config)?;
        let recovered = open::recover(&directory, meta, &config)?;
        let log_id = recovered.meta.log_id;
        let partitions = recovered.meta.partitions;
        let segments = Segments::new(directory, recovered.meta, recovered.sealed, recovered.active.clone());
        let core = Arc::new(Core { segments, visible: Visibility::new(&recovered.next), partitions });
        let queue = Arc::new(Queue::new(config.max_queued_bytes));
        let groups = Groups::start(partitions, config.session_timeout, config.revoke_deadline)?;
        let faults = Faults::new(core.clone(), queue.clone(), groups.clone());
        let max_record_bytes = config.max_record_bytes;
        let writer = Writer {
            core: core.clone(),
            queue: queue.clone(),
            config,
            active: recovered.active,
            len: recovered.len,
            created_ms: recovered.created_ms,
            next: recovered.next,
            marks: recovered.marks,
            mark_due: recovered.mark_due,
        };
        let thread = std::thread::Builder::new().name("log-writer".into()).spawn(move || writer.run());
        let thread = thread.map_err(|e| LogError::Unavailable(format!("cannot start the writer thread: {e}")))?;
        let running = Mutex::new(Some((thread, lock)));
        Ok(Self { shared: Arc::new(Shared { core, queue, groups, faults, log_id, max_record_bytes, running }) })
    }

    /// Identity of the log, made at its creation.
    pub fn log_id(&self) -> Uuid {
        self.shared.log_id
    }

    /// Injection of faults, for tests.
    pub fn faults(&self) -> Faults {
        self.shared.faults.clone()
    }

    /// Why the log takes no more appends, if so; reading goes on. Only reopening helps.
    pub fn failure(&self) -> Option<String> {
        self.shared.queue.failure()
    }

    /// How far the members of a group said they had folded a partition; for lag metrics.
    pub fn applied(&self, group: &str, partition: PartitionId) -> Option<Offset> {
        self.shared.groups.applied(group, partition)
    }

    /// Retention: deletes whole old segments whose records are all older than `cutoff_ms` (Unix
    /// ms, broker time) and moves the start offsets. Returns how many were deleted. Never touches
    /// the newest segment.
    ///
    /// # Errors
    /// [`LogError::Unavailable`] when a file can't be removed; the start offsets may have moved.
    pub async fn delete_before(&self, cutoff_ms: i64) -> Result<usize, LogError> {
        let core = self.shared.core.clone();
        blocking(move || core.segments.delete_before(cutoff_ms)).await
    }

    /// Writes what is queued, takes no more appends, ends all memberships and unlocks the
    /// directory. Blocking for as long as the last sync takes. Dropping the last clone does it too.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Path of the newest segment, for tests that damage it.
    pub fn newest_segment(&self) -> PathBuf {
        self.shared.core.segments.active().path.clone()
    }
}

impl Shared {
    fn close(&self) {
        self.queue.close();
        if let Some((thread, lock)) = self.running.lock().take() {
            // A panic of the writer has been answered to everyone who waited.
            let _ = thread.join();
            drop(lock);
        }
        self.groups.close();
        self.core.visible.close();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

impl EventLog for EmbeddedLog {
    type Tail = EmbeddedTail;
    type Member = EmbeddedMember;

    fn partition_count(&self) -> u16 {
        self.shared.core.partitions
    }

    fn append(
        &self,
        partition: PartitionId,
        batch: Vec<OutRecord>,
    ) -> impl Future<Output = AppendOutcome> + Send + 'static {
        let (tx, rx) = oneshot::channel();
        self.shared.enqueue(partition, &batch, tx);
        async move { rx.await.unwrap_or_else(|_| AppendOutcome::Unknown("the log's writer ended".into())) }
    }

    async fn tail(&self, partition: PartitionId, from: Offset) -> Result<EmbeddedTail, LogError> {
        self.shared.core.check(partition)?;
        EmbeddedTail::open(self.shared.core.clone(), partition, from)
    }

    async fn range(&self, partition: PartitionId) -> Result<OffsetRange, LogError> {
        self.shared.core.check(partition)?;
        Ok(self.shared.core.range(partition))
    }

    async fn read_at(&self, partition: PartitionId, offsets: Vec<Offset>) -> Result<Vec<RawRecord>, LogError> {
        self.shared.core.check(partition)?;
        let core = self.shared.core.clone();
        blocking(move || core.read_at(partition, &offsets)).await
    }

    async fn offset_at(&self, partition: PartitionId, unix_ms: i64) -> Result<Option<Offset>, LogError> {
        self.shared.core.check(partition)?;
        let core = self.shared.core.clone();
        blocking(move || core.offset_at(partition, unix_ms)).await
    }

    async fn join(&self, spec: MemberSpec) -> Result<EmbeddedMember, LogError> {
        self.shared.groups.join(spec)
    }

    async fn members(&self) -> Result<Vec<MemberInfo>, LogError> {
        Ok(self.shared.groups.members())
    }
}

impl Shared {
    fn enqueue(&self, partition: PartitionId, batch: &[OutRecord], tx: oneshot::Sender<AppendOutcome>) {
        let answer = |tx: oneshot::Sender<AppendOutcome>, outcome| drop(tx.send(outcome));
        if let Err(error) = self.core.check(partition) {
            return answer(tx, AppendOutcome::NotSent(error.to_string()));
        }
        if batch.is_empty() {
            return answer(tx, AppendOutcome::Acknowledged);
        }
        let batch = match EncodedBatch::encode(batch, self.max_record_bytes) {
            Ok(batch) => batch,
            Err(reason) => return answer(tx, AppendOutcome::NotSent(reason)),
        };
        let unknown = || AppendOutcome::Unknown("injected: the outcome is unknown".into());
        match self.faults.take(partition) {
            None => self.queue.push(Job { partition, batch, answer: Answer::Ack(tx) }),
            Some(AppendFault::UnknownWritten) => self.queue.push(Job { partition, batch, answer: Answer::Unknown(tx) }),
            Some(AppendFault::NotSent) => answer(tx, AppendOutcome::NotSent("injected: not sent".into())),
            Some(AppendFault::UnknownNotWritten) => answer(tx, unknown()),
            Some(AppendFault::UnknownWrittenLater) => {
                self.faults.park(Job { partition, batch, answer: Answer::None });
                answer(tx, unknown());
            }
        }
    }
}

/// How often a member shows that it lives, as a part of the session timeout.
const HEARTBEATS_PER_SESSION: u32 = 20;

fn heartbeat_interval(session_timeout: Duration) -> Duration {
    (session_timeout / HEARTBEATS_PER_SESSION).max(Duration::from_millis(1))
}
