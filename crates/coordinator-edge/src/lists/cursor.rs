//! Cursors: where a page ended, for the list it was a page of. Authenticated by a secret that all
//! instances share through the store, so that a cursor is taken by every instance, now and after a
//! restart, and nothing that somebody made or changed is.
//!
//! ```text
//! version u8 | position i64 | HMAC-SHA-256 of list, version and position, first 16 bytes      (Base64 for URLs)
//! ```

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rest_contract::{Code, Problem};
use sha2::Sha256;
use task_events::Sha256Hash;

const VERSION: u8 = 1;
const TAG_BYTES: usize = 16;

/// Longest text of a cursor that is looked at, bytes.
const MAX_TEXT: usize = 128;

/// Writes and reads the cursors of one list.
pub(crate) struct Cursors {
    secret: [u8; 32],
    /// Hash of what is listed and in which order.
    list: Sha256Hash,
}

impl Cursors {
    pub fn new(secret: [u8; 32], list: Sha256Hash) -> Self {
        Self { secret, list }
    }

    /// The cursor of a position: what was shown last, or comes next, as the list has it.
    pub fn at(&self, position: i64) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&position.to_be_bytes());
        let tag = self.mac(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&tag[..TAG_BYTES]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor, which may be any number.
    pub fn read(&self, text: &str) -> Result<i64, Problem> {
        let refused = || {
            let why = "cursor does not belong to this list: it was edited, or given for other filters or another order";
            Problem::new(Code::InvalidCursor, why).field("cursor").value(text)
        };
        let bytes = Some(text).filter(|text| text.len() <= MAX_TEXT);
        let bytes = bytes.and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok()).ok_or_else(refused)?;
        let (says, tag) = bytes.split_last_chunk::<TAG_BYTES>().ok_or_else(refused)?;
        self.mac(says).verify_truncated_left(tag).map_err(|_| refused())?;
        let (version, position) = says.split_first().ok_or_else(refused)?;
        let position: [u8; 8] = position.try_into().map_err(|_| refused())?;
        Some(i64::from_be_bytes(position)).filter(|_| *version == VERSION).ok_or_else(refused)
    }

    fn mac(&self, says: &[u8]) -> Hmac<Sha256> {
        // As HMAC fills up every key that is shorter than a block.
        let mut key = [0; 64];
        key[..self.secret.len()].copy_from_slice(&self.secret);
        let mut mac = Hmac::<Sha256>::new(&key.into());
        mac.update(b"dualtrack.list.1");
        mac.update(&self.list.0);
        mac.update(says);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursors(secret: u8, list: &str) -> Cursors {
        Cursors::new([secret; 32], Sha256Hash::of(list.as_bytes()))
    }

    #[test]
    fn a_cursor_is_read_by_its_own_list_and_unchanged_only() {
        let (own, position) = (cursors(1, "a"), 77);
        let text = own.at(position);
        assert_eq!(own.read(&text).expect("its own"), position);
        assert_eq!(cursors(1, "a").read(&text).expect("after a restart"), position);
        for foreign in [cursors(1, "b"), cursors(2, "a")] {
            assert_eq!(foreign.read(&text).expect_err("foreign").code, Code::InvalidCursor);
        }
        for at in 0..text.len() {
            for other in ["A", "b", "-", "=", "é"] {
                let mut edited = text.clone();
                edited.replace_range(at..=at, other);
                assert!(edited == text || own.read(&edited).is_err(), "{edited}");
            }
            assert!(own.read(&text[..at]).is_err(), "cut at {at}");
        }
        for bad in ["", "x", &"A".repeat(1_000_000), &format!("{text}A"), &format!("{text}=")] {
            assert!(own.read(bad).is_err());
        }
    }
}
