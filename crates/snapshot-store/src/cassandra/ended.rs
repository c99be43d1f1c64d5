//! Lists of ended tasks: `tasks_by_time`, `failures_by_code`, `review_queue`.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, TryStreamExt as _};
use scylla::client::session::Session;
use scylla::response::PagingState;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use task_events::{TaskId, TaskState, Text};

use super::AT_ONCE;
use super::coded::{damaged, from_rest, rest, symbol, task, there};
use super::connection::{Connection, prepare};
use super::error::ConnectError;
use super::life::{Life, alive, expires_at};
use super::mutation::{KEY_BYTES, Mutation};
use super::names::key;
use super::spans::{Spans, span_of};
use crate::ended::Entry;
use crate::{EndedList, EndedPage, EndedSpan, StoreError, TaskSummary};

/// Parts of a list that are read at once.
const AHEAD: usize = 4;

/// The three tables.
pub(super) struct Ended {
    put_time: PreparedStatement,
    delete_time: PreparedStatement,
    get_time: PreparedStatement,
    put_code: PreparedStatement,
    delete_code: PreparedStatement,
    put_review: PreparedStatement,
    delete_review: PreparedStatement,
    /// Newest and oldest first, of each list.
    time: [PreparedStatement; 2],
    code: [PreparedStatement; 2],
    review: [PreparedStatement; 2],
}

const SUMMARY: &str = "final_status, created_at, completed_at, task_type, creator, worker_id, error_code, error_summary, \
                       expires_at, rest";

type Summary = (
    Option<String>,
    Option<CqlTimestamp>,
    Option<CqlTimestamp>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<CqlTimestamp>,
    Option<Bytes>,
);

/// A row of `tasks_by_time` with its id in front.
type Listed = (
    i64,
    Option<String>,
    Option<CqlTimestamp>,
    Option<CqlTimestamp>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<CqlTimestamp>,
    Option<Bytes>,
);

/// An entry of a list as it is read.
struct Found {
    id: TaskId,
    expires_at: Option<CqlTimestamp>,
    shows: Shows,
}

/// What an entry shows.
enum Shows {
    /// Itself.
    This(Box<TaskSummary>),
    /// The task's `tasks_by_time` row.
    ByTime,
    /// Nothing: it is a mark.
    Nothing,
}

impl Found {
    fn new(id: i64, expires_at: Option<CqlTimestamp>, shows: Shows) -> Result<Self, StoreError> {
        let id = task(id).map_err(|why| damaged("a list of ended tasks", id, why))?;
        Ok(Self { id, expires_at, shows })
    }

    fn of_time(row: Listed) -> Result<Self, StoreError> {
        let (raw, a, b, c, d, e, f, g, h, expires_at, rest) = row;
        let id = task(raw).map_err(|why| damaged("tasks_by_time", raw, why))?;
        let summary = filled((a, b, c, d, e, f, g, h, expires_at, rest), id);
        let summary = summary.map_err(|why| damaged("tasks_by_time", id, why))?;
        Ok(Self { id, expires_at, shows: Shows::This(Box::new(summary)) })
    }
}

