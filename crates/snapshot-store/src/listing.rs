//! Under which names a task is found (design.md §7): one rule for all adapters, and pure.
//!
//! Both names are of TaskCreated, which no later event changes, so an entry is never moved: each
//! write of the row is a write of its entries.

use task_events::Text;

use crate::SnapshotRow;

/// A list of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Listing {
    /// `tasks_by_trace`.
    Trace(Text),
    /// `tasks_by_business_key`.
    BusinessKey {
        /// Whose key it is: two creators may use the same one.
        creator: Text,
        key: Text,
    },
}

impl Listing {
    /// The lists in which the task of a row stands.
    pub fn of(snapshot: &SnapshotRow) -> impl Iterator<Item = Self> {
        let created = &snapshot.row.created;
        let trace = created.trace_given.then(|| Self::Trace(snapshot.row.trace_id.clone()));
        let key = created.business_key.clone();
        let business_key = key.map(|key| Self::BusinessKey { creator: created.creator.clone(), key });
        trace.into_iter().chain(business_key)
    }
}
