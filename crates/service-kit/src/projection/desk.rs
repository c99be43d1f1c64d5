//! Which subjects have an undecided verdict, and which must rest. Pure bookkeeping.

use std::collections::{BTreeMap, BTreeSet};

use event_log::AppendOutcome;
use task_events::EventId;

use super::tries::Tried;

/// An acknowledged verdict that is not read back for so long is decided anew, ms.
const READ_BACK_WAIT_MS: u64 = 30_000;
/// The same after an unknown outcome, ms.
const UNKNOWN_WAIT_MS: u64 = 10_000;
/// First rest after three equal rejections, ms; doubled with every further one.
const REST_MIN_MS: u64 = 100;
/// Longest rest, ms.
const REST_MAX_MS: u64 = 30_000;
/// Equal rejections of one subject until it rests.
const EQUAL_REJECTIONS: u32 = 3;

#[derive(Debug)]
struct Entry {
    level: u64,
    attempts: u32,
    waits_for: Option<EventId>,
    /// Last reason and how often in a row.
    rejected: Option<(u32, u32)>,
    /// Not to be decided before; while a verdict is out, the end of the wait for it.
    not_before: u64,
}

/// What a verdict read back meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Not the one that is waited for: an older attempt, or of a level that is gone.
    Other,
    Accepted,
    Rejected {
        /// So many equal ones in a row that the subject rests.
        rests: bool,
    },
}

#[derive(Debug)]
pub(super) struct Desk<S> {
    entries: BTreeMap<S, Entry>,
    timers: BTreeSet<(u64, S)>,
    waiting: usize,
    /// What was tried while the partition was held before.
    earlier: Tried<S>,
}

impl<S: Copy + Ord> Desk<S> {
    pub(super) fn new(earlier: Tried<S>) -> Self {
        Self { entries: BTreeMap::new(), timers: BTreeSet::new(), waiting: 0, earlier }
    }

    /// What was tried and is not decided, for the next time that the partition is held.
    pub(super) fn tried(&mut self) -> Tried<S> {
        let mut tried = std::mem::take(&mut self.earlier);
        let now = self.entries.iter().filter(|(_, entry)| entry.attempts > 0);
        tried.extend(now.map(|(subject, entry)| (*subject, (entry.level, entry.attempts))));
        tried
    }

    /// Verdicts that are out.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Forgets earlier attempts on what is not pending at that level any more.
    pub(super) fn keep_earlier(&mut self, pending: impl Fn(S) -> Option<u64>) {
        self.earlier.retain(|subject, (level, _)| pending(*subject) == Some(*level));
    }

    /// The number of the attempt, if the subject may be decided now.
    pub(super) fn claim(&mut self, subject: S, level: u64, now: u64) -> Option<u32> {
        // A verdict of an older level is decided: no copy of it can be accepted any more.
        if self.entries.get(&subject).is_some_and(|e| e.level != level) {
            self.forget(subject);
        }
        let entry = self.entries.entry(subject).or_insert_with(|| {
            let before = self.earlier.remove(&subject).filter(|(of, _)| *of == level);
            let attempts = before.map_or(0, |(_, attempts)| attempts);
            Entry { level, attempts, waits_for: None, rejected: None, not_before: 0 }
        });
        if entry.not_before > now {
            return None;
        }
        self.timers.remove(&(entry.not_before, subject));
        if entry.waits_for.take().is_some() {
            self.waiting -= 1;
        }
        entry.attempts += 1;
        Some(entry.attempts)
    }

    /// The verdict of the attempt just claimed goes out.
    pub(super) fn sent(&mut self, subject: S, verdict: EventId, now: u64) {
        if let Some(entry) = self.entries.get_mut(&subject) {
            entry.waits_for = Some(verdict);
            self.waiting += 1;
            self.wait(subject, now.saturating_add(READ_BACK_WAIT_MS));
        }
    }

    /// Nothing was decided; look again at `until`.
    pub(super) fn postpone(&mut self, subject: S, until: u64) {
        if let Some(entry) = self.entries.get_mut(&subject) {
            entry.attempts -= 1;
            self.wait(subject, until);
        }
    }

    /// Nothing was decided.
    pub(super) fn unclaim(&mut self, subject: S) {
        if let Some(entry) = self.entries.get_mut(&subject) {
            entry.attempts -= 1;
        }
    }

    /// A postponed subject may be decided now. One with a verdict out stays where it is, and so
    /// does one that rests after rejections.
    pub(super) fn hurry(&mut self, subject: S) {
        if let Some(entry) = self.entries.get_mut(&subject)
            && entry.waits_for.is_none()
            && entry.rejected.is_none_or(|(_, times)| times < EQUAL_REJECTIONS)
        {
            self.timers.remove(&(entry.not_before, subject));
            entry.not_before = 0;
        }
    }

    /// The port said what became of the append; only a read-back says what became of the verdict.
    pub(super) fn appended(&mut self, subject: S, verdict: EventId, outcome: &AppendOutcome, now: u64) {
        let Some(entry) = self.entries.get_mut(&subject).filter(|e| e.waits_for == Some(verdict)) else { return };
        match outcome {
            AppendOutcome::Acknowledged => {}
            AppendOutcome::NotSent(_) => {
                entry.waits_for = None;
                self.waiting -= 1;
                self.wait(subject, now);
            }
            AppendOutcome::Unknown(_) => self.wait(subject, now.saturating_add(UNKNOWN_WAIT_MS)),
        }
    }

