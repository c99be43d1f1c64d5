//! Tables of few columns: idempotency keys, history beside rows, how far rows are acknowledged, secrets.

use bytes::Bytes;
use scylla::client::session::Session;
use scylla::frame::types::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use task_core::{HistoryEntry, Reason};
use task_events::{Offset, PartitionId, Sha256Hash, TaskId};

use super::coded::{damaged, hash, hash_column, offset, offset_column, symbol, there};
use super::config::CassandraConsistency;
use super::connection::{Connection, prepare};
use super::error::ConnectError;
use super::life::{Life, alive, expires_at};
use super::mutation::{KEY_BYTES, Mutation};
use crate::{KeyRow, StoreError};

/// `idempotency_keys`.
pub(super) struct Keys {
    put: PreparedStatement,
    delete: PreparedStatement,
    get: PreparedStatement,
}

impl Keys {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let put = "INSERT INTO idempotency_keys (key_hash, request_hash, task_id, created_at) VALUES (?, ?, ?, ?) \
                   USING TIMESTAMP ? AND TTL ?";
        let get = "SELECT request_hash, task_id, created_at FROM idempotency_keys WHERE key_hash = ?";
        Ok(Self {
            put: prepare(session, put).await?,
            delete: prepare(session, "DELETE FROM idempotency_keys USING TIMESTAMP ? WHERE key_hash = ?").await?,
            get: prepare(session, get).await?,
        })
    }

    pub fn put(&self, row: &KeyRow, row_clock: i64, life: Life) -> Mutation {
        let key = hash_column(row.key_hash);
        match life {
            Life::For(ttl) => {
                let request = row.request_hash.map(hash_column);
                let created_at = CqlTimestamp(row.created_at);
                let values = (key, request, row.task_id.to_string(), created_at, row_clock, ttl);
                Mutation::new(&self.put, values, KEY_BYTES)
            }
            Life::Over => Mutation::new(&self.delete, (row_clock, key), KEY_BYTES),
        }
    }

    pub async fn read(&self, from: &Connection, key_hash: Sha256Hash) -> Result<Option<KeyRow>, StoreError> {
        type Row = (Option<Bytes>, Option<String>, Option<CqlTimestamp>);
        let found: Option<Row> = from.one(&self.get, (hash_column(key_hash),)).await?;
        let row = |(request, task_id, created_at): Row| -> Result<KeyRow, String> {
            let task_id = there("task_id", task_id)?;
            Ok(KeyRow {
                key_hash,
                request_hash: request.map(|bytes| hash("request_hash", &bytes)).transpose()?,
                task_id: task_id.parse().map_err(|_| format!("task_id: {task_id:?} is none"))?,
                created_at: there("created_at", created_at)?.0,
            })
        };
        found.map(|found| row(found).map_err(|why| damaged("idempotency_keys", key_hash, why))).transpose()
    }
}

/// `task_history`.
pub(super) struct Beside {
    put: PreparedStatement,
    delete: PreparedStatement,
    of_task: PreparedStatement,
}

