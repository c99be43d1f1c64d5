//! A hierarchical timing wheel (Varghese and Lauck, 1987): arming and cancelling cost the same with
//! ten timers and with a million.
//!
//! Levels of 64 slots, enough of them for any time. A slot of the first level is [`SLOT_MS`] long, one of the next level as
//! long as all 64 before it. When time reaches a slot of a higher level, its timers move down to
//! where they belong; when it reaches one of the first level, they are due.

use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Timers;

/// Granularity: a timer fires at most so much late, and never early (design.md §12: p99 ≤ 20 ms
/// late, the wake-up of the process included).
pub const SLOT_MS: u64 = 10;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// 11 × 6 bits hold every number of a slot.
const LEVELS: usize = 11;

/// No node.
const NONE: u32 = u32::MAX;
/// List of the timers that are due.
const READY: u16 = (LEVELS * SLOTS) as u16;

#[derive(Clone, Debug)]
struct Node<K> {
    /// `None` while the node is free.
    key: Option<K>,
    due_ms: u64,
    /// Order of arming.
    armed: u64,
    list: u16,
    before: u32,
    after: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct TimerWheel<K> {
    nodes: Vec<Node<K>>,
    free: Vec<u32>,
    by_key: HashMap<K, u32, FixedState>,
    lists: Box<[List; LEVELS * SLOTS + 1]>,
    /// Slots that hold something, one bit each.
    filled: [u64; LEVELS],
    /// Slot of the first level that time has reached.
    now: u64,
    armed: u64,
}

impl<K> Default for TimerWheel<K> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::default(),
            lists: Box::new([List { first: NONE, last: NONE }; LEVELS * SLOTS + 1]),
            filled: [0; LEVELS],
            now: 0,
            armed: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> TimerWheel<K> {
    // Where a timer belongs now: rounded up to the next slot, so that it never fires early.
    fn list_of(&self, due_ms: u64) -> u16 {
        let at = due_ms.div_ceil(SLOT_MS);
        if at <= self.now {
            return READY;
        }
        let level = ((at ^ self.now).ilog2() / BITS) as usize;
        let slot = (at >> (BITS * level as u32)) as usize % SLOTS;
        (level * SLOTS + slot) as u16
    }

    fn link(&mut self, id: u32, list: u16) {
        let last = self.lists[usize::from(list)].last;
        let node = &mut self.nodes[id as usize];
        (node.list, node.before, node.after) = (list, last, NONE);
        match last {
            NONE => self.lists[usize::from(list)].first = id,
            last => self.nodes[last as usize].after = id,
        }
        self.lists[usize::from(list)].last = id;
        if list != READY {
            self.filled[usize::from(list) / SLOTS] |= 1 << (usize::from(list) % SLOTS);
        }
    }

    fn unlink(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let (list, before, after) = (usize::from(node.list), node.before, node.after);
        match before {
            NONE => self.lists[list].first = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => self.lists[list].last = before,
            after => self.nodes[after as usize].before = before,
        }
        if self.lists[list].first == NONE && list != usize::from(READY) {
            self.filled[list / SLOTS] &= !(1 << (list % SLOTS));
        }
    }

    fn take(&mut self, id: u32) -> Option<K> {
        self.unlink(id);
        self.free.push(id);
        let key = self.nodes[id as usize].key.take()?;
        self.by_key.remove(&key);
        Some(key)
    }

    // The next slot that holds something: its level, its number there, and when it begins. A timer
    // is in the level of the highest digit (of 6 bits) by which its slot differs from now, so all
    // of a level lie ahead of now, and before all of the next level.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let level = (0..LEVELS).find(|level| self.filled[*level] != 0)?;
        let shift = BITS * level as u32;
        let slot = self.filled[level].trailing_zeros();
        let digits_below = 1u64.checked_shl(shift + BITS).unwrap_or(0).wrapping_sub(1);
        let begins = (self.now & !digits_below) + (u64::from(slot) << shift);
        Some((level, slot as usize, begins))
    }

    // Empties a slot that time has reached: what is due becomes ready, the rest moves down.
    fn empty(&mut self, level: usize, slot: usize) {
        let list = level * SLOTS + slot;
        let mut ids = Vec::new();
        let mut id = self.lists[list].first;
        while id != NONE {
            ids.push(id);
            id = self.nodes[id as usize].after;
        }
        self.lists[list] = List { first: NONE, last: NONE };
        self.filled[level] &= !(1 << slot);
        // Those of one slot fire in the order of their times, equal ones in the order of arming.
        if level == 0 {
            ids.sort_unstable_by_key(|id| {
                let node = &self.nodes[*id as usize];
                (node.due_ms, node.armed)
            });
        }
        for id in ids {
            let list = self.list_of(self.nodes[id as usize].due_ms);
            self.link(id, list);
        }
    }
}

