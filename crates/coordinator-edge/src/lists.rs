//! Lists of tasks: `GET /api/v1/tasks` and `GET /api/v1/review`, and the decisions about what is in
//! the latter.
//!
//! A list is merged from what owners have in memory (open tasks, and closed ones whose row the store
//! may not show yet) and the store's lists of ended tasks, in the order of ids, which never change:
//! that is why a task shows once, whatever happens to it between two pages.

mod cursor;
mod decide;
mod gone;
mod item;
mod merge;
mod operations;
mod partition;
mod query;
mod review;
mod tasks;

use coordinator::surface::Peers;
use event_log::EventLog;
use service_kit::Clock;
use snapshot_store::SnapshotStore;

use crate::Edge;
use crate::api::Routes;

pub(crate) use cursor::Cursors;
pub(crate) use operations::{page_cursor, page_limit};

/// Group of the document.
const TAG: &str = "tasks";

pub(crate) fn routes<L, S, C, P>() -> Routes<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Routes::new()
        .get(TAG, "/api/v1/tasks", Edge::<L, S, C, P>::tasks, operations::tasks())
        .get(TAG, "/api/v1/review", Edge::<L, S, C, P>::review, operations::review())
        .post(TAG, "/api/v1/review/{id}", Edge::<L, S, C, P>::decide, operations::decide())
}
