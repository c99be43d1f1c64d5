//! The tables in the LSM tree, and what its errors mean here.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, LsmError, OwnedWriteBatch};
use held_directory::Held;

use super::coding::{self, Stored};
use super::directory::{self, OpenError};
use crate::StoreError;

/// Memory of a table that is written to, before it is flushed.
const MEMTABLE_BYTES: u64 = 16 << 20;

/// Bytes of journals; beyond, the tables that hold the oldest back are flushed.
const JOURNAL_BYTES: u64 = 128 << 20;

/// Which table. The numbers stand in the keys of [`Table::Expiries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    /// By task.
    Snapshots = 1,
    /// By key hash.
    Keys = 2,
    /// By task and offset.
    Overflow = 3,
    /// By task and item.
    Payloads = 4,
    /// By partition.
    Acked = 5,
    /// By SHA-256.
    Chunks = 6,
    /// By partition, offset, epoch, rules and state hash.
    Checkpoints = 7,
    /// By time, table and key: what the sweep has to look at. No values.
    Expiries = 8,
    /// By trace and task, the newest first. Values without a body.
    TasksByTrace = 9,
    /// By creator, business key and task, the newest first. Values without a body.
    TasksByBusinessKey = 10,
    /// By partition and task, the newest first.
    TasksByTime = 11,
    /// By code, partition and task, the newest first. Values without a body.
    FailuresByCode = 12,
    /// By partition and task, the newest first. The body says whether it still waits.
    ReviewQueue = 13,
    /// By name.
    Secrets = 14,
}

impl Table {
    pub const ALL: [Self; 14] = [
        Self::Snapshots,
        Self::Keys,
        Self::Overflow,
        Self::Payloads,
        Self::Acked,
        Self::Chunks,
        Self::Checkpoints,
        Self::Expiries,
        Self::TasksByTrace,
        Self::TasksByBusinessKey,
        Self::TasksByTime,
        Self::FailuresByCode,
        Self::ReviewQueue,
        Self::Secrets,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Snapshots => "task_state_snapshots",
            Self::Keys => "idempotency_keys",
            Self::Overflow => "history_overflow",
            Self::Payloads => "task_payloads",
            Self::Acked => "acked_offsets",
            Self::Chunks => "checkpoint_chunks",
            Self::Checkpoints => "partition_checkpoints",
            Self::Expiries => "expiries",
            Self::TasksByTrace => "tasks_by_trace",
            Self::TasksByBusinessKey => "tasks_by_business_key",
            Self::TasksByTime => "tasks_by_time",
            Self::FailuresByCode => "failures_by_code",
            Self::ReviewQueue => "review_queue",
            Self::Secrets => "secrets",
        }
    }

    /// A value that makes no sense, by table and key.
    pub fn damaged(self, key: &[u8], why: &str) -> StoreError {
        StoreError::Damaged(format!("{} {}: {why}", self.name(), self.show(key)))
    }

    // A key as people look for it.
    fn show(self, key: &[u8]) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match self {
            Self::Snapshots | Self::Overflow | Self::Payloads => match key.split_first_chunk() {
                Some((task, [])) => format!("task {}", u64::from_be_bytes(*task)),
                Some((task, rest)) => format!("task {} {}", u64::from_be_bytes(*task), hex(rest)),
                None => hex(key),
            },
            Self::TasksByTrace | Self::TasksByBusinessKey => match coding::listed_task(key) {
                Some(task) => format!("task {task}"),
                None => hex(key),
            },
            Self::TasksByTime | Self::FailuresByCode | Self::ReviewQueue => match coding::ended_task(key) {
                Some(task) => format!("task {task}"),
                None => hex(key),
            },
            Self::Secrets => String::from_utf8_lossy(key).into_owned(),
            Self::Keys | Self::Acked | Self::Chunks | Self::Checkpoints | Self::Expiries => hex(key),
        }
    }

    fn options(self) -> KeyspaceCreateOptions {
        let options = KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        match self {
            // Big and never changed in part: moved once, not at every compaction.
            Self::Payloads | Self::Chunks | Self::Checkpoints => {
                options.with_kv_separation(Some(KvSeparationOptions::default()))
            }
            // Looked for in vain whenever a task or a key is new, which the filters answer.
            Self::Snapshots
            | Self::Keys
            | Self::Overflow
            | Self::Acked
            | Self::Expiries
            | Self::TasksByTrace
            | Self::TasksByBusinessKey
            | Self::TasksByTime
            | Self::FailuresByCode
            | Self::ReviewQueue
            | Self::Secrets => options,
        }
    }
}

/// The open tables. Whoever drops them last gives the directory back.
pub(super) struct Tables {
    // Dropped in this order: tables, tree, lock.
    keyspaces: Vec<Keyspace>,
    database: Database,
    dir: PathBuf,
    _lock: Held,
}

