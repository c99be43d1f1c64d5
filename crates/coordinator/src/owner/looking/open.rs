//! Open tasks in the order of their ids, and how many each queue has: kept beside the fold, so that a
//! page of a list costs what it shows and not what there is.

use std::collections::{BTreeMap, BTreeSet};

use task_core::PartitionState;
use task_events::{TaskId, Text};

/// See the module.
#[derive(Debug, Default)]
pub(in super::super) struct OpenTasks {
    ids: BTreeSet<TaskId>,
    queues: BTreeMap<Text, u64>,
}

impl OpenTasks {
    /// Of a fold that was loaded.
    pub(in super::super) fn of(fold: &PartitionState) -> Self {
        let mut open = Self::default();
        for slot in fold.tasks.iter() {
            if let Some(row) = &slot.row {
                open.opened(slot.core.id, &row.created.queue);
            }
        }
        open
    }

    /// A task was created or replayed.
    pub(in super::super) fn opened(&mut self, id: TaskId, queue: &Text) {
        if self.ids.insert(id) {
            *self.queues.entry(queue.clone()).or_default() += 1;
        }
    }

    /// It ended.
    pub(in super::super) fn closed(&mut self, id: TaskId, queue: &Text) {
        if !self.ids.remove(&id) {
            return;
        }
        if let Some(open) = self.queues.get_mut(queue) {
            *open -= 1;
            if *open == 0 {
                self.queues.remove(queue);
            }
        }
    }

    /// Those with ids from one to another, both included, the lowest first.
    pub(super) fn between(&self, low: TaskId, high: TaskId) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        // A range that ends before it begins is empty, which the tree would not take.
        let (low, high) = (low, high.max(low));
        self.ids.range(low..=high).copied()
    }

    /// Queues with open tasks, and something made of each and its number of them.
    pub(super) fn queues<T>(&self, of: impl Fn(&Text, u64) -> T) -> BTreeMap<Text, T> {
        self.queues.iter().map(|(queue, open)| (queue.clone(), of(queue, *open))).collect()
    }
}

/// Two ascending lists as one, from either end.
pub(super) fn in_order<'a>(
    mut one: impl DoubleEndedIterator<Item = TaskId> + 'a,
    mut other: impl DoubleEndedIterator<Item = TaskId> + 'a,
    oldest_first: bool,
) -> Box<dyn Iterator<Item = TaskId> + 'a> {
    let (mut a, mut b) = (None, None);
    Box::new(std::iter::from_fn(move || {
        if oldest_first {
            a = a.or_else(|| one.next());
            b = b.or_else(|| other.next());
        } else {
            a = a.or_else(|| one.next_back());
            b = b.or_else(|| other.next_back());
        }
        match (a, b) {
            (Some(x), Some(y)) if (x < y) == oldest_first => a.take(),
            (_, Some(_)) => b.take(),
            (_, None) => a.take(),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(raw: &[i64]) -> Vec<TaskId> {
        raw.iter().map(|raw| TaskId::from_raw(*raw).expect("an id")).collect()
    }

    #[test]
    fn two_lists_are_one_from_either_end() {
        for (one, other) in [(ids(&[1, 4, 5, 9]), ids(&[2, 3, 7])), (ids(&[]), ids(&[1, 2])), (ids(&[3]), ids(&[]))] {
            let mut expected: Vec<_> = one.iter().chain(&other).copied().collect();
            expected.sort_unstable();
            let merged = |oldest_first| in_order(one.iter().copied(), other.iter().copied(), oldest_first);
            assert_eq!(merged(true).collect::<Vec<_>>(), expected);
            expected.reverse();
            assert_eq!(merged(false).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn queues_are_counted_and_forgotten() {
        let (mut open, all) = (OpenTasks::default(), ids(&[3, 1, 2]));
        for id in &all {
            open.opened(*id, &"q".into());
            open.opened(*id, &"q".into());
        }
        assert_eq!(open.queues(|_, open| open).into_values().collect::<Vec<_>>(), [3]);
        let between = |low: usize, high: usize, open: &OpenTasks| {
            open.between(all[low], all[high]).map(TaskId::raw).collect::<Vec<_>>()
        };
        assert_eq!(between(1, 2, &open), [1, 2]);
        all.iter().for_each(|id| open.closed(*id, &"q".into()));
        open.closed(all[0], &"q".into());
        assert!(open.queues(|_, open| open).is_empty() && between(1, 0, &open).is_empty());
    }
}
