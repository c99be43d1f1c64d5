//! `task_state_snapshots`: a column for whatever people ask for, one blob for the rest.
//!
//! A row is written whole: each column is bound each time, null where it has no value, so that nothing
//! of an older row shows through. What stands in a column is not in the blob.

use std::sync::Arc;

use bytes::Bytes;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use scylla::{DeserializeRow, SerializeRow};
use serde::{Deserialize, Serialize};
use task_core::{CoreState, History, Row};
use task_events::{
    ErrorCategory, EventSequence, ExecEpoch, ExecutionId, Offset, RuleVersion, RunNo, Sha256Hash, TaskCreated, TaskId,
    TaskState, Text, Timeouts,
};
use uuid::Uuid;

use super::coded::{damaged, from_rest, hash, hash_column, number, offset, offset_column, rest, symbol, there};
use super::connection::{Connection, prepare};
use super::error::ConnectError;
use super::life::Life;
use super::mutation::{KEY_BYTES, Mutation};
use crate::{SnapshotRow, StoreError};

const TABLE: &str = "task_state_snapshots";

macro_rules! columns {
    ($($name:ident : $kind:ty),+ $(,)?) => {
        /// The columns, by their names in CQL.
        #[derive(Clone, Debug, PartialEq, SerializeRow, DeserializeRow)]
        pub(super) struct Columns { task_id: String, $($name: Option<$kind>,)+ }

        const NAMES: &[&str] = &["task_id", $(stringify!($name),)+];
    };
}

columns! {
    status: String,
    worker_id: String,
    created_at: CqlTimestamp,
    assigned_at: CqlTimestamp,
    start_time: CqlTimestamp,
    end_time: CqlTimestamp,
    retry_count: i64,
    timeout_ms: i64,
    memory_usage_percent: i64,
    payload_hash: Bytes,
    result_data_hash: Bytes,
    last_event_seq: i64,
    applied_offset: i64,
    closed_at_offset: i64,
    run_no: i64,
    exec_epoch: i64,
    execution_id: Uuid,
    trace_id: String,
    business_key: String,
    task_type: String,
    queue: String,
    priority: i32,
    deadline: CqlTimestamp,
    creator: String,
    error_code: String,
    error_message: String,
    category: String,
    failed_step: String,
    lost_count: i64,
    rule_version: i64,
    history: Bytes,
    history_overflow: i64,
    rest: Bytes,
}

/// What has no column.
#[derive(Serialize, Deserialize)]
struct Rest {
    cancel_requested: bool,
    closed_by_lost: bool,
    assigned_from_retrying: bool,
    max_retries: u32,
    /// The row, with everything taken out that stands in a column.
    row: Row,
}

#[derive(SerializeRow)]
struct Written {
    #[scylla(flatten)]
    columns: Columns,
    row_clock: i64,
    ttl: i32,
}

fn text(text: &Text) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

fn some(text: &Option<Text>) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}

fn back(text: Option<String>) -> Text {
    text.map(Text::from).unwrap_or_default()
}

