//! Lists of ended tasks.

use std::collections::BTreeMap;

use task_events::{PartitionId, TaskId, Text};

use super::Kept;
use crate::ended::{Entry, entries};
use crate::{EndedList, EndedPage, EndedSpan, SnapshotRow, TaskSummary};

/// The three lists, each by partition and id.
#[derive(Default)]
pub(super) struct Ended {
    by_time: BTreeMap<(PartitionId, TaskId), Kept<TaskSummary>>,
    by_code: BTreeMap<(Text, PartitionId, TaskId), Kept<()>>,
    review: BTreeMap<(PartitionId, TaskId), Kept<bool>>,
}

impl Ended {
    /// What a snapshot row brings with it.
    pub fn write(&mut self, snapshot: &SnapshotRow, at_us: i64) {
        let (id, partition) = (snapshot.core.id, snapshot.core.id.partition());
        for (entry, expires_ms) in entries(snapshot, at_us) {
            match entry {
                Entry::ByTime(summary) => {
                    newest(&mut self.by_time, (partition, id), Kept { at_us, expires_ms, row: *summary });
                }
                Entry::Code(code) => {
                    newest(&mut self.by_code, (code, partition, id), Kept { at_us, expires_ms, row: () });
                }
                Entry::Review(waits) => {
                    newest(&mut self.review, (partition, id), Kept { at_us, expires_ms, row: waits });
                }
            }
        }
    }

    /// The last end of a task.
    pub fn summary(&self, task: TaskId, now_ms: i64) -> Option<TaskSummary> {
        self.by_time.get(&(task.partition(), task))?.alive(now_ms)
    }

    /// What lies in a span.
    pub fn page(&self, span: &EndedSpan, now_ms: i64, limit: usize) -> EndedPage {
        let (low, high, partition) = (span.low, span.high, span.partition);
        if low > high {
            return EndedPage::default();
        }
        let summary = |id: TaskId| self.summary(id, now_ms);
        match &span.list {
            EndedList::All => {
                let all = self.by_time.range((partition, low)..=(partition, high));
                read(all.map(|((_, id), kept)| (*id, kept)), span.oldest_first, limit, |_, kept| kept.alive(now_ms))
            }
            EndedList::Code(code) => {
                let all = self.by_code.range((code.clone(), partition, low)..=(code.clone(), partition, high));
                read(all.map(|((_, _, id), kept)| (*id, kept)), span.oldest_first, limit, |id, kept| {
                    kept.alive(now_ms)?;
                    summary(id).filter(|ended| ended.error_code.as_ref() == Some(code))
                })
            }
            EndedList::Review => {
                let all = self.review.range((partition, low)..=(partition, high));
                read(all.map(|((_, id), kept)| (*id, kept)), span.oldest_first, limit, |id, kept| {
                    kept.alive(now_ms).filter(|waits| *waits)?;
                    summary(id)
                })
            }
        }
    }
}

fn read<T>(
    all: impl DoubleEndedIterator<Item = (TaskId, T)>,
    oldest_first: bool,
    limit: usize,
    shown: impl Fn(TaskId, T) -> Option<TaskSummary>,
) -> EndedPage {
    fn look<T>(
        mut all: impl Iterator<Item = (TaskId, T)>,
        limit: usize,
        shown: impl Fn(TaskId, T) -> Option<TaskSummary>,
    ) -> EndedPage {
        let mut page = EndedPage::default();
        let mut last = None;
        for (id, entry) in all.by_ref().take(limit.max(1)) {
            page.looked_at += 1;
            last = Some(id);
            page.tasks.extend(shown(id, entry));
        }
        page.looked_to = last.filter(|_| all.next().is_some());
        page
    }
    if oldest_first { look(all, limit, shown) } else { look(all.rev(), limit, shown) }
}

// Last write wins by row clock, as in every table.
fn newest<K: Ord, V>(table: &mut BTreeMap<K, Kept<V>>, key: K, row: Kept<V>) {
    match table.get(&key) {
        Some(there) if there.at_us > row.at_us => {}
        Some(_) | None => {
            table.insert(key, row);
        }
    }
}