impl<K: Clone + Eq + Hash> Timers<K> for TimerWheel<K> {
    fn arm(&mut self, key: K, due_ms: u64) {
        let list = self.list_of(due_ms);
        self.armed += 1;
        let armed = self.armed;
        if let Some(&id) = self.by_key.get(&key) {
            self.unlink(id);
            let node = &mut self.nodes[id as usize];
            (node.due_ms, node.armed) = (due_ms, armed);
            return self.link(id, list);
        }
        let node = Node { key: Some(key.clone()), due_ms, armed, list, before: NONE, after: NONE };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.by_key.insert(key, id);
        self.link(id, list);
    }

    fn cancel(&mut self, key: &K) {
        if let Some(&id) = self.by_key.get(key) {
            self.take(id);
        }
    }

    fn clear(&mut self) {
        *self = Self { now: self.now, ..Self::default() };
    }

    fn due(&self, key: &K) -> Option<u64> {
        self.by_key.get(key).map(|id| self.nodes[*id as usize].due_ms)
    }

    fn len(&self) -> usize {
        self.by_key.len()
    }

    fn advance(&mut self, now_ms: u64) {
        let until = now_ms / SLOT_MS;
        while self.now < until {
            match self.next_slot() {
                Some((level, slot, begins)) if begins <= until => {
                    self.now = begins;
                    self.empty(level, slot);
                }
                Some(_) | None => self.now = until,
            }
        }
    }

    fn pop_due(&mut self, now_ms: u64) -> Option<K> {
        self.advance(now_ms);
        match self.lists[usize::from(READY)].first {
            NONE => None,
            id => self.take(id),
        }
    }

    fn next_due(&self) -> Option<u64> {
        match self.lists[usize::from(READY)].first {
            NONE => self.next_slot().map(|(_, _, begins)| begins.saturating_mul(SLOT_MS)),
            id => Some(self.nodes[id as usize].due_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::timers::OrderedTimers;

    #[derive(Clone, Debug)]
    enum Op {
        Arm(u8, u64),
        Cancel(u8),
        Pass(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let far = prop_oneof![0..50u64, 0..2_000u64, 0..200_000u64, 0..10_000_000_000u64, Just(u64::MAX >> 1)];
        prop_oneof![
            4 => (any::<u8>(), far.clone()).prop_map(|(key, ms)| Op::Arm(key, ms)),
            1 => any::<u8>().prop_map(Op::Cancel),
            3 => far.prop_map(Op::Pass),
        ]
    }

    fn all<T: Timers<u8>>(timers: &mut T, now: u64) -> Vec<u8> {
        std::iter::from_fn(|| timers.pop_due(now)).collect()
    }

    proptest! {
        // The ordered map with times rounded up to slots is what the wheel must be.
        #[test]
        fn it_is_the_ordered_map_of_rounded_times(ops in prop::collection::vec(op(), 1..80), start in 0..1_000_000u64) {
            let (mut wheel, mut model) = (TimerWheel::default(), OrderedTimers::default());
            let mut now = start;
            for op in ops {
                match op {
                    Op::Arm(key, ms) => {
                        let due = now.saturating_add(ms);
                        wheel.arm(key, due);
                        model.arm(key, due.div_ceil(SLOT_MS) * SLOT_MS);
                        prop_assert_eq!(wheel.due(&key), Some(due));
                    }
                    Op::Cancel(key) => {
                        wheel.cancel(&key);
                        model.cancel(&key);
                        prop_assert_eq!(wheel.due(&key), None);
                    }
                    Op::Pass(ms) => {
                        now = now.saturating_add(ms).min(u64::MAX >> 2);
                        wheel.advance(now);
                        let slot = now / SLOT_MS * SLOT_MS;
                        let due = model.next_due().is_some_and(|due| due <= slot);
                        prop_assert_eq!(wheel.next_due().is_some_and(|at| at <= now), due);
                        let (mut fired, mut expected) = (all(&mut wheel, now), all(&mut model, slot));
                        fired.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(fired, expected);
                    }
                }
                prop_assert_eq!(wheel.len(), model.len());
                let (early, exact) = (wheel.next_due(), model.next_due());
                prop_assert_eq!(early.is_some(), exact.is_some());
                prop_assert!(early.unwrap_or(0) <= exact.unwrap_or(0), "nothing is due before it says");
            }
        }
    }

    #[test]
    fn each_fires_once_in_the_order_of_times_and_never_early() {
        let mut wheel = TimerWheel::default();
        for (key, due) in [(1u8, 12_345), (2, 12_341), (3, 12_349), (4, 12_341), (5, 12_351), (1, 12_342)] {
            wheel.arm(key, due);
        }
        assert_eq!(wheel.pop_due(12_349), None);
        assert_eq!(all(&mut wheel, 12_350), [2, 4, 1, 3]);
        assert_eq!((all(&mut wheel, 12_359), wheel.len()), (vec![], 1));
        assert_eq!(all(&mut wheel, 12_360), [5]);
        assert!(wheel.is_empty() && wheel.next_due().is_none());
    }

    #[test]
    fn what_is_due_already_fires_at_once() {
        let mut wheel = TimerWheel::default();
        wheel.advance(1_000_000);
        wheel.arm(1u8, 5);
        wheel.arm(2, 1_000_000);
        assert_eq!(wheel.next_due(), Some(5));
        assert_eq!(all(&mut wheel, 1_000_000), [1, 2]);
    }
}
