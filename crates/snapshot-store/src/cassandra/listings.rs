//! `tasks_by_trace` and `tasks_by_business_key`: under which names a task is found.

use scylla::client::session::Session;
use scylla::response::PagingState;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use task_events::TaskId;

use super::coded::{damaged, task};
use super::connection::{Connection, prepare};
use super::error::ConnectError;
use super::life::{Life, alive, expires_at};
use super::mutation::{KEY_BYTES, Mutation};
use super::names::key;
use crate::StoreError;
use crate::listing::Listing;

/// Both tables.
pub(super) struct Listings {
    put_trace: PreparedStatement,
    delete_trace: PreparedStatement,
    of_trace: PreparedStatement,
    put_key: PreparedStatement,
    delete_key: PreparedStatement,
    of_key: PreparedStatement,
}

impl Listings {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let (trace, business) = ("tasks_by_trace", "tasks_by_business_key");
        let put_trace =
            format!("INSERT INTO {trace} (trace_id, id, expires_at) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?");
        let delete_trace = format!("DELETE FROM {trace} USING TIMESTAMP ? WHERE trace_id = ? AND id = ?");
        let put_key = format!(
            "INSERT INTO {business} (creator, business_key, id, expires_at) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
        );
        let delete_key =
            format!("DELETE FROM {business} USING TIMESTAMP ? WHERE creator = ? AND business_key = ? AND id = ?");
        let of_key = format!("SELECT id, expires_at FROM {business} WHERE creator = ? AND business_key = ?");
        Ok(Self {
            put_trace: prepare(session, &put_trace).await?,
            delete_trace: prepare(session, &delete_trace).await?,
            of_trace: prepare(session, &format!("SELECT id, expires_at FROM {trace} WHERE trace_id = ?")).await?,
            put_key: prepare(session, &put_key).await?,
            delete_key: prepare(session, &delete_key).await?,
            of_key: prepare(session, &of_key).await?,
        })
    }

    /// A task under a name, or off it.
    pub fn put(&self, (listing, id): (&Listing, TaskId), row_clock: i64, (expires_ms, life): (i64, Life)) -> Mutation {
        let (id, until) = (id.raw(), expires_at(expires_ms));
        match (listing, life) {
            (Listing::Trace(trace), Life::For(ttl)) => {
                Mutation::new(&self.put_trace, (key(trace).into_owned(), id, until, row_clock, ttl), KEY_BYTES)
            }
            (Listing::Trace(trace), Life::Over) => {
                Mutation::new(&self.delete_trace, (row_clock, key(trace).into_owned(), id), KEY_BYTES)
            }
            (Listing::BusinessKey { creator, key: business }, Life::For(ttl)) => {
                let values = (key(creator).into_owned(), key(business).into_owned(), id, until, row_clock, ttl);
                Mutation::new(&self.put_key, values, KEY_BYTES)
            }
            (Listing::BusinessKey { creator, key: business }, Life::Over) => Mutation::new(
                &self.delete_key,
                (row_clock, key(creator).into_owned(), key(business).into_owned(), id),
                KEY_BYTES,
            ),
        }
    }

    /// Tasks under a name, the newest first.
    pub async fn read(
        &self,
        from: &Connection,
        listing: &Listing,
        now_ms: i64,
        limit: usize,
    ) -> Result<Vec<TaskId>, StoreError> {
        let mut found = Vec::new();
        let mut next = Some(PagingState::start());
        while let (Some(state), true) = (next.take(), found.len() < limit) {
            let page: (Vec<(i64, Option<CqlTimestamp>)>, _) = match listing {
                Listing::Trace(trace) => from.page(&self.of_trace, (key(trace),), state).await?,
                Listing::BusinessKey { creator, key: business } => {
                    from.page(&self.of_key, (key(creator), key(business)), state).await?
                }
            };
            next = page.1;
            for (id, _) in page.0.into_iter().filter(|(_, expires_at)| alive(*expires_at, now_ms)) {
                found.push(task(id).map_err(|why| damaged("a list of tasks", format_args!("{listing:?}"), why))?);
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}
