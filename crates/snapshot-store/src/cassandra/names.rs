//! Texts as keys. Cassandra takes keys of at most 64 KiB and no empty one; ours may be of any length.

use std::borrow::Cow;

use task_events::Sha256Hash;

/// Longest text that stands in a key as it is, bytes.
const MAX_PLAIN: usize = 256;

/// Characters of a longer one that are kept for people to see.
const SHOWN: usize = 192;

/// A text as a key: itself, or, empty or long, its beginning and its SHA-256, which makes it longer than
/// any that stands for itself.
pub(super) fn key(text: &str) -> Cow<'_, str> {
    if !text.is_empty() && text.len() <= MAX_PLAIN {
        return Cow::Borrowed(text);
    }
    let shown: String = text.chars().take(SHOWN).collect();
    Cow::Owned(format!("{shown:#<width$}{}", Sha256Hash::of(text.as_bytes()), width = SHOWN + 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_texts_are_one_key() {
        let long = "盘".repeat(40_000);
        let mut texts: Vec<String> =
            ["", "#", "a", "\0"].map(str::to_owned).into_iter().chain([long.clone(), long + "x"]).collect();
        texts.extend((254..260).map(|n| "k".repeat(n)));
        // Those that look like the keys of others.
        texts.extend(texts.clone().iter().map(|text| key(text).into_owned()));
        let texts: BTreeSet<String> = texts.into_iter().collect();
        let keys: BTreeSet<String> = texts.iter().map(|text| key(text).into_owned()).collect();
        assert_eq!(keys.len(), texts.len());
        assert!(keys.iter().all(|key| !key.is_empty() && key.len() < 1_024));
        assert_eq!(key("order-7"), "order-7");
    }
}
