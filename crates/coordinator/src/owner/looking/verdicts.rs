//! What became of the last records of the partition, one byte each: those who stream events ask for
//! it, so that nobody has to fold the partition a second time to know what was accepted.

use std::collections::VecDeque;

use task_core::Reason;
use task_events::Offset;

use super::Looked;

/// Records remembered, and so bytes.
const KEPT: usize = 131_072;

/// The record counts.
pub const ACCEPTED: u8 = 0;

/// The record cannot be decoded.
pub const QUARANTINED: u8 = u8::MAX;

/// The byte of a record that was judged so.
pub fn verdict_byte(rejected: Option<Reason>) -> u8 {
    rejected.map_or(ACCEPTED, |reason| reason as u8 + 1)
}

/// The reason of a rejection, from its byte; `None`: the record was not rejected.
pub fn reason_of(byte: u8) -> Option<Reason> {
    Reason::ALL.get(usize::from(byte.checked_sub(1)?)).copied()
}

/// See the module.
#[derive(Debug, Default)]
pub(in super::super) struct Verdicts {
    next: Offset,
    bytes: VecDeque<u8>,
}

impl Verdicts {
    /// Of an owner that begins at this offset: it knows nothing of what lies before.
    pub(in super::super) fn starting(next: Offset) -> Self {
        Self { next, ..Self::default() }
    }

    /// The record at this offset was folded.
    pub(in super::super) fn note(&mut self, at: Offset, rejected: Option<Reason>) {
        self.push(at, verdict_byte(rejected));
    }

    /// It was passed over.
    pub(in super::super) fn quarantined(&mut self, at: Offset) {
        self.push(at, QUARANTINED);
    }

    fn push(&mut self, at: Offset, byte: u8) {
        if at != self.next {
            self.bytes.clear();
        }
        if self.bytes.len() == KEPT {
            self.bytes.pop_front();
        }
        self.bytes.push_back(byte);
        self.next = Offset(at.0.saturating_add(1));
    }

    /// From an offset on.
    pub(super) fn from(&self, from: Offset, limit: usize) -> Looked {
        let remembered = Offset(self.next.0.saturating_sub(self.bytes.len() as u64));
        let skip = usize::try_from(from.0.saturating_sub(remembered.0)).unwrap_or(usize::MAX);
        Looked::Verdicts { remembered, verdicts: self.bytes.iter().skip(skip).take(limit).copied().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_gaps_forget() {
        let mut verdicts = Verdicts::starting(Offset(7));
        for at in 7..KEPT as u64 + 9 {
            verdicts.note(Offset(at), (at == 10).then_some(Reason::StaleEpoch));
        }
        verdicts.quarantined(Offset(KEPT as u64 + 9));
        let told = |verdicts: &Verdicts, from, limit| {
            let Looked::Verdicts { remembered, verdicts } = verdicts.from(Offset(from), limit) else { panic!() };
            (remembered.0, verdicts)
        };
        let (remembered, first) = told(&verdicts, 0, 2);
        assert_eq!(
            (remembered, first[0], reason_of(first[0])),
            (10, Reason::StaleEpoch as u8 + 1, Some(Reason::StaleEpoch))
        );
        assert_eq!((first[1], reason_of(first[1])), (ACCEPTED, None));
        assert_eq!(told(&verdicts, KEPT as u64 + 8, 9).1, [ACCEPTED, QUARANTINED]);
        assert_eq!((told(&verdicts, KEPT as u64 + 10, 9).1, reason_of(QUARANTINED)), (vec![], None));
        verdicts.note(Offset(3), None);
        assert_eq!(told(&verdicts, 0, 9), (3, vec![ACCEPTED]));
    }
}
