//! How long a write lives, in the words of CQL.

use scylla::value::CqlTimestamp;

use crate::lifetimes::NEVER;

/// Longest TTL that Cassandra takes: 20 years, in seconds.
const MAX_TTL_S: i64 = 630_720_000;

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It is written with this TTL in seconds, 0: none.
    For(i32),
    /// Its time is over: in its stead a deletion is written, at its timestamp, since it still wins
    /// against what is older.
    Over,
}

impl Life {
    /// Of a write that expires then, both Unix ms. Rounded up: the row's own end decides what is seen,
    /// the TTL only gives the space back.
    pub fn until(expires_ms: i64, now_ms: i64) -> Self {
        if expires_ms == NEVER {
            return Self::For(0);
        }
        if expires_ms <= now_ms {
            return Self::Over;
        }
        let seconds = expires_ms.saturating_sub(now_ms).saturating_add(999) / 1_000;
        Self::For(seconds.min(MAX_TTL_S) as i32)
    }
}

/// The column `expires_at`; null: never.
pub(super) fn expires_at(expires_ms: i64) -> Option<CqlTimestamp> {
    (expires_ms != NEVER).then_some(CqlTimestamp(expires_ms))
}

/// Whether a row with this column is seen.
pub(super) fn alive(expires_at: Option<CqlTimestamp>, now_ms: i64) -> bool {
    expires_at.is_none_or(|at| now_ms < at.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_what_is_left_of_a_life() {
        assert_eq!(Life::until(NEVER, 5), Life::For(0));
        assert_eq!(Life::until(5, 5), Life::Over);
        assert_eq!(Life::until(-1, 5), Life::Over);
        assert_eq!(Life::until(6, 5), Life::For(1), "never 0, which would be for ever");
        assert_eq!(Life::until(2_005, 5), Life::For(2));
        assert_eq!(Life::until(2_006, 5), Life::For(3));
        assert_eq!(Life::until(NEVER - 1, 0), Life::For(630_720_000));
        assert_eq!((expires_at(NEVER), alive(None, i64::MAX)), (None, true));
        assert_eq!((alive(expires_at(7), 6), alive(expires_at(7), 7)), (true, false));
    }
}
