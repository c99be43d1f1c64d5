//! One call of `write`: a row and what it is found by.
//!
//! No logged batch ties them together: it would cost every node of the cluster three writes for one, and
//! nobody needs it. All of a call has the timestamps of its rows, so repeating it changes nothing, and it
//! is acknowledged when all of it is; whoever owes the rows repeats it until then, and so does a
//! successor. Meanwhile what can be found exists: first the rows (and the spans of the lists, which show
//! nothing by themselves), then the lists of tasks, last those that are read through another list.
//!
//! All of it is behind the log anyway, and so it waits in a queue of its own: only so many of these writes
//! take places of the gate at a time, and payloads and reads, for which a task waits, find others. What waits
//! here has time to change again, which is one write less.

use std::collections::BTreeSet;

use futures::future::{try_join, try_join_all};

use super::Inner;
use super::life::Life;
use super::mutation::Mutation;
use super::snapshots::Columns;
use super::spans::Span;
use crate::ended::{Entry, entries};
use crate::lifetimes::{expires_ms, listed_until_ms};
use crate::listing::Listing;
use crate::{EndedList, RowKind, RowWrite, SnapshotRow, StoreError};

/// The writes of a call, by when they may be sent.
#[derive(Default)]
struct Plan {
    spans: BTreeSet<Span>,
    rows: Vec<Mutation>,
    lists: Vec<Mutation>,
    behind: Vec<Mutation>,
}

/// Writes rows; `Ok` = all acknowledged.
pub(super) async fn write(store: &Inner, rows: Vec<RowWrite>) -> Result<(), StoreError> {
    let now_ms = store.now_ms();
    let mut plan = Plan::default();
    for write in rows {
        plan.add(store, write, now_ms)?;
    }
    let Plan { spans, rows, lists, behind } = plan;
    let spans = spans.into_iter().filter(|span| store.spans.is_new(span));
    let spans = try_join_all(spans.map(|span| store.spans.write(&store.nodes, span, now_ms)));
    let in_turn = async |mutations| store.nodes.write_all(mutations, Some(&store.rows_at_once)).await;
    try_join(spans, in_turn(rows)).await?;
    in_turn(lists).await?;
    in_turn(behind).await
}

impl Plan {
    fn add(&mut self, store: &Inner, write: RowWrite, now_ms: i64) -> Result<(), StoreError> {
        let at = write.timestamp_us;
        let expires_ms = expires_ms(&write.row, at);
        let life = Life::until(expires_ms, now_ms);
        match write.row {
            RowKind::Snapshot(snapshot) => {
                self.rows.push(store.snapshots.put(Columns::of(&snapshot)?, at, life));
                self.add_lists(store, &snapshot, at, now_ms)?;
            }
            RowKind::Key(row) => self.rows.push(store.keys.put(&row, at, life)),
            RowKind::HistoryOverflow { task_id, entry } => {
                self.rows.push(store.beside.put((task_id, entry), at, (expires_ms, life)));
            }
        }
        Ok(())
    }

    fn add_lists(&mut self, store: &Inner, snapshot: &SnapshotRow, at: i64, now_ms: i64) -> Result<(), StoreError> {
        let id = snapshot.core.id;
        let until = listed_until_ms(snapshot);
        for listing in Listing::of(snapshot) {
            let life = Life::until(until, now_ms);
            self.lists.push(store.listings.put((&listing, id), at, (until, life)));
        }
        for (entry, until) in entries(snapshot, at) {
            let life = Life::until(until, now_ms);
            let put = store.ended.put((&entry, id), at, (until, life))?;
            let (list, later) = match entry {
                Entry::ByTime(_) => (EndedList::All, &mut self.lists),
                Entry::Code(code) => (EndedList::Code(code), &mut self.behind),
                Entry::Review(_) => (EndedList::Review, &mut self.behind),
            };
            if life != Life::Over {
                self.spans.insert(Span::of(&list, id, until));
            }
            later.push(put);
        }
        Ok(())
    }
}