impl Tables {
    pub fn open(dir: &Path, cache_bytes: u64) -> Result<Self, OpenError> {
        let (lock, below) = directory::open(dir)?;
        let failed = |error: fjall::Error| {
            let text = format!("cannot open {}: {error}", below.display());
            if is_io(&error) { OpenError::Io(text) } else { OpenError::Damaged(text) }
        };
        let builder = Database::builder(&below).cache_size(cache_bytes).max_journaling_size(JOURNAL_BYTES);
        let database = builder.open().map_err(failed)?;
        let mut keyspaces = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            keyspaces.push(database.keyspace(table.name(), || table.options()).map_err(failed)?);
        }
        Ok(Self { keyspaces, database, dir: dir.to_owned(), _lock: lock })
    }

    pub fn keyspace(&self, table: Table) -> &Keyspace {
        // In the order of ALL, whose numbers start at 1.
        &self.keyspaces[table as usize - 1]
    }

    pub fn batch(&self) -> OwnedWriteBatch {
        self.database.batch()
    }

    /// Bytes of a value.
    pub fn bytes(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let found = self.keyspace(table).get(key).map_err(|e| self.error("cannot read", table, &e))?;
        Ok(found.map(Bytes::from))
    }

    /// A value, whether it has expired or not.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Stored>, StoreError> {
        let found = self.bytes(table, key)?;
        found.map(|value| Stored::from_bytes(&value).map_err(|why| table.damaged(key, &why))).transpose()
    }

    /// A value that has not expired.
    pub fn alive(&self, table: Table, key: &[u8], now_ms: i64) -> Result<Option<Stored>, StoreError> {
        Ok(self.get(table, key)?.filter(|stored| now_ms < stored.expires_ms))
    }

    /// Everything whose key starts with `prefix`, in order.
    pub fn below(&self, table: Table, prefix: &[u8]) -> Result<Vec<(Bytes, Stored)>, StoreError> {
        let mut found = Vec::new();
        for entry in self.keyspace(table).prefix(prefix) {
            let (key, value) = entry.into_inner().map_err(|e| self.error("cannot read", table, &e))?;
            let stored = Stored::from_bytes(&value.into()).map_err(|why| table.damaged(&key, &why))?;
            found.push((key.into(), stored));
        }
        Ok(found)
    }

    /// The first keys that start with `prefix` and have not expired, in order.
    pub fn alive_below(
        &self,
        table: Table,
        prefix: &[u8],
        now_ms: i64,
        limit: usize,
    ) -> Result<Vec<Bytes>, StoreError> {
        let mut found = Vec::new();
        let mut entries = self.keyspace(table).prefix(prefix);
        while found.len() < limit
            && let Some(entry) = entries.next()
        {
            let (key, value) = entry.into_inner().map_err(|e| self.error("cannot read", table, &e))?;
            let stored = Stored::from_bytes(&value.into()).map_err(|why| table.damaged(&key, &why))?;
            if now_ms < stored.expires_ms {
                found.push(key.into());
            }
        }
        Ok(found)
    }

    /// Entries from one key to another, both included, from the last one on if `backwards`.
    pub fn between(
        &self,
        table: Table,
        (first, last): (Vec<u8>, Vec<u8>),
        backwards: bool,
        limit: usize,
    ) -> Result<Vec<(Bytes, Stored)>, StoreError> {
        if first > last {
            return Ok(Vec::new());
        }
        let range = self.keyspace(table).range(first..=last);
        let parse = |entry: fjall::Guard| {
            let (key, value) = entry.into_inner().map_err(|e| self.error("cannot read", table, &e))?;
            let stored = Stored::from_bytes(&value.into()).map_err(|why| table.damaged(&key, &why))?;
            Ok((Bytes::from(key), stored))
        };
        if backwards { range.rev().take(limit).map(parse).collect() } else { range.take(limit).map(parse).collect() }
    }

    /// The first keys of a table that are below `end`, from `start` on.
    pub fn keys(&self, table: Table, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Bytes>, StoreError> {
        let keys = self.keyspace(table).range(start..end).take(limit).map(|entry| entry.key().map(Bytes::from));
        keys.collect::<fjall::Result<_>>().map_err(|e| self.error("cannot read", table, &e))
    }

    /// What an error of the tree means to who uses the port.
    pub fn error(&self, what: &str, table: Table, error: &fjall::Error) -> StoreError {
        self.error_in(what, table.name(), error)
    }

    /// The same for what concerns several tables.
    pub fn error_in(&self, what: &str, whose: &str, error: &fjall::Error) -> StoreError {
        let text = format!("{what} {whose} in {}: {error}", self.dir.display());
        if is_io(error) { StoreError::Unavailable(text) } else { StoreError::Damaged(text) }
    }
}

// Whether the disk is away, and not what lies on it wrong. `Poisoned`: an earlier write failed, and
// nothing is written until the store is opened anew.
fn is_io(error: &fjall::Error) -> bool {
    use fjall::Error;
    matches!(
        error,
        Error::Io(_) | Error::Storage(LsmError::Io(_)) | Error::Poisoned | Error::Locked | Error::KeyspaceDeleted
    )
}
