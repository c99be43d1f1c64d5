//! Open tasks in the order of their ids, what lists ask for of them, and how many each queue has: kept
//! beside the fold, so that a page of a list costs what it shows and not what there is.

use std::collections::{BTreeMap, BTreeSet};

use task_core::PartitionState;
use task_events::{TaskCreated, TaskId, Text};

use super::TaskFilter;
use super::facts::{Changing, Facts};

/// See the module.
#[derive(Debug, Default)]
pub(in super::super) struct OpenTasks {
    ids: BTreeSet<TaskId>,
    queues: BTreeMap<Text, u64>,
    facts: Facts,
}

impl OpenTasks {
    /// Of a fold that was loaded.
    pub(in super::super) fn of(fold: &PartitionState) -> Self {
        let tasks = || fold.tasks.iter().filter_map(|slot| Some((&slot.core, slot.row.as_deref()?)));
        let mut queues = BTreeMap::new();
        for (_, row) in tasks() {
            *queues.entry(row.created.queue.clone()).or_default() += 1;
        }
        let facts = tasks().map(|(core, row)| (core.id, &*row.created, Changing::of(core.state, row)));
        Self { ids: tasks().map(|(core, _)| core.id).collect(), queues, facts: Facts::of(facts) }
    }

    /// A task was created or replayed.
    pub(in super::super) fn opened(&mut self, id: TaskId, created: &TaskCreated, now: Changing) {
        if self.ids.insert(id) {
            *self.queues.entry(created.queue.clone()).or_default() += 1;
            self.facts.opened(id, created, now);
        }
    }

    /// It is still open, and something of it changed.
    pub(in super::super) fn changed(&mut self, id: TaskId, before: Changing, now: Changing) {
        self.facts.changed(id, before, now);
    }

    /// It ended; what changes of it was so before.
    pub(in super::super) fn closed(&mut self, id: TaskId, created: &TaskCreated, before: Changing) {
        if !self.ids.remove(&id) {
            return;
        }
        self.facts.closed(id, created, before);
        if let Some(open) = self.queues.get_mut(&created.queue) {
            *open -= 1;
            if *open == 0 {
                self.queues.remove(&created.queue);
            }
        }
    }

    /// Those with ids from one to another, both included, that may match, in order; none that does not
    /// appear does.
    pub(super) fn matching<'a>(
        &'a self,
        filter: &TaskFilter,
        low: TaskId,
        high: TaskId,
        oldest_first: bool,
    ) -> Box<dyn Iterator<Item = TaskId> + 'a> {
        match self.facts.matching(filter, low, high, oldest_first) {
            Some(matching) => Box::new(matching),
            None if oldest_first => Box::new(self.between(low, high)),
            None => Box::new(self.between(low, high).rev()),
        }
    }

    // The lowest first.
    fn between(&self, low: TaskId, high: TaskId) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        // A range that ends before it begins is empty, which the tree would not take.
        let (low, high) = (low, high.max(low));
        self.ids.range(low..=high).copied()
    }

    /// Queues with open tasks, and something made of each and its number of them.
    pub(super) fn queues<T>(&self, of: impl Fn(&Text, u64) -> T) -> BTreeMap<Text, T> {
        self.queues.iter().map(|(queue, open)| (queue.clone(), of(queue, *open))).collect()
    }
}

/// Two lists of one order as one.
pub(super) fn in_order(
    mut one: impl Iterator<Item = TaskId>,
    mut other: impl Iterator<Item = TaskId>,
    oldest_first: bool,
) -> impl Iterator<Item = TaskId> {
    let (mut a, mut b) = (None, None);
    std::iter::from_fn(move || {
        a = a.or_else(|| one.next());
        b = b.or_else(|| other.next());
        match (a, b) {
            (Some(x), Some(y)) if (x < y) == oldest_first => a.take(),
            (_, Some(_)) => b.take(),
            (_, None) => a.take(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts;
    use super::*;

    fn ids(raw: &[i64]) -> Vec<TaskId> {
        raw.iter().map(|raw| TaskId::from_raw(*raw).expect("an id")).collect()
    }

    #[test]
    fn two_lists_are_one_in_either_order() {
        for (one, other) in [(ids(&[1, 4, 5, 9]), ids(&[2, 3, 7])), (ids(&[]), ids(&[1, 2])), (ids(&[3]), ids(&[]))] {
            let mut expected: Vec<_> = one.iter().chain(&other).copied().collect();
            expected.sort_unstable();
            let oldest = in_order(one.iter().copied(), other.iter().copied(), true);
            assert_eq!(oldest.collect::<Vec<_>>(), expected);
            expected.reverse();
            let newest = in_order(one.iter().rev().copied(), other.iter().rev().copied(), false);
            assert_eq!(newest.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn queues_are_counted_and_forgotten() {
        let (mut open, all) = (OpenTasks::default(), ids(&[3, 1, 2]));
        let created = facts::tests::created("q", "t", "c", &[]);
        for id in &all {
            open.opened(*id, &created, Changing::default());
            open.opened(*id, &created, Changing::default());
        }
        assert_eq!(open.queues(|_, open| open).into_values().collect::<Vec<_>>(), [3]);
        let between = |low: usize, high: usize, open: &OpenTasks| {
            open.between(all[low], all[high]).map(TaskId::raw).collect::<Vec<_>>()
        };
        assert_eq!(between(1, 2, &open), [1, 2]);
        all.iter().for_each(|id| open.closed(*id, &created, Changing::default()));
        open.closed(all[0], &created, Changing::default());
        assert!(open.queues(|_, open| open).is_empty() && between(1, 0, &open).is_empty());
    }
}
