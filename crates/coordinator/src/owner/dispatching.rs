//! Tasks that wait for a slot, in priority order, then by id; and hand-outs under way.

use std::collections::{BTreeMap, BTreeSet};

use assignment_lock::Holder;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use task_core::PartitionState;
use task_events::{TaskId, Text};

use super::work::Waiting;
use super::{Ticket, Token};

/// Tasks that could be handed out now, and hand-outs under way.
#[derive(Debug, Default)]
pub(super) struct Dispatch {
    queues: BTreeMap<Text, BTreeSet<(u8, TaskId)>>,
    paused: BTreeMap<Text, BTreeSet<(u8, TaskId)>>,
    places: HashMap<TaskId, (Text, u8), FixedState>,
    pub(super) under_way: HashMap<TaskId, HandOut, FixedState>,
    pub(super) answers: HashMap<Token, Gathering, FixedState>,
}

/// A TaskAssigned on its way, until it is read back and its lock was asked for.
#[derive(Debug)]
pub(super) struct HandOut {
    pub(super) token: Token,
    pub(super) holder: Holder,
    /// The call that takes its lock; another hand-out's answer says nothing of this one.
    pub(super) lock: Ticket,
    pub(super) read_back: bool,
    pub(super) locked: bool,
}

/// A poll that hears of all its hand-outs at once.
#[derive(Debug)]
pub(super) struct Gathering {
    pub(super) waiting: Waiting,
    pub(super) outstanding: BTreeSet<TaskId>,
    pub(super) ready: Vec<TaskId>,
}

impl Dispatch {
    pub(super) fn len(&self) -> usize {
        self.queues.values().map(BTreeSet::len).sum()
    }

    /// A task waits for a slot.
    pub(super) fn offer(&mut self, id: TaskId, queue: &Text, priority: u8, paused: bool) {
        self.withdraw(id);
        let place = (9 - priority.min(9), id);
        let side = if paused { &mut self.paused } else { &mut self.queues };
        side.entry(queue.clone()).or_default().insert(place);
        self.places.insert(id, (queue.clone(), place.0));
    }

    pub(super) fn withdraw(&mut self, id: TaskId) {
        if let Some((queue, priority)) = self.places.remove(&id) {
            for side in [&mut self.queues, &mut self.paused] {
                if let Some(set) = side.get_mut(&queue) {
                    set.remove(&(priority, id));
                    if set.is_empty() {
                        side.remove(&queue);
                    }
                }
            }
        }
    }

    /// Queues were paused or resumed.
    pub(super) fn requeue(&mut self, fold: &PartitionState) {
        let paused = |queue: &Text| fold.paused_queues.contains(queue);
        let stop: Vec<Text> = self.queues.keys().filter(|q| paused(q)).cloned().collect();
        let go: Vec<Text> = self.paused.keys().filter(|q| !paused(q)).cloned().collect();
        for queue in stop {
            let tasks = self.queues.remove(&queue).unwrap_or_default();
            self.paused.entry(queue).or_default().extend(tasks);
        }
        for queue in go {
            let tasks = self.paused.remove(&queue).unwrap_or_default();
            self.queues.entry(queue).or_default().extend(tasks);
        }
    }

    pub(super) fn clear(&mut self) {
        self.queues.clear();
        self.paused.clear();
        self.places.clear();
    }

    pub(super) fn forget_hand_outs(&mut self) {
        self.under_way.clear();
        self.answers.clear();
    }

    pub(super) fn is_under_way(&self, id: TaskId) -> bool {
        self.under_way.contains_key(&id)
    }

    /// Best task of these queues; a task that avoids this worker only when nothing else is there.
    pub(super) fn pick(&self, queues: &[Text], avoids: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut second = None;
        let mut best: Option<(u8, TaskId)> = None;
        for queue in queues {
            let Some(set) = self.queues.get(queue) else { continue };
            match set.iter().find(|(_, id)| !avoids(*id)) {
                Some(place) => best = Some(best.map_or(*place, |b| b.min(*place))),
                None => second = second.or_else(|| set.first().copied()),
            }
        }
        best.or(second).map(|(_, id)| id)
    }
}
