//! The open tasks of a partition: a slab of shared pages with an index beside it.
//!
//! A checkpoint needs the state *at* an offset while the fold goes on. Cloning a map of 100,000
//! tasks would stop the owner for longer than a lease renewal may take; here a freeze copies one
//! pointer per 64 tasks, and the fold copies a page only when it next touches it.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use task_events::TaskId;

use crate::{CoreState, Row};

const PAGE: usize = 64;

/// One open task: what is judged and hashed, and what only stands beside it.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Judged and hashed.
    pub core: CoreState,
    /// Row fields, for the readers that keep them (owner, engine, replayer).
    pub row: Option<Arc<Row>>,
}

type Page = Arc<Vec<Option<Slot>>>;

/// The open tasks, with their state hash kept incrementally.
#[derive(Clone, Debug, Default)]
pub struct TaskTable {
    index: HashMap<TaskId, u32, FixedState>,
    pages: Vec<Page>,
    free: Vec<u32>,
    sum: u128,
}

impl TaskTable {
    /// Number of open tasks.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no task is open.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Sum mod 2^128 of the tasks' hashes: independent of order and of history.
    pub const fn hash_sum(&self) -> u128 {
        self.sum
    }

    /// An open task.
    #[inline]
    pub fn get(&self, id: TaskId) -> Option<&Slot> {
        let at = *self.index.get(&id)? as usize;
        self.pages[at / PAGE][at % PAGE].as_ref()
    }

    /// Inserts or replaces a task.
    pub fn insert(&mut self, slot: Slot) {
        self.sum = self.sum.wrapping_add(slot.core.hash());
        if let Some(&at) = self.index.get(&slot.core.id) {
            if let Some(old) = self.entry(at).replace(slot) {
                self.sum = self.sum.wrapping_sub(old.core.hash());
            }
            return;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            let at = (self.pages.len() * PAGE) as u32;
            self.pages.push(Arc::new(vec![None; PAGE]));
            // Lowest first, so that pages fill up one after the other.
            self.free.extend((at + 1..at + PAGE as u32).rev());
            at
        });
        self.index.insert(slot.core.id, at);
        *self.entry(at) = Some(slot);
    }

    /// Changes a task in place and keeps the hash. `None` when it is not open.
    #[inline]
    pub fn update<R>(&mut self, id: TaskId, change: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let at = *self.index.get(&id)?;
        let slot = Arc::make_mut(&mut self.pages[at as usize / PAGE])[at as usize % PAGE].as_mut()?;
        let before = slot.core;
        let out = change(slot);
        if slot.core != before {
            self.sum = self.sum.wrapping_sub(before.hash()).wrapping_add(slot.core.hash());
        }
        Some(out)
    }

    /// Forgets a task.
    pub fn remove(&mut self, id: TaskId) -> Option<Slot> {
        let at = self.index.remove(&id)?;
        let slot = self.entry(at).take()?;
        self.free.push(at);
        self.sum = self.sum.wrapping_sub(slot.core.hash());
        Some(slot)
    }

    /// Every open task in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> + Clone {
        self.pages.iter().flat_map(|p| p.iter()).filter_map(Option::as_ref)
    }

    /// The table as it is now, shared page by page; what the fold changes later is not seen.
    pub fn freeze(&self) -> Frozen {
        Frozen { pages: self.pages.clone(), len: self.index.len() }
    }

    fn entry(&mut self, at: u32) -> &mut Option<Slot> {
        &mut Arc::make_mut(&mut self.pages[at as usize / PAGE])[at as usize % PAGE]
    }
}

/// A frozen view for a checkpoint.
#[derive(Clone, Debug)]
pub struct Frozen {
    pages: Vec<Page>,
    len: usize,
}

impl Frozen {
    /// The tasks in ascending id order, the order of checkpoint chunks.
    pub fn sorted(&self) -> Vec<&Slot> {
        let mut all = Vec::with_capacity(self.len);
        all.extend(self.pages.iter().flat_map(|p| p.iter()).filter_map(Option::as_ref));
        all.sort_unstable_by_key(|s| s.core.id);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(raw: i64) -> Slot {
        Slot { core: CoreState::created(TaskId::from_raw(raw).unwrap(), 3), row: None }
    }

    #[test]
    fn the_hash_forgets_the_way_it_came_about() {
        let mut a = TaskTable::default();
        let mut b = TaskTable::default();
        for raw in 1..=200 {
            a.insert(slot(raw));
        }
        for raw in (1..=300).rev() {
            b.insert(slot(raw));
        }
        for raw in 201..=300 {
            b.remove(TaskId::from_raw(raw).unwrap()).unwrap();
        }
        assert_eq!(a.hash_sum(), b.hash_sum());
        b.update(TaskId::from_raw(7).unwrap(), |s| s.core.retry_count = 1);
        assert_ne!(a.hash_sum(), b.hash_sum());
        a.insert(b.get(TaskId::from_raw(7).unwrap()).unwrap().clone());
        assert_eq!((a.hash_sum(), a.len()), (b.hash_sum(), 200));
    }

    #[test]
    fn a_frozen_view_does_not_move() {
        let mut table = TaskTable::default();
        for raw in (1..=130).rev() {
            table.insert(slot(raw));
        }
        let frozen = table.freeze();
        table.remove(TaskId::from_raw(5).unwrap());
        table.update(TaskId::from_raw(6).unwrap(), |s| s.core.cancel_requested = true);
        table.insert(slot(500));
        let ids: Vec<_> = frozen.sorted().iter().map(|s| s.core.id.raw()).collect();
        assert_eq!(ids, (1..=130).collect::<Vec<_>>());
        assert!(frozen.sorted().iter().all(|s| !s.core.cancel_requested));
    }
}
