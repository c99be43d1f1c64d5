//! State hashes at the last multiples of the checkpoint interval: every reader compares its own
//! with what others publish for the same offset (design.md §4.10). A difference means that two
//! readers folded one log to two states: whoever notices it stops.

use std::collections::{BTreeMap, BTreeSet};

use task_events::Offset;

/// Hashes a reader keeps (design.md §4.10).
pub const KEPT: usize = 64;

/// Others' hashes of offsets not reached yet.
const AHEAD: usize = 2 * KEPT;

/// Two states at one offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("state at offset {offset} has hash {own:032x} here and {other:032x} elsewhere")]
pub struct HashDiffers {
    /// Where.
    pub offset: Offset,
    /// This reader's.
    pub own: u128,
    /// The other one.
    pub other: u128,
}

/// A reader's own hashes, and others' that wait for its fold to get there.
#[derive(Clone, Debug)]
pub struct HashRing {
    every: u64,
    own: BTreeMap<Offset, u128>,
    ahead: BTreeSet<(Offset, u128)>,
}

impl HashRing {
    /// A ring for offsets divisible by `every` (0 counts as 1), the interval of checkpoints.
    pub fn new(every: u64) -> Self {
        Self { every: every.max(1), own: BTreeMap::new(), ahead: BTreeSet::new() }
    }

    /// Whether every reader notes its hash at this offset.
    pub fn is_due(&self, offset: Offset) -> bool {
        offset.0.is_multiple_of(self.every)
    }

    /// The reader's fold has this hash at this offset.
    pub fn note(&mut self, offset: Offset, own: u128) -> Result<(), HashDiffers> {
        self.own.insert(offset, own);
        while self.own.len() > KEPT {
            self.own.pop_first();
        }
        let others = self.ahead.range((offset, 0)..=(offset, u128::MAX)).find(|(_, other)| *other != own).copied();
        self.ahead = self.ahead.split_off(&(Offset(offset.0.saturating_add(1)), 0));
        others.map_or(Ok(()), |(_, other)| Err(HashDiffers { offset, own, other }))
    }

    /// Somebody else's fold has this hash at this offset; compared now, or when it is reached. One
    /// at an offset that is not due (a hand-over's checkpoint) is compared only if it is kept here:
    /// whoever loads it recomputes its hash.
    pub fn expect(&mut self, offset: Offset, other: u128) -> Result<(), HashDiffers> {
        if let Some(&own) = self.own.get(&offset) {
            return if own == other { Ok(()) } else { Err(HashDiffers { offset, own, other }) };
        }
        if self.is_due(offset) && self.own.last_key_value().is_none_or(|(last, _)| offset > *last) {
            self.ahead.insert((offset, other));
            if self.ahead.len() > AHEAD {
                self.ahead.pop_last();
            }
        }
        Ok(())
    }

    /// Own hash at an offset, if it is kept.
    pub fn get(&self, offset: Offset) -> Option<u128> {
        self.own.get(&offset).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compared_whichever_comes_first_and_only_the_last_64_are_kept() {
        let mut ring = HashRing::new(1);
        assert_eq!(ring.expect(Offset(30), 3), Ok(()));
        for n in 1..=2 {
            assert_eq!(ring.note(Offset(n * 10), u128::from(n)), Ok(()));
        }
        assert_eq!(ring.expect(Offset(20), 2), Ok(()));
        assert_eq!(ring.expect(Offset(10), 9), Err(HashDiffers { offset: Offset(10), own: 1, other: 9 }));
        assert_eq!(ring.note(Offset(30), 4), Err(HashDiffers { offset: Offset(30), own: 4, other: 3 }));
        for n in 4..=67 {
            assert_eq!(ring.note(Offset(n * 10), u128::from(n)), Ok(()));
        }
        assert_eq!((ring.get(Offset(30)), ring.get(Offset(40))), (None, Some(4)));
        assert_eq!(ring.expect(Offset(30), 99), Ok(()), "too long ago to tell");
        for n in 0..1_000 {
            assert_eq!(ring.expect(Offset(10_000 + n), 1), Ok(()));
        }
        assert!(ring.ahead.len() <= AHEAD);
        assert_eq!(ring.note(Offset(20_000), 7), Ok(()), "an offset that was passed over is not compared");
        assert!(ring.ahead.is_empty());
    }
}
