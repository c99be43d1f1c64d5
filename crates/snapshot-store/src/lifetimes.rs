//! How long things live (design.md §7, §4.10): one place for all adapters, and pure. Time comes in.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{CheckpointName, RowKind, SnapshotRow};

/// The store's clock: Unix milliseconds. Given from outside; it may step.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A day in ms.
pub const DAY_MS: i64 = 24 * 3_600_000;

/// A snapshot row goes this long after the terminal event (`archive.snapshot.ttl-hours` 720); while
/// its task is open it stays.
pub const SNAPSHOT_TTL_MS: i64 = 30 * DAY_MS;

/// What a closed task is found by goes this long after the terminal event: the archive's history is
/// longer than the rows. While the task is open it stays.
pub const LISTING_TTL_MS: i64 = 180 * DAY_MS;

/// A key goes this long after the creation of its first task.
pub const KEY_TTL_MS: i64 = DAY_MS;

/// A payload goes this long after it was last written: a replay writes it again.
pub const PAYLOAD_TTL_MS: i64 = 60 * DAY_MS;

/// A history entry beside the row goes this long after its record. It is written without reading,
/// so it cannot know when its task will close: at most 30 days later (no task lives longer), and
/// then it must not go before the row does.
pub const OVERFLOW_TTL_MS: i64 = 30 * DAY_MS + SNAPSHOT_TTL_MS;

/// Never expires.
pub(crate) const NEVER: i64 = i64::MAX;

/// When a row written with this timestamp expires, Unix ms. A function of what is written alone, so
/// that writing it again moves nothing.
pub(crate) fn expires_ms(row: &RowKind, timestamp_us: i64) -> i64 {
    match row {
        RowKind::Snapshot(snapshot) => after_the_end(snapshot, SNAPSHOT_TTL_MS),
        RowKind::Key(key) => key.created_at.saturating_add(KEY_TTL_MS),
        RowKind::HistoryOverflow { .. } => (timestamp_us / 1_000).saturating_add(OVERFLOW_TTL_MS),
    }
}

/// When what the task of a row is found by expires, Unix ms; a function of the row alone as well.
pub(crate) fn listed_until_ms(snapshot: &SnapshotRow) -> i64 {
    after_the_end(snapshot, LISTING_TTL_MS)
}

/// When what lives this long after the end of a task's run expires, Unix ms; never while it is open.
pub(crate) fn after_the_end(snapshot: &SnapshotRow, ttl_ms: i64) -> i64 {
    if !snapshot.core.state.is_terminal() {
        return NEVER;
    }
    // A review changes the row's broker time, never the end of the run.
    snapshot.row.end_time.unwrap_or(snapshot.row.changed_broker_ms).saturating_add(ttl_ms)
}

/// Which of a partition's checkpoints are to go: all but the two highest and the highest of each
/// day (UTC) of publishing. Each comes with the time of its publishing, Unix ms.
pub(crate) fn surplus(mut published: Vec<(CheckpointName, i64)>) -> Vec<CheckpointName> {
    published.sort_by(|(a, _), (b, _)| Reverse(a).cmp(&Reverse(b)));
    let mut days = BTreeSet::new();
    let mut surplus = Vec::new();
    for (rank, (name, at)) in published.into_iter().enumerate() {
        if !days.insert(at.div_euclid(DAY_MS)) && rank >= 2 {
            surplus.push(name);
        }
    }
    surplus
}