impl Beside {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let put = "INSERT INTO task_history (task_id, offset, rejected, expires_at) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
        let delete = "DELETE FROM task_history USING TIMESTAMP ? WHERE task_id = ? AND offset = ?";
        let of_task = "SELECT offset, rejected, expires_at FROM task_history WHERE task_id = ?";
        Ok(Self {
            put: prepare(session, put).await?,
            delete: prepare(session, delete).await?,
            of_task: prepare(session, of_task).await?,
        })
    }

    pub fn put(
        &self,
        (task, entry): (TaskId, HistoryEntry),
        row_clock: i64,
        (expires_ms, life): (i64, Life),
    ) -> Mutation {
        let at = offset_column(entry.offset);
        match life {
            Life::For(ttl) => {
                let rejected = entry.rejected.map(Reason::as_str);
                let values = (task.to_string(), at, rejected, expires_at(expires_ms), row_clock, ttl);
                Mutation::new(&self.put, values, KEY_BYTES)
            }
            Life::Over => Mutation::new(&self.delete, (row_clock, task.to_string(), at), KEY_BYTES),
        }
    }

    pub async fn read(&self, from: &Connection, task: TaskId, now_ms: i64) -> Result<Vec<HistoryEntry>, StoreError> {
        type Row = (i64, Option<String>, Option<CqlTimestamp>);
        let found: Vec<Row> = from.all(&self.of_task, &(task.to_string(),)).await?;
        let seen = found.into_iter().filter(|(_, _, expires_at)| alive(*expires_at, now_ms));
        let entry = |(at, rejected, _): Row| {
            let rejected = rejected.map(|name| symbol("rejected", Reason::ALL, Reason::as_str, &name)).transpose();
            let rejected = rejected.map_err(|why| damaged("task_history", format_args!("{task} {at}"), why))?;
            Ok(HistoryEntry { offset: offset(at), rejected })
        };
        seen.map(entry).collect()
    }
}

/// `acked_offsets`.
pub(super) struct Acked {
    put: PreparedStatement,
    get: PreparedStatement,
}

impl Acked {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let put = "INSERT INTO acked_offsets (partition, acked) VALUES (?, ?) USING TIMESTAMP ?";
        Ok(Self {
            put: prepare(session, put).await?,
            get: prepare(session, "SELECT acked FROM acked_offsets WHERE partition = ?").await?,
        })
    }

    /// The offset is its own timestamp: whoever writes a lower one later loses.
    pub async fn write(&self, to: &Connection, partition: PartitionId, below: Offset) -> Result<(), StoreError> {
        let timestamp = i64::try_from(below.0).unwrap_or(i64::MAX);
        to.write(&self.put, (i32::from(partition.0), offset_column(below), timestamp)).await
    }

    pub async fn read(&self, from: &Connection, partition: PartitionId) -> Result<Offset, StoreError> {
        let found: Option<(Option<i64>,)> = from.one(&self.get, (i32::from(partition.0),)).await?;
        Ok(found.and_then(|(acked,)| acked).map(offset).unwrap_or_default())
    }
}

/// `secrets`: the first proposal stays. Only a lightweight transaction can promise that to two who
/// come at once; no timestamp of ours is ever written here.
pub(super) struct Secrets {
    propose: PreparedStatement,
    get: PreparedStatement,
}

impl Secrets {
    pub async fn prepare(session: &Session, consistency: CassandraConsistency) -> Result<Self, ConnectError> {
        let propose = "INSERT INTO secrets (name, value) VALUES (?, ?) IF NOT EXISTS";
        let mut get = prepare(session, "SELECT value FROM secrets WHERE name = ?").await?;
        // Ends a proposal that was interrupted, so that what is read is what everybody will read.
        get.set_consistency(match consistency {
            CassandraConsistency::LocalQuorum => Consistency::LocalSerial,
            CassandraConsistency::Quorum => Consistency::Serial,
        });
        Ok(Self { propose: prepare(session, propose).await?, get })
    }

    pub async fn agree(&self, with: &Connection, name: &str, proposed: [u8; 32]) -> Result<[u8; 32], StoreError> {
        if let Some(there) = self.read(with, name).await? {
            return Ok(there);
        }
        with.write(&self.propose, (name, Bytes::copy_from_slice(&proposed))).await?;
        let agreed = self.read(with, name).await?;
        agreed.ok_or_else(|| StoreError::Unavailable(format!("secret {name} was written and is not there yet")))
    }

    async fn read(&self, from: &Connection, name: &str) -> Result<Option<[u8; 32]>, StoreError> {
        let found: Option<(Option<Bytes>,)> = from.one(&self.get, (name,)).await?;
        let Some(bytes) = found.and_then(|(value,)| value) else { return Ok(None) };
        let secret = bytes.as_ref().try_into();
        secret.map(Some).map_err(|_| damaged("secrets", name, format!("{} bytes instead of 32", bytes.len())))
    }
}
