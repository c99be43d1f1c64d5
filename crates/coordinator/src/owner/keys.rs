//! Concurrency keys (design.md §8, §10; ADR 050): of the tasks of one creator that bear one key, none
//! is handed out while another's handler runs or may still run. What must wait is parked beside its
//! key and not looked at by any poll; per queue the first one of a free key stands in the queue's line.
//!
//! All of it follows from the fold: attempts that are live, hand-outs under way, and what is left of
//! ended attempts' leases, those of closed tasks included.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use task_core::Row;
use task_events::{Offset, TaskId, Text};

use super::Map;
use super::line::{Line, Waits};

/// Creator and key.
pub(super) type KeyOf = Arc<(Text, Text)>;

/// A handler runs; it ends when the log says so.
pub(super) const RUNS: u64 = u64::MAX;

/// The key of a task, if it has one.
pub(super) fn key_of(row: &Row) -> Option<KeyOf> {
    let key = row.created.concurrency_key.clone()?;
    Some(Arc::new((row.created.creator.clone(), key)))
}

#[derive(Debug, Default)]
struct Key {
    /// Tasks whose handler runs or may still run.
    busy: BTreeSet<TaskId>,
    /// Tasks that wait, by queue.
    lines: BTreeMap<Text, Line>,
    /// Those of them that stand in their queue's line, while nothing is busy.
    heads: BTreeMap<Text, TaskId>,
}

/// What is left of the lease of a closed task's last attempt. The fold has forgotten the task, so a
/// checkpoint that does not show its close is not published meanwhile.
#[derive(Debug)]
struct Closed {
    key: KeyOf,
    left_ms: u64,
    offset: Offset,
}

/// Who leaves the lines of the queues, and who comes.
#[derive(Debug, Default)]
pub(super) struct Moves {
    pub(super) stop: Vec<TaskId>,
    pub(super) go: Vec<(TaskId, Text, Waits)>,
}

