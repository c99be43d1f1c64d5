//! (offset, verdict) of every record with a task's key, delta-coded: by it the events of a closed
//! task are read at known offsets, without a scan (design.md §7).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use task_events::Offset;

use crate::Reason;

/// Entries a row keeps; what comes after goes to overflow rows.
pub const MAX_HISTORY: u32 = 512;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Where the record lies.
    pub offset: Offset,
    /// `None` = accepted.
    pub rejected: Option<Reason>,
}

/// Delta-coded entries: LEB128 of the offset's distance to the one before, then one byte: 0 =
/// accepted, 1 + n = rejected for the n-th reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Bytes", into = "Bytes")]
pub struct History {
    bytes: Vec<u8>,
    count: u32,
    last: u64,
}

impl History {
    /// Appends an entry; offsets rise. Returns `false` at [`MAX_HISTORY`]: the entry belongs to an
    /// overflow row.
    pub fn push(&mut self, entry: HistoryEntry) -> bool {
        if self.count >= MAX_HISTORY || self.count > 0 && entry.offset.0 <= self.last {
            return false;
        }
        let mut delta = entry.offset.0 - self.last;
        while delta >= 0x80 {
            self.bytes.push(delta as u8 | 0x80);
            delta >>= 7;
        }
        self.bytes.push(delta as u8);
        self.bytes.push(entry.rejected.map_or(0, |r| 1 + r as u8));
        self.last = entry.offset.0;
        self.count += 1;
        true
    }

    /// Number of entries.
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The coded form, as rows and carried states hold it.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.bytes)
    }

    /// Length of the coded form in bytes.
    pub fn coded_len(&self) -> usize {
        self.bytes.len()
    }

    /// Reads the coded form, cut at the first entry that makes no sense.
    pub fn from_bytes(coded: &[u8]) -> Self {
        Self::before(coded, Offset(u64::MAX))
    }

    /// Reads the history of a carried state, met at offset `end`. It is foreign data to the fold: the
    /// first entry that is not a record of this log before `end` cuts it, else what follows could
    /// not be coded. The history is for people, nothing is judged by it.
    pub fn before(coded: &[u8], end: Offset) -> Self {
        let mut out = Self::default();
        for entry in decode(coded) {
            if entry.offset >= end || !out.push(entry) {
                break;
            }
        }
        out
    }

    /// The entries in order.
    pub fn entries(&self) -> Vec<HistoryEntry> {
        decode(&self.bytes)
    }
}

impl From<Bytes> for History {
    fn from(coded: Bytes) -> Self {
        Self::from_bytes(&coded)
    }
}

impl From<History> for Bytes {
    fn from(history: History) -> Self {
        history.bytes.into()
    }
}

fn decode(mut coded: &[u8]) -> Vec<HistoryEntry> {
    let mut out = Vec::new();
    let mut last = 0u64;
    while let Some((delta, rest)) = leb128(coded) {
        let Some((&code, rest)) = rest.split_first() else { break };
        let rejected = match code {
            0 => None,
            n => match Reason::ALL.get(usize::from(n) - 1) {
                Some(&reason) => Some(reason),
                None => break,
            },
        };
        let Some(offset) = last.checked_add(delta) else { break };
        last = offset;
        out.push(HistoryEntry { offset: Offset(offset), rejected });
        coded = rest;
        if out.len() as u32 == MAX_HISTORY {
            break;
        }
    }
    out
}

fn leb128(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (i, &b) in bytes.iter().enumerate().take(10) {
        if i == 9 && b > 1 {
            return None;
        }
        value |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_foreign_bytes_are_cut() {
        let mut h = History::default();
        let entries = [(3, None), (4, Some(Reason::StaleEpoch)), (900_000_000_000, Some(Reason::RetriesExhausted))]
            .map(|(o, rejected)| HistoryEntry { offset: Offset(o), rejected });
        for e in entries {
            assert!(h.push(e));
        }
        assert_eq!(h.entries(), entries);
        assert_eq!(History::from_bytes(&h.to_bytes()), h);
        let mut torn = h.to_bytes().to_vec();
        torn.pop();
        assert_eq!(History::from_bytes(&torn).entries(), entries[..2]);
        assert_eq!(History::before(&h.to_bytes(), Offset(900_000_000_000)).entries(), entries[..2]);
        assert_eq!(History::from_bytes(&[5, 0, 0, 0]).len(), 1, "an offset bears one record");
        assert!(History::from_bytes(&[5, 200]).is_empty());
        assert!(History::from_bytes(&[0xff; 64]).is_empty());
    }

    #[test]
    fn what_is_one_too_many_is_refused_and_never_read() {
        let mut h = History::default();
        let entry = |offset| HistoryEntry { offset: Offset(offset), rejected: None };
        assert!((0..512).all(|offset| h.push(entry(offset))));
        assert!(!h.push(entry(512)));
        assert_eq!((h.len(), h.entries().len(), h.coded_len()), (512, 512, 1024));
        let coded = [h.to_bytes(), h.to_bytes()].concat();
        assert_eq!(History::from_bytes(&coded), h);
    }
}
