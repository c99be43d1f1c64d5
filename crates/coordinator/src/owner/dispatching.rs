//! Tasks that wait for a slot, queue by queue, and hand-outs under way.

use std::collections::{BTreeMap, BTreeSet};

use assignment_lock::Holder;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use task_core::PartitionState;
use task_events::{TaskId, Text};

use super::keys::{KeyOf, Keys, Moves};
use super::line::{Candidate, Line, Waits};
use super::work::Waiting;
use super::{Ticket, Token};

/// Tasks that could be handed out now, and hand-outs under way.
#[derive(Debug, Default)]
pub(super) struct Dispatch {
    queues: BTreeMap<Text, Line>,
    queue_of: HashMap<TaskId, Text, FixedState>,
    /// Queues whose tasks are not handed out.
    paused: BTreeSet<Text>,
    /// How many times something could be handed out that could not before.
    offers: u64,
    pub(super) keys: Keys,
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
    /// When it began, boot µs, for people.
    pub(super) began_us: u64,
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
        self.queues.iter().filter(|(queue, _)| !self.paused.contains(*queue)).map(|(_, line)| line.len()).sum()
    }

    /// Tasks that stand in line, by queue, of queues that are not paused.
    pub(super) fn ready_by_queue(&self, most: usize) -> Vec<(Text, u64)> {
        let queues = self.queues.iter().filter(|(queue, _)| !self.paused.contains(*queue));
        queues.map(|(queue, line)| (queue.clone(), line.len() as u64)).take(most).collect()
    }

    /// Tasks of a queue that stand in line, paused or not.
    pub(super) fn ready(&self, queue: &Text) -> usize {
        self.queues.get(queue).map_or(0, Line::len)
    }

    /// A task waits for a slot, and if it has a key, for that first.
    pub(super) fn offer(&mut self, now_ms: u64, id: TaskId, key: Option<KeyOf>, (queue, waits): (&Text, Waits)) {
        self.withdraw(now_ms, id);
        match key {
            None => self.stand(now_ms, id, queue, waits),
            Some(key) => {
                let moves = self.keys.wait(now_ms, id, key, (queue, waits));
                self.carry_out(now_ms, moves);
            }
        }
    }

    /// Rises whenever a task comes to stand in line, or a queue is resumed.
    pub(super) const fn offers(&self) -> u64 {
        self.offers
    }

    fn stand(&mut self, now_ms: u64, id: TaskId, queue: &Text, waits: Waits) {
        self.offers += 1;
        self.queues.entry(queue.clone()).or_default().insert(now_ms, id, waits);
        self.queue_of.insert(id, queue.clone());
    }

    fn carry_out(&mut self, now_ms: u64, moves: Moves) {
        moves.stop.into_iter().for_each(|id| self.leave(id, Line::remove));
        moves.go.into_iter().for_each(|(id, queue, waits)| self.stand(now_ms, id, &queue, waits));
    }

    /// It does not wait any more.
    pub(super) fn withdraw(&mut self, now_ms: u64, id: TaskId) {
        self.leave(id, Line::remove);
        let moves = self.keys.leave(now_ms, id);
        self.carry_out(now_ms, moves);
    }

    /// It is handed out.
    pub(super) fn take(&mut self, now_ms: u64, id: TaskId) {
        self.leave(id, Line::take);
        let moves = self.keys.leave(now_ms, id);
        self.carry_out(now_ms, moves);
    }

    /// Its key is busy.
    pub(super) fn occupy(&mut self, now_ms: u64, id: TaskId, key: &KeyOf, until_ms: u64) {
        let moves = self.keys.occupy(now_ms, id, key, until_ms);
        self.carry_out(now_ms, moves);
    }

    /// It does not keep its key busy any more.
    pub(super) fn free(&mut self, now_ms: u64, id: TaskId) {
        let moves = self.keys.free(now_ms, id);
        self.carry_out(now_ms, moves);
    }

    fn leave(&mut self, id: TaskId, leaves: fn(&mut Line, TaskId)) {
        let Some(queue) = self.queue_of.remove(&id) else { return };
        if let Some(line) = self.queues.get_mut(&queue) {
            leaves(line, id);
            if line.is_empty() {
                self.queues.remove(&queue);
            }
        }
    }

    /// How many tasks of its queue are handed out before it; `None` if it does not stand in the line.
    pub(super) fn before(&self, id: TaskId) -> Option<usize> {
        let queue = self.queue_of.get(&id)?;
        self.queues.get(queue)?.before(id)
    }

    /// Queues were paused or resumed, or the owner begins.
    pub(super) fn requeue(&mut self, fold: &PartitionState) {
        self.paused.clone_from(&fold.paused_queues);
        self.offers += 1;
    }

    pub(super) fn clear(&mut self) {
        self.queues.clear();
        self.queue_of.clear();
        self.keys.clear();
    }

    pub(super) fn forget_hand_outs(&mut self) {
        self.under_way.clear();
        self.answers.clear();
    }

    pub(super) fn is_under_way(&self, id: TaskId) -> bool {
        self.under_way.contains_key(&id)
    }

    /// Next task of these queues; a task that avoids this worker only when nothing else is there.
    pub(super) fn pick(&mut self, now_ms: u64, queues: &[Text], avoids: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        loop {
            let picked = self.first(now_ms, queues, &avoids)?;
            let moves = self.keys.check(now_ms, picked);
            if moves.is_empty() {
                return Some(picked);
            }
            self.carry_out(now_ms, moves);
        }
    }

    fn first(&mut self, now_ms: u64, queues: &[Text], avoids: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let (mut best, mut second): (Option<Candidate>, Option<Candidate>) = (None, None);
        for queue in queues.iter().filter(|queue| !self.paused.contains(*queue)) {
            let Some(line) = self.queues.get_mut(queue) else { continue };
            line.age(now_ms);
            let (wanted, any) = line.first(|id| !avoids(id));
            (best, second) = (better(best, wanted), better(second, any));
        }
        best.or(second).map(|(_, (_, id))| id)
    }
}

// Of two queues' candidates: the higher level, then the earlier deadline, then the lower id.
fn better(one: Option<Candidate>, other: Option<Candidate>) -> Option<Candidate> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if (b.0, a.1) > (a.0, b.1) { b } else { a }),
        (one, other) => one.or(other),
    }
}
