//! In which parts of its time a list holds anything. Lists of ended tasks are cut into buckets of 5
//! minutes or days by the time in the id; `list_spans` names those that were ever written, so that a
//! reader need not ask for the empty ones.
//!
//! An entry is written before the first row of its span, and anew when a row of a later day would outlive
//! it: a process that remembers what it has written does so hardly ever, not once a task.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use scylla::client::session::Session;
use scylla::response::PagingState;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use task_events::{PartitionId, TaskId};

use super::connection::{Connection, prepare};
use super::error::ConnectError;
use super::life::{Life, expires_at};
use super::names::key;
use crate::lifetimes::DAY_MS;
use crate::{EndedList, StoreError};

/// Ms of a bucket of `tasks_by_time`.
const BUCKET_MS: i64 = 5 * 60_000;

/// Spans that a process remembers to have written; beyond, it forgets all of them.
const REMEMBERED: usize = 65_536;

/// Start of the span of a list in which a task stands, Unix ms.
pub(super) const fn span_of(list: &EndedList, task: TaskId) -> i64 {
    let width = match list {
        EndedList::All => BUCKET_MS,
        EndedList::Code(_) | EndedList::Review => DAY_MS,
    };
    task.unix_ms() - task.unix_ms().rem_euclid(width)
}

/// The column `list`.
fn name(list: &EndedList) -> String {
    match list {
        EndedList::All => "time".to_owned(),
        EndedList::Code(code) => format!("code/{}", key(code)),
        EndedList::Review => "review".to_owned(),
    }
}

/// A span of a list, and until when it is kept, Unix ms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    list: String,
    partition: PartitionId,
    start_ms: i64,
    expires_ms: i64,
}

impl Span {
    /// The one that an entry of this task needs, whose own end is this.
    pub fn of(list: &EndedList, task: TaskId, expires_ms: i64) -> Self {
        // To the end of the day after: entries of one day need one span.
        let expires_ms = (expires_ms.div_euclid(DAY_MS) + 2).saturating_mul(DAY_MS);
        Self { list: name(list), partition: task.partition(), start_ms: span_of(list, task), expires_ms }
    }
}

/// The table.
pub(super) struct Spans {
    put: PreparedStatement,
    newest_first: PreparedStatement,
    oldest_first: PreparedStatement,
    written: Mutex<BTreeSet<Span>>,
}

impl Spans {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let put = "INSERT INTO list_spans (list, partition, span, expires_at) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
        let read =
            "SELECT span FROM list_spans WHERE list = ? AND partition = ? AND span >= ? AND span <= ? ORDER BY span";
        let ordered = async |order: &str| {
            let mut statement = prepare(session, &format!("{read} {order}")).await?;
            statement.set_page_size(64);
            Ok::<_, ConnectError>(statement)
        };
        Ok(Self {
            put: prepare(session, put).await?,
            newest_first: ordered("DESC").await?,
            oldest_first: ordered("ASC").await?,
            written: Mutex::default(),
        })
    }

    /// Whether this process has yet to write a span.
    pub fn is_new(&self, span: &Span) -> bool {
        !self.written.lock().contains(span)
    }

    /// Writes a span. Its end is its timestamp, so that of several the longest life stays.
    pub async fn write(&self, to: &Connection, span: Span, now_ms: i64) -> Result<(), StoreError> {
        let Life::For(ttl) = Life::until(span.expires_ms, now_ms) else { return Ok(()) };
        let (partition, start) = (i32::from(span.partition.0), CqlTimestamp(span.start_ms));
        let timestamp = span.expires_ms.saturating_mul(1_000);
        to.write(&self.put, (&span.list, partition, start, expires_at(span.expires_ms), timestamp, ttl)).await?;
        let mut written = self.written.lock();
        if written.len() >= REMEMBERED {
            written.clear();
        }
        written.insert(span);
        Ok(())
    }

    /// Starts of the spans of a list between two tasks, page by page, in this order.
    pub async fn page(
        &self,
        from: &Connection,
        (list, partition): (&EndedList, PartitionId),
        (low, high): (TaskId, TaskId),
        oldest_first: bool,
        at: PagingState,
    ) -> Result<(Vec<i64>, Option<PagingState>), StoreError> {
        let statement = if oldest_first { &self.oldest_first } else { &self.newest_first };
        let between = [low, high].map(|task| CqlTimestamp(span_of(list, task)));
        let values = (name(list), i32::from(partition.0), between[0], between[1]);
        let (found, next): (Vec<(CqlTimestamp,)>, _) = from.page(statement, values, at).await?;
        Ok((found.into_iter().map(|(span,)| span.0).collect(), next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_day_share_a_span() {
        let task = |ms| TaskId::from_parts(ms, PartitionId(3), 7).expect("an id");
        let (first, last) = (task(5 * BUCKET_MS), task(6 * BUCKET_MS - 1));
        assert_eq!(span_of(&EndedList::All, first), span_of(&EndedList::All, last));
        assert_eq!(span_of(&EndedList::All, first), first.unix_ms());
        assert_ne!(span_of(&EndedList::All, first), span_of(&EndedList::All, task(6 * BUCKET_MS)));
        assert_eq!(span_of(&EndedList::Review, last) % DAY_MS, 0);
        let end = 20_000 * DAY_MS;
        let span = |expires_ms| Span::of(&EndedList::All, first, expires_ms);
        assert_eq!(span(end), span(end + DAY_MS - 1));
        assert!(span(end + DAY_MS - 1).expires_ms > end + DAY_MS, "it outlives its entries");
        assert_ne!(span(end), span(end + DAY_MS));
    }
}