impl Moves {
    pub(super) fn is_empty(&self) -> bool {
        self.stop.is_empty() && self.go.is_empty()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Keys {
    keys: Map<KeyOf, Key>,
    waits: Map<TaskId, (KeyOf, Text)>,
    /// Boot ms until which a task keeps its key busy.
    busy: Map<TaskId, (KeyOf, u64)>,
    ends: BTreeSet<(u64, TaskId)>,
    closed: BTreeMap<TaskId, Closed>,
}

impl Keys {
    /// A task waits for its key and a slot.
    pub(super) fn wait(&mut self, now_ms: u64, id: TaskId, key: KeyOf, (queue, waits): (&Text, Waits)) -> Moves {
        let entry = self.keys.entry(key.clone()).or_default();
        entry.lines.entry(queue.clone()).or_default().insert(now_ms, id, waits);
        self.waits.insert(id, (key.clone(), queue.clone()));
        self.settle(now_ms, &key, Some(queue))
    }

    /// It does not wait any more.
    pub(super) fn leave(&mut self, now_ms: u64, id: TaskId) -> Moves {
        let Some((key, queue)) = self.waits.remove(&id) else { return Moves::default() };
        if let Some(entry) = self.keys.get_mut(&key) {
            if let Some(line) = entry.lines.get_mut(&queue) {
                line.remove(id);
                if line.is_empty() {
                    entry.lines.remove(&queue);
                }
            }
            if entry.heads.get(&queue) == Some(&id) {
                entry.heads.remove(&queue);
            }
        }
        self.settle(now_ms, &key, Some(&queue))
    }

    /// Looks again whether it is the first of its key: others may have aged past it.
    pub(super) fn check(&mut self, now_ms: u64, id: TaskId) -> Moves {
        match self.waits.get(&id).cloned() {
            Some((key, queue)) => self.settle(now_ms, &key, Some(&queue)),
            None => Moves::default(),
        }
    }

    /// Whom a waiting task's key makes it wait for: whose handler runs or may still run, or who is
    /// handed out before it.
    pub(super) fn held_by(&self, id: TaskId) -> Option<TaskId> {
        let (key, queue) = self.waits.get(&id)?;
        let entry = self.keys.get(key)?;
        entry.busy.first().or_else(|| entry.heads.get(queue)).copied().filter(|other| *other != id)
    }

    /// Its handler runs, or may still run until then.
    pub(super) fn occupy(&mut self, now_ms: u64, id: TaskId, key: &KeyOf, until_ms: u64) -> Moves {
        if let Some((_, before)) = self.busy.insert(id, (key.clone(), until_ms)) {
            self.ends.remove(&(before, id));
        }
        if until_ms != RUNS {
            self.ends.insert((until_ms, id));
        }
        self.keys.entry(key.clone()).or_default().busy.insert(id);
        self.settle(now_ms, key, None)
    }

    /// Nothing of it can run any more.
    pub(super) fn free(&mut self, now_ms: u64, id: TaskId) -> Moves {
        let Some((key, until_ms)) = self.busy.remove(&id) else { return Moves::default() };
        self.ends.remove(&(until_ms, id));
        if let Some(entry) = self.keys.get_mut(&key) {
            entry.busy.remove(&id);
        }
        self.settle(now_ms, &key, None)
    }

    /// A task whose last lease is over by now, if there is one.
    pub(super) fn ended(&self, now_ms: u64) -> Option<TaskId> {
        self.ends.first().filter(|(until, _)| *until <= now_ms).map(|(_, id)| *id)
    }

    /// When the next lease will be over.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// A task was closed of whose last attempt so much may be left.
    pub(super) fn closed(&mut self, id: TaskId, key: KeyOf, left_ms: u64, offset: Offset) {
        self.closed.insert(id, Closed { key, left_ms, offset });
    }

    /// A closed task was opened again, or nothing of it is left.
    pub(super) fn forget_closed(&mut self, id: TaskId) {
        self.closed.remove(&id);
    }

    /// What is left of closed tasks, for an owner that counts from its claim.
    pub(super) fn closed_holds(&self) -> Vec<(TaskId, KeyOf, u64)> {
        self.closed.iter().map(|(id, closed)| (*id, closed.key.clone(), closed.left_ms)).collect()
    }

    /// Whether a state before this offset would not tell all that keeps a key busy.
    pub(super) fn hides_closed(&self, before: Offset) -> bool {
        self.closed.values().any(|closed| closed.offset < before)
    }

    /// Forgets everything but what is left of closed tasks, which the fold could not tell again.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.waits.clear();
        self.busy.clear();
        self.ends.clear();
    }

    // Which tasks of the key may be handed out now: none while it is busy, else the first one of each
    // queue, since nobody knows which queue has a worker. One queue alone if nothing else changed.
    fn settle(&mut self, now_ms: u64, key: &KeyOf, of: Option<&Text>) -> Moves {
        let mut moves = Moves::default();
        let Some(entry) = self.keys.get_mut(key) else { return moves };
        if !entry.busy.is_empty() {
            moves.stop.extend(std::mem::take(&mut entry.heads).into_values());
            return moves;
        }
        let Key { lines, heads, .. } = entry;
        let mut look = |queue: &Text, line: &mut Line| {
            line.age(now_ms);
            let Some((_, (_, first))) = line.first(|_| true).0 else { return };
            if heads.get(queue) == Some(&first) {
                return;
            }
            moves.stop.extend(heads.insert(queue.clone(), first));
            if let Some(waits) = line.waits(first) {
                moves.go.push((first, queue.clone(), waits.clone()));
            }
        };
        match of {
            Some(queue) => lines.get_mut(queue).into_iter().for_each(|line| look(queue, line)),
            None => lines.iter_mut().for_each(|(queue, line)| look(queue, line)),
        }
        if lines.is_empty() {
            self.keys.remove(key);
        }
        moves
    }
}
