//! The waiting tasks of one queue, in the order in which they are handed out (design.md §10): the
//! highest priority first, one level higher for each minute of waiting; within a level creators
//! take turns, one task each; of a creator the earliest deadline, then the lowest id.
//!
//! All hand-outs cost the same, so the deficit round robin over creators is a plain one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use task_events::{TaskId, Text};

/// A task moves up one level for each so many ms of waiting.
pub(super) const AGES_EVERY_MS: u64 = 60_000;

/// Priorities 0 to 9, 9 first (design.md §8).
const LEVELS: usize = 10;

/// What a waiting task brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) priority: u8,
    pub(super) creator: Text,
    /// Unix ms; `i64::MAX` without one.
    pub(super) deadline: i64,
    /// Since when it could have been handed out, boot ms.
    pub(super) since_ms: u64,
}

/// Among the tasks of one creator.
type Place = (i64, TaskId);

/// A task that could be next, with its level.
pub(super) type Candidate = (usize, Place);

#[derive(Debug, Default)]
struct Level {
    /// Creators that have tasks here; the first one's turn is next.
    turns: VecDeque<Text>,
    tasks: BTreeMap<Text, BTreeSet<Place>>,
}

impl Level {
    fn insert(&mut self, creator: &Text, place: Place) {
        let tasks = self.tasks.entry(creator.clone()).or_insert_with(|| {
            self.turns.push_back(creator.clone());
            BTreeSet::new()
        });
        tasks.insert(place);
    }

    fn remove(&mut self, creator: &Text, place: Place) {
        let Some(tasks) = self.tasks.get_mut(creator) else { return };
        tasks.remove(&place);
        if tasks.is_empty() {
            self.tasks.remove(creator);
            self.turns.retain(|turn| turn != creator);
        }
    }

    // The creator had its turn.
    fn turn_over(&mut self, creator: &Text) {
        if let Some(at) = self.turns.iter().position(|turn| turn == creator)
            && let Some(turn) = self.turns.remove(at)
        {
            self.turns.push_back(turn);
        }
    }

    fn len(&self) -> usize {
        self.tasks.values().map(BTreeSet::len).sum()
    }

    // Of each creator as many as have had their turn by then.
    fn before(&self, creator: &Text, place: Place) -> usize {
        let rounds = self.tasks.get(creator).map_or(0, |tasks| tasks.range(..place).count());
        let turn = self.turns.iter().position(|turn| turn == creator).unwrap_or(0);
        let others = self.turns.iter().enumerate().filter(|(_, other)| *other != creator);
        let taken = others.map(|(at, other)| {
            let had = rounds + usize::from(at < turn);
            self.tasks.get(other).map_or(0, |tasks| tasks.len().min(had))
        });
        rounds + taken.sum::<usize>()
    }

