//! `task_payloads`: items of a task in one partition, so that those that come together are one mutation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, TryStreamExt as _};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use task_events::TaskId;

use super::AT_ONCE;
use super::connection::{Connection, prepare};
use super::error::ConnectError;
use super::life::{Life, alive, expires_at};
use super::mutation::Mutation;
use super::names::key;
use crate::lifetimes::PAYLOAD_TTL_MS;
use crate::{PayloadItem, StoreError};

/// Bytes of the items of one task in one mutation: it may have 16 MiB, but it is better for nodes not to meet
/// such ones.
const MUTATION_BYTES: usize = 1 << 20;

/// The table.
pub(super) struct Payloads {
    put: PreparedStatement,
    get: PreparedStatement,
}

impl Payloads {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let put = "INSERT INTO task_payloads (task_id, item, bytes, expires_at) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
        let get = "SELECT bytes, expires_at FROM task_payloads WHERE task_id = ? AND item = ?";
        Ok(Self { put: prepare(session, put).await?, get: prepare(session, get).await? })
    }

    /// Writes items at a stamp; says when their life ends.
    pub async fn write(
        &self,
        to: &Connection,
        items: Vec<(TaskId, PayloadItem, Bytes)>,
        (now_ms, at): (i64, i64),
    ) -> Result<i64, StoreError> {
        let expires_ms = now_ms.saturating_add(PAYLOAD_TTL_MS);
        let ttl = match Life::until(expires_ms, now_ms) {
            Life::For(ttl) => ttl,
            Life::Over => return Ok(expires_ms),
        };
        // Of one item named twice the later bytes stay.
        let mut of_task: BTreeMap<TaskId, BTreeMap<String, Bytes>> = BTreeMap::new();
        for (task, item, bytes) in items {
            of_task.entry(task).or_default().insert(name(&item), bytes);
        }
        let mut mutations = Vec::new();
        for (task, items) in of_task {
            let mut size = usize::MAX;
            for (item, bytes) in items {
                let (name_bytes, bytes_len) = (item.len(), bytes.len());
                size = size.saturating_add(bytes_len);
                let put = (task.to_string(), item, bytes, expires_at(expires_ms), at, ttl);
                match mutations.pop() {
                    Some(one) if size <= MUTATION_BYTES => {
                        mutations.push(Mutation::and(one, &self.put, put, name_bytes + bytes_len));
                    }
                    before => {
                        size = bytes_len;
                        mutations.extend(before);
                        mutations.push(Mutation::new(&self.put, put, name_bytes + bytes_len));
                    }
                }
            }
        }
        to.write_all(mutations, None).await?;
        Ok(expires_ms)
    }

    pub async fn read(
        &self,
        from: &Connection,
        wanted: Vec<(TaskId, PayloadItem)>,
        now_ms: i64,
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let read = wanted.into_iter().map(|(task, item)| async move {
            type Row = (Option<Bytes>, Option<CqlTimestamp>);
            let found: Option<Row> = from.one(&self.get, (task.to_string(), name(&item))).await?;
            let found = found.filter(|(_, expires_at)| alive(*expires_at, now_ms));
            // Not a part of the frame it came in, which would be kept with it.
            Ok(found.map(|(bytes, _)| Bytes::copy_from_slice(&bytes.unwrap_or_default())))
        });
        stream::iter(read).buffered(AT_ONCE).try_collect().await
    }
}

/// What an item is called in its task.
fn name(item: &PayloadItem) -> String {
    match item {
        PayloadItem::Parameters { payload_hash } => format!("parameters/{payload_hash}"),
        PayloadItem::StepOutput { step, output_hash } => format!("step/{output_hash}/{}", key(step)),
        PayloadItem::Result { result_data_hash } => format!("result/{result_data_hash}"),
        PayloadItem::ErrorText => "error".to_owned(),
    }
}

/// Timestamps for what has no row clock, µs: those of the store's clock, but never one twice, so that of
/// two writes of a process the later stays, whatever its clock does.
#[derive(Default)]
pub(super) struct Stamps(AtomicI64);

impl Stamps {
    pub fn next(&self, now_ms: i64) -> i64 {
        let after = |last: i64| last.saturating_add(1).max(now_ms.saturating_mul(1_000));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        after(before.unwrap_or_else(|last| last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_rise_whatever_the_clock_does() {
        let stamps = Stamps::default();
        let taken = [5, 5, 4, 0, 6].map(|now_ms| stamps.next(now_ms));
        assert_eq!(taken, [5_000, 5_001, 5_002, 5_003, 6_000]);
    }
}