impl Ended {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let (time, codes, reviews) =
            ("partition = ? AND bucket = ?", "day = ? AND code = ? AND partition = ?", "partition = ? AND day = ?");
        let put_time = format!(
            "INSERT INTO tasks_by_time (partition, bucket, id, {SUMMARY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
             USING TIMESTAMP ? AND TTL ?"
        );
        let put_code = "INSERT INTO failures_by_code (day, code, partition, id, expires_at) VALUES (?, ?, ?, ?, ?) \
                        USING TIMESTAMP ? AND TTL ?";
        let put_review = "INSERT INTO review_queue (partition, day, id, waits, expires_at) VALUES (?, ?, ?, ?, ?) \
                          USING TIMESTAMP ? AND TTL ?";
        let delete = |table: &str, of: &str| format!("DELETE FROM {table} USING TIMESTAMP ? WHERE {of} AND id = ?");
        let both = async |select: String| {
            let ordered = |order: &str| format!("{select} AND id >= ? AND id <= ? ORDER BY id {order} LIMIT ?");
            Ok::<_, ConnectError>([prepare(session, &ordered("DESC")).await?, prepare(session, &ordered("ASC")).await?])
        };
        Ok(Self {
            put_time: prepare(session, &put_time).await?,
            delete_time: prepare(session, &delete("tasks_by_time", time)).await?,
            get_time: prepare(session, &format!("SELECT {SUMMARY} FROM tasks_by_time WHERE {time} AND id = ?")).await?,
            put_code: prepare(session, put_code).await?,
            delete_code: prepare(session, &delete("failures_by_code", codes)).await?,
            put_review: prepare(session, put_review).await?,
            delete_review: prepare(session, &delete("review_queue", reviews)).await?,
            time: both(format!("SELECT id, {SUMMARY} FROM tasks_by_time WHERE {time}")).await?,
            code: both(format!("SELECT id, expires_at FROM failures_by_code WHERE {codes}")).await?,
            review: both(format!("SELECT id, expires_at, waits FROM review_queue WHERE {reviews}")).await?,
        })
    }

    /// An entry of a task, or that there is none any more.
    pub fn put(
        &self,
        (entry, task): (&Entry, TaskId),
        row_clock: i64,
        (expires_ms, life): (i64, Life),
    ) -> Result<Mutation, StoreError> {
        let (partition, until) = (i32::from(task.partition().0), expires_at(expires_ms));
        let day = CqlTimestamp(span_of(&EndedList::Review, task));
        Ok(match (entry, life) {
            (Entry::ByTime(summary), Life::For(ttl)) => self.put_summary(summary, row_clock, (expires_ms, ttl))?,
            (Entry::ByTime(_), Life::Over) => {
                let bucket = CqlTimestamp(span_of(&EndedList::All, task));
                Mutation::new(&self.delete_time, (row_clock, partition, bucket, task.raw()), KEY_BYTES)
            }
            (Entry::Code(code), Life::For(ttl)) => {
                let values = (day, key(code).into_owned(), partition, task.raw(), until, row_clock, ttl);
                Mutation::new(&self.put_code, values, KEY_BYTES)
            }
            (Entry::Code(code), Life::Over) => Mutation::new(
                &self.delete_code,
                (row_clock, day, key(code).into_owned(), partition, task.raw()),
                KEY_BYTES,
            ),
            (Entry::Review(waits), Life::For(ttl)) => {
                let values = (partition, day, task.raw(), *waits, until, row_clock, ttl);
                Mutation::new(&self.put_review, values, KEY_BYTES)
            }
            (Entry::Review(_), Life::Over) => {
                Mutation::new(&self.delete_review, (row_clock, partition, day, task.raw()), KEY_BYTES)
            }
        })
    }

    fn put_summary(
        &self,
        summary: &TaskSummary,
        row_clock: i64,
        (expires_ms, ttl): (i64, i32),
    ) -> Result<Mutation, StoreError> {
        let text = |text: &Text| (!text.is_empty()).then(|| text.to_string());
        let some = |text: &Option<Text>| text.as_ref().map(ToString::to_string);
        let others = rest(&emptied(summary))?;
        let error_bytes = summary.error_summary.as_ref().map_or(0, |text| text.len());
        let bytes = KEY_BYTES + summary.task_type.len() + summary.creator.len() + error_bytes + others.len();
        let place = (i32::from(summary.id.partition().0), CqlTimestamp(span_of(&EndedList::All, summary.id)));
        let values = (
            place.0,
            place.1,
            summary.id.raw(),
            summary.state.as_str(),
            CqlTimestamp(summary.created_at),
            summary.completed_at.map(CqlTimestamp),
            text(&summary.task_type),
            text(&summary.creator),
            text(&summary.worker_id),
            some(&summary.error_code),
            some(&summary.error_summary),
            expires_at(expires_ms),
            others,
            row_clock,
            ttl,
        );
        Ok(Mutation::new(&self.put_time, values, bytes))
    }

    /// The `tasks_by_time` row of a task.
    pub async fn summary(&self, from: &Connection, id: TaskId, now_ms: i64) -> Result<Option<TaskSummary>, StoreError> {
        let place = (i32::from(id.partition().0), CqlTimestamp(span_of(&EndedList::All, id)), id.raw());
        let found: Option<Summary> = from.one(&self.get_time, place).await?;
        let Some(found) = found.filter(|found| alive(found.8, now_ms)) else { return Ok(None) };
        filled(found, id).map(Some).map_err(|why| damaged("tasks_by_time", id, why))
    }

    /// What lies in a span of a list.
    pub async fn page(
        &self,
        from: &Connection,
        spans: &Spans,
        span: &EndedSpan,
        now_ms: i64,
        limit: usize,
    ) -> Result<EndedPage, StoreError> {
        let limit = limit.max(1);
        let mut found = self.entries(from, spans, span, limit.saturating_add(1)).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let looked_at = found.len();
        let looked_to = found.last().map(|entry| entry.id).filter(|_| more);
        let seen = found.into_iter().filter(|entry| alive(entry.expires_at, now_ms));
        let shown = seen.map(|entry| async move {
            match entry.shows {
                Shows::This(summary) => Ok(Some(*summary)),
                Shows::ByTime => self.summary(from, entry.id, now_ms).await,
                Shows::Nothing => Ok(None),
            }
        });
        let shown: Vec<Option<TaskSummary>> = stream::iter(shown).buffered(AT_ONCE).try_collect().await?;
        let counts = |ended: &TaskSummary| match &span.list {
            EndedList::All | EndedList::Review => true,
            // A later end has another code, perhaps.
            EndedList::Code(code) => ended.error_code.as_ref() == Some(code),
        };
        Ok(EndedPage { tasks: shown.into_iter().flatten().filter(counts).collect(), looked_at, looked_to })
    }

    // The first entries in the order of the span, at most `limit`.
    async fn entries(
        &self,
        from: &Connection,
        spans: &Spans,
        span: &EndedSpan,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let EndedSpan { list, partition, low, high, oldest_first } = span;
        let mut found = Vec::new();
        let mut next = (low <= high).then(PagingState::start);
        while let (Some(at), true) = (next.take(), found.len() < limit) {
            let (starts, after) = spans.page(from, (list, *partition), (*low, *high), *oldest_first, at).await?;
            next = after;
            let read = starts.into_iter().map(|start| self.part(from, span, start, limit));
            let mut parts = stream::iter(read).buffered(AHEAD);
            while found.len() < limit
                && let Some(part) = parts.next().await
            {
                found.extend(part?);
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    // Entries of one bucket or day.
    async fn part(
        &self,
        from: &Connection,
        span: &EndedSpan,
        start: i64,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let EndedSpan { list, partition, low, high, oldest_first } = span;
        let (partition, start) = (i32::from(partition.0), CqlTimestamp(start));
        let (low, high, limit) = (low.raw(), high.raw(), i32::try_from(limit).unwrap_or(i32::MAX));
        let order = usize::from(*oldest_first);
        match list {
            EndedList::All => {
                let values = (partition, start, low, high, limit);
                let found: Vec<Listed> = from.all(&self.time[order], &values).await?;
                found.into_iter().map(Found::of_time).collect()
            }
            EndedList::Code(code) => {
                let values = (start, key(code), partition, low, high, limit);
                let found: Vec<(i64, Option<CqlTimestamp>)> = from.all(&self.code[order], &values).await?;
                found.into_iter().map(|(id, expires_at)| Found::new(id, expires_at, Shows::ByTime)).collect()
            }
            EndedList::Review => {
                type Row = (i64, Option<CqlTimestamp>, Option<bool>);
                let values = (partition, start, low, high, limit);
                let found: Vec<Row> = from.all(&self.review[order], &values).await?;
                let shows = |waits| if waits == Some(true) { Shows::ByTime } else { Shows::Nothing };
                found.into_iter().map(|(id, expires_at, waits)| Found::new(id, expires_at, shows(waits))).collect()
            }
        }
    }
}

// What stands in columns is taken out.
fn emptied(summary: &TaskSummary) -> TaskSummary {
    TaskSummary {
        state: TaskState::Created,
        created_at: 0,
        completed_at: None,
        task_type: Text::default(),
        creator: Text::default(),
        worker_id: Text::default(),
        error_code: None,
        error_summary: None,
        ..summary.clone()
    }
}

fn filled(found: Summary, id: TaskId) -> Result<TaskSummary, String> {
    let (status, created_at, completed_at, task_type, creator, worker, code, error, _, others) = found;
    let text = |text: Option<String>| text.map(Text::from).unwrap_or_default();
    let summary = TaskSummary {
        state: symbol("final_status", TaskState::ALL, TaskState::as_str, &there("final_status", status)?)?,
        created_at: there("created_at", created_at)?.0,
        completed_at: completed_at.map(|at| at.0),
        task_type: text(task_type),
        creator: text(creator),
        worker_id: text(worker),
        error_code: code.map(Text::from),
        error_summary: error.map(Text::from),
        ..from_rest(others.as_deref())?
    };
    if summary.id == id { Ok(summary) } else { Err(format!("it is {}'s", summary.id)) }
}