    fn in_turn(&self) -> impl Iterator<Item = Place> + '_ {
        self.turns.iter().filter_map(|creator| self.tasks.get(creator)).flatten().copied()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Line {
    levels: [Level; LEVELS],
    entries: HashMap<TaskId, (Waits, usize), FixedState>,
    /// When tasks move up, boot ms.
    moves: BTreeSet<(u64, TaskId)>,
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn waits(&self, id: TaskId) -> Option<&Waits> {
        self.entries.get(&id).map(|(waits, _)| waits)
    }

    pub(super) fn insert(&mut self, now_ms: u64, id: TaskId, waits: Waits) {
        self.remove(id);
        let aged = now_ms.saturating_sub(waits.since_ms) / AGES_EVERY_MS;
        let level = usize::from(waits.priority).saturating_add(usize::try_from(aged).unwrap_or(LEVELS)).min(LEVELS - 1);
        self.place(id, waits, level);
    }

    fn place(&mut self, id: TaskId, waits: Waits, level: usize) {
        self.levels[level].insert(&waits.creator, (waits.deadline, id));
        if let Some(at) = moves_at(&waits, level) {
            self.moves.insert((at, id));
        }
        self.entries.insert(id, (waits, level));
    }

    pub(super) fn remove(&mut self, id: TaskId) {
        if let Some((waits, level)) = self.entries.remove(&id) {
            self.levels[level].remove(&waits.creator, (waits.deadline, id));
            if let Some(at) = moves_at(&waits, level) {
                self.moves.remove(&(at, id));
            }
        }
    }

    /// How many are handed out before it, if nothing else comes.
    pub(super) fn before(&self, id: TaskId) -> Option<usize> {
        let (waits, level) = self.entries.get(&id)?;
        let above: usize = self.levels[level + 1..].iter().map(Level::len).sum();
        Some(above + self.levels[*level].before(&waits.creator, (waits.deadline, id)))
    }

    /// It is handed out: its creator's turn is over.
    pub(super) fn take(&mut self, id: TaskId) {
        if let Some((waits, level)) = self.entries.get(&id) {
            self.levels[*level].turn_over(&waits.creator);
        }
        self.remove(id);
    }

    /// Moves up what has waited for another minute.
    pub(super) fn age(&mut self, now_ms: u64) {
        while let Some(&(at, id)) = self.moves.first() {
            if at > now_ms {
                break;
            }
            self.moves.pop_first();
            if let Some((waits, level)) = self.entries.remove(&id) {
                self.levels[level].remove(&waits.creator, (waits.deadline, id));
                self.place(id, waits, level + 1);
            }
        }
    }

    /// The first that is wanted, and the first of all.
    pub(super) fn first(&self, wanted: impl Fn(TaskId) -> bool) -> (Option<Candidate>, Option<Candidate>) {
        let mut first = None;
        for (level, tasks) in self.levels.iter().enumerate().rev() {
            for place in tasks.in_turn() {
                first = first.or(Some((level, place)));
                if wanted(place.1) {
                    return (Some((level, place)), first);
                }
            }
        }
        (None, first)
    }
}

// The highest level is the end of it.
fn moves_at(waits: &Waits, level: usize) -> Option<u64> {
    let risen = (level + 1).checked_sub(usize::from(waits.priority))?;
    (level + 1 < LEVELS).then(|| waits.since_ms.saturating_add(AGES_EVERY_MS.saturating_mul(risen as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: i64) -> TaskId {
        TaskId::from_raw(n).expect("an id")
    }

    fn waits(priority: u8, creator: &str, deadline: i64, since_ms: u64) -> Waits {
        Waits { priority, creator: creator.into(), deadline, since_ms }
    }

    fn order(line: &mut Line, now_ms: u64) -> Vec<i64> {
        line.age(now_ms);
        let mut order = Vec::new();
        while let (Some((_, (_, id))), _) = line.first(|_| true) {
            order.push(id.raw());
            line.take(id);
        }
        assert!(line.is_empty() && line.moves.is_empty());
        order
    }

    #[test]
    fn creators_take_turns_and_the_earliest_deadline_of_each_comes_first() {
        let mut line = Line::default();
        for (n, creator, deadline) in [(1, "a", 9), (2, "a", 5), (3, "a", i64::MAX), (4, "b", i64::MAX), (5, "c", 1)] {
            line.insert(0, id(n), waits(4, creator, deadline, 0));
        }
        let before: Vec<_> = [2, 4, 5, 1, 3].map(|n| line.before(id(n)).expect("it waits")).into();
        assert_eq!(before, [0, 1, 2, 3, 4]);
        assert_eq!(order(&mut line, 0), [2, 4, 5, 1, 3]);
    }

    #[test]
    fn a_flood_of_one_creator_delays_the_others_by_one_task() {
        let mut line = Line::default();
        (1..1_000).for_each(|n| line.insert(0, id(n), waits(4, "flood", i64::MAX, 0)));
        line.take(id(1));
        line.insert(0, id(5_000), waits(4, "quiet", i64::MAX, 0));
        assert_eq!(order(&mut line, 0)[..3], [2, 5_000, 3]);
    }

    #[test]
    fn each_minute_of_waiting_is_one_level_up_to_the_highest() {
        let mut line = Line::default();
        line.insert(0, id(1), waits(0, "a", i64::MAX, 0));
        line.insert(0, id(2), waits(9, "a", i64::MAX, 0));
        let now = 4 * AGES_EVERY_MS;
        line.insert(now, id(3), waits(4, "b", i64::MAX, now));
        line.insert(now, id(4), waits(5, "b", i64::MAX, now));
        line.age(now - 1);
        assert_eq!(line.first(|task| task != id(2)).0, Some((5, (i64::MAX, id(4)))));
        line.age(now);
        assert_eq!(line.first(|task| task == id(1)).0, Some((4, (i64::MAX, id(1)))));
        assert_eq!(order(&mut line, now), [2, 4, 3, 1]);
        line.insert(now, id(1), waits(0, "a", i64::MAX, 0));
        line.insert(now, id(5), waits(9, "b", i64::MAX, now));
        line.age(u64::MAX);
        assert_eq!(line.first(|task| task == id(1)).0, Some((9, (i64::MAX, id(1)))), "and no further");
        assert_eq!(line.len(), 2);
    }

    #[test]
    fn one_that_is_not_wanted_is_told_apart() {
        let mut line = Line::default();
        line.insert(0, id(1), waits(4, "a", i64::MAX, 0));
        line.insert(0, id(2), waits(4, "a", i64::MAX, 0));
        let (one, two) = ((4, (i64::MAX, id(1))), (4, (i64::MAX, id(2))));
        assert_eq!(line.first(|task| task != id(1)), (Some(two), Some(one)));
        assert_eq!(line.first(|_| false), (None, Some(one)));
        line.remove(id(1));
        assert_eq!(line.first(|_| false), (None, Some(two)));
    }
}