fn unsigned(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Columns {
    /// Bytes of its values, the fixed ones by estimate.
    fn bytes(&self) -> usize {
        let texts = [
            &self.worker_id,
            &self.trace_id,
            &self.business_key,
            &self.task_type,
            &self.queue,
            &self.creator,
            &self.error_code,
            &self.error_message,
            &self.failed_step,
        ];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let blobs: usize = [&self.history, &self.rest].into_iter().flatten().map(Bytes::len).sum();
        KEY_BYTES + texts + blobs
    }

    /// Of a row.
    pub fn of(snapshot: &SnapshotRow) -> Result<Self, StoreError> {
        let SnapshotRow { core, row, closed_at } = snapshot;
        // Every field is named: a new one is an error until it has its place.
        let CoreState {
            id,
            state,
            cancel_requested,
            closed_by_lost,
            assigned_from_retrying,
            version,
            run_no,
            exec_epoch,
            execution_id,
            retry_count,
            lost_count,
            max_retries,
        } = *core;
        let created = &row.created;
        let others = Rest { cancel_requested, closed_by_lost, assigned_from_retrying, max_retries, row: emptied(row) };
        Ok(Self {
            task_id: id.to_string(),
            status: Some(state.as_str().to_owned()),
            worker_id: text(&row.worker_id),
            created_at: Some(CqlTimestamp(row.created_at)),
            assigned_at: row.assigned_at.map(CqlTimestamp),
            start_time: row.start_time.map(CqlTimestamp),
            end_time: row.end_time.map(CqlTimestamp),
            retry_count: Some(retry_count.into()),
            timeout_ms: Some(unsigned(created.timeouts.start_to_close_ms)),
            memory_usage_percent: Some(row.memory_usage_percent.into()),
            payload_hash: Some(hash_column(created.payload_hash)),
            result_data_hash: row.result_data_hash.map(hash_column),
            last_event_seq: Some(version.0.into()),
            applied_offset: Some(offset_column(row.applied_offset)),
            closed_at_offset: closed_at.map(offset_column),
            run_no: Some(run_no.0.into()),
            exec_epoch: Some(exec_epoch.0.into()),
            execution_id: (execution_id != ExecutionId::NONE).then(|| Uuid::from_bytes(execution_id.0)),
            trace_id: text(&row.trace_id),
            business_key: some(&created.business_key),
            task_type: text(&created.task_type),
            queue: text(&created.queue),
            priority: Some(created.priority.into()),
            deadline: created.deadline.map(CqlTimestamp),
            creator: text(&created.creator),
            error_code: some(&row.error_code),
            error_message: some(&row.error_message),
            category: row.category.map(|category| category.as_str().to_owned()),
            failed_step: some(&row.failed_step),
            lost_count: Some(lost_count.into()),
            rule_version: Some(row.rule_version.0.into()),
            history: Some(row.history.to_bytes()),
            history_overflow: Some(row.history_overflow.into()),
            rest: Some(rest(&others)?),
        })
    }

    fn row(self, id: TaskId) -> Result<SnapshotRow, String> {
        if self.task_id != id.to_string() {
            return Err(format!("task_id: it is {}'s", self.task_id));
        }
        let Rest { cancel_requested, closed_by_lost, assigned_from_retrying, max_retries, row } =
            from_rest(self.rest.as_deref())?;
        let core = CoreState {
            id,
            state: symbol("status", TaskState::ALL, TaskState::as_str, &there("status", self.status)?)?,
            cancel_requested,
            closed_by_lost,
            assigned_from_retrying,
            version: EventSequence(number("last_event_seq", self.last_event_seq)?),
            run_no: RunNo(number("run_no", self.run_no)?),
            exec_epoch: ExecEpoch(number("exec_epoch", self.exec_epoch)?),
            execution_id: self.execution_id.map_or(ExecutionId::NONE, |id| ExecutionId(id.into_bytes())),
            retry_count: number("retry_count", self.retry_count)?,
            lost_count: number("lost_count", self.lost_count)?,
            max_retries,
        };
        let category = |name: String| symbol("category", ErrorCategory::ALL, ErrorCategory::as_str, &name);
        let start_to_close_ms = number("timeout_ms", self.timeout_ms)?;
        let created = TaskCreated {
            task_type: back(self.task_type),
            queue: back(self.queue),
            creator: back(self.creator),
            priority: number("priority", self.priority.map(i64::from))?,
            deadline: self.deadline.map(|at| at.0),
            payload_hash: hash("payload_hash", &there("payload_hash", self.payload_hash)?)?,
            business_key: self.business_key.map(Text::from),
            timeouts: Timeouts { start_to_close_ms, ..row.created.timeouts.clone() },
            ..(*row.created).clone()
        };
        let row = Row {
            created: Arc::new(created),
            created_at: there("created_at", self.created_at)?.0,
            trace_id: back(self.trace_id),
            applied_offset: offset(there("applied_offset", self.applied_offset)?),
            history: History::from_bytes(&there("history", self.history)?),
            history_overflow: number("history_overflow", self.history_overflow)?,
            worker_id: back(self.worker_id),
            assigned_at: self.assigned_at.map(|at| at.0),
            start_time: self.start_time.map(|at| at.0),
            end_time: self.end_time.map(|at| at.0),
            memory_usage_percent: number("memory_usage_percent", self.memory_usage_percent)?,
            error_code: self.error_code.map(Text::from),
            error_message: self.error_message.map(Text::from),
            category: self.category.map(category).transpose()?,
            failed_step: self.failed_step.map(Text::from),
            result_data_hash: self.result_data_hash.map(|bytes| hash("result_data_hash", &bytes)).transpose()?,
            rule_version: RuleVersion(number("rule_version", self.rule_version)?),
            ..row
        };
        Ok(SnapshotRow { core, row: Arc::new(row), closed_at: self.closed_at_offset.map(offset) })
    }
}

// What stands in columns is taken out.
fn emptied(row: &Row) -> Row {
    let timeouts = Timeouts { start_to_close_ms: 0, ..row.created.timeouts.clone() };
    let created = TaskCreated {
        task_type: Text::default(),
        queue: Text::default(),
        creator: Text::default(),
        priority: 0,
        deadline: None,
        payload_hash: Sha256Hash::default(),
        business_key: None,
        timeouts,
        ..(*row.created).clone()
    };
    Row {
        created: Arc::new(created),
        created_at: 0,
        trace_id: Text::default(),
        applied_offset: Offset(0),
        history: History::default(),
        history_overflow: 0,
        worker_id: Text::default(),
        assigned_at: None,
        start_time: None,
        end_time: None,
        memory_usage_percent: 0,
        error_code: None,
        error_message: None,
        category: None,
        failed_step: None,
        result_data_hash: None,
        rule_version: RuleVersion(0),
        ..row.clone()
    }
}

/// The table.
pub(super) struct Snapshots {
    put: PreparedStatement,
    delete: PreparedStatement,
    get: PreparedStatement,
}

impl Snapshots {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let names = NAMES.join(", ");
        let marks = NAMES.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(", ");
        let put = format!("INSERT INTO {TABLE} ({names}) VALUES ({marks}) USING TIMESTAMP :row_clock AND TTL :ttl");
        Ok(Self {
            put: prepare(session, &put).await?,
            delete: prepare(session, &format!("DELETE FROM {TABLE} USING TIMESTAMP ? WHERE task_id = ?")).await?,
            get: prepare(session, &format!("SELECT {names} FROM {TABLE} WHERE task_id = ?")).await?,
        })
    }

    /// A row, or that there is none any more.
    pub fn put(&self, columns: Columns, row_clock: i64, life: Life) -> Mutation {
        match life {
            Life::For(ttl) => {
                let bytes = columns.bytes();
                Mutation::new(&self.put, Written { columns, row_clock, ttl }, bytes)
            }
            Life::Over => Mutation::new(&self.delete, (row_clock, columns.task_id), KEY_BYTES),
        }
    }

    /// Reads a row, whether it has expired or not.
    pub async fn read(&self, from: &Connection, id: TaskId) -> Result<Option<SnapshotRow>, StoreError> {
        let found: Option<Columns> = from.one(&self.get, (id.to_string(),)).await?;
        found.map(|columns| columns.row(id).map_err(|why| damaged(TABLE, id, why))).transpose()
    }
}