    /// A verdict of ours was read back.
    pub(super) fn read_back(&mut self, subject: S, verdict: EventId, rejected: Option<u32>, now: u64) -> Outcome {
        let Some(entry) = self.entries.get_mut(&subject).filter(|e| e.waits_for == Some(verdict)) else {
            return Outcome::Other;
        };
        let Some(reason) = rejected else {
            self.forget(subject);
            return Outcome::Accepted;
        };
        entry.waits_for = None;
        self.waiting -= 1;
        let times = match entry.rejected {
            Some((last, times)) if last == reason => times.saturating_add(1),
            Some(_) | None => 1,
        };
        entry.rejected = Some((reason, times));
        let rests = times >= EQUAL_REJECTIONS;
        let rest = if rests {
            let doubled = 1u64.checked_shl(times - EQUAL_REJECTIONS).unwrap_or(u64::MAX);
            REST_MIN_MS.saturating_mul(doubled).min(REST_MAX_MS)
        } else {
            0
        };
        self.wait(subject, now.saturating_add(rest));
        Outcome::Rejected { rests }
    }

    /// The subject is no longer ours to move.
    pub(super) fn forget(&mut self, subject: S) {
        self.earlier.remove(&subject);
        if let Some(entry) = self.entries.remove(&subject) {
            self.timers.remove(&(entry.not_before, subject));
            self.waiting -= usize::from(entry.waits_for.is_some());
        }
    }

    /// Takes out subjects whose wait is over.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<S> {
        let (at, subject) = *self.timers.first()?;
        if at > now {
            return None;
        }
        self.timers.pop_first();
        Some(subject)
    }

    pub(super) fn next_due(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn wait(&mut self, subject: S, until: u64) {
        if let Some(entry) = self.entries.get_mut(&subject) {
            self.timers.remove(&(entry.not_before, subject));
            entry.not_before = until;
            self.timers.insert((until, subject));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> EventId {
        EventId([n; 16])
    }

    fn sent(desk: &mut Desk<u8>, level: u64, now: u64) -> u32 {
        let attempt = desk.claim(7, level, now).expect("free");
        desk.sent(7, id(attempt as u8), now);
        attempt
    }

    #[test]
    fn one_verdict_at_a_time_until_it_is_read_back() {
        let mut desk = Desk::new(Tried::new());
        assert_eq!(sent(&mut desk, 1, 0), 1);
        assert_eq!((desk.claim(7, 1, 29_999), desk.waiting()), (None, 1));
        assert_eq!(desk.read_back(7, id(9), None, 5), Outcome::Other);
        assert_eq!(desk.read_back(7, id(1), None, 5), Outcome::Accepted);
        assert_eq!((desk.waiting(), desk.next_due()), (0, None));
    }

    #[test]
    fn an_unknown_outcome_is_waited_for_then_decided_anew() {
        let mut desk = Desk::new(Tried::new());
        sent(&mut desk, 1, 0);
        desk.appended(7, id(1), &AppendOutcome::Unknown(String::new()), 2_000);
        assert_eq!((desk.claim(7, 1, 11_999), desk.next_due()), (None, Some(12_000)));
        assert_eq!(desk.pop_due(12_000), Some(7));
        assert_eq!(sent(&mut desk, 1, 12_000), 2);
        assert_eq!(desk.read_back(7, id(1), Some(0), 12_001), Outcome::Other, "another attempt's");
        desk.appended(7, id(2), &AppendOutcome::NotSent(String::new()), 12_002);
        assert_eq!(sent(&mut desk, 1, 12_002), 3);
        assert_eq!(desk.waiting(), 1);
    }

    #[test]
    fn a_new_level_makes_the_old_verdict_void() {
        let mut desk = Desk::new(Tried::new());
        sent(&mut desk, 1, 0);
        assert_eq!(sent(&mut desk, 2, 1), 1);
        assert_eq!(desk.waiting(), 1);
        desk.forget(7);
        assert_eq!((desk.waiting(), desk.next_due()), (0, None));
    }

    #[test]
    fn attempts_go_on_when_the_partition_comes_back() {
        let mut desk = Desk::new(Tried::new());
        sent(&mut desk, 1, 0);
        let mut desk = Desk::new(desk.tried());
        let mut desk = Desk::new(desk.tried());
        assert_eq!(sent(&mut desk, 1, 0), 2);
        desk.read_back(7, id(2), Some(4), 0);
        let mut desk = Desk::new(desk.tried());
        assert_eq!(sent(&mut desk, 1, 0), 3);
        let mut desk = Desk::new(desk.tried());
        assert_eq!(sent(&mut desk, 2, 0), 1, "another level's verdict is another verdict");
        desk.read_back(7, id(1), None, 0);
        assert_eq!(desk.tried(), Tried::new(), "decided");
    }

    #[test]
    fn equal_rejections_rest_longer_each_time() {
        let mut desk = Desk::new(Tried::new());
        let mut now = 0;
        let mut rests = Vec::new();
        for _ in 0..14 {
            let attempt = sent(&mut desk, 1, now);
            let outcome = desk.read_back(7, id(attempt as u8), Some(4), now);
            let due = desk.next_due().unwrap();
            assert_eq!(outcome, Outcome::Rejected { rests: due > now });
            rests.push(due - now);
            now = due;
        }
        assert_eq!(rests, [0, 0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000]);
        let attempt = sent(&mut desk, 1, now);
        desk.hurry(7);
        assert_eq!(desk.read_back(7, id(attempt as u8), Some(5), now), Outcome::Rejected { rests: false });
    }

    #[test]
    fn a_postponed_subject_can_be_hurried() {
        let mut desk = Desk::new(Tried::new());
        desk.claim(7, 1, 0);
        desk.postpone(7, 500);
        assert_eq!(desk.claim(7, 1, 499), None);
        desk.hurry(7);
        assert_eq!((desk.claim(7, 1, 10), desk.next_due()), (Some(1), None));
        desk.sent(7, id(1), 10);
        desk.hurry(7);
        assert_eq!(desk.claim(7, 1, 11), None);
    }
}
