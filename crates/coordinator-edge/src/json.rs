//! Strict JSON: what could be read in two ways is refused (duplicate keys, lone surrogates, trailing
//! data), and whatever is refused is named by position or by field. The command line reads files of
//! tasks by the same rules.

mod decode;
mod scan;

use serde_json::value::RawValue;

pub use decode::decode;
pub(crate) use decode::escaped;
pub use scan::check;

/// Exactly these bytes as JSON, to stand in an answer byte for byte; `None` if they are none, or if blanks
/// around the value would be lost.
pub(crate) fn exact(bytes: &[u8]) -> Option<Box<RawValue>> {
    let raw: Box<RawValue> = serde_json::from_slice(bytes).ok()?;
    (raw.get().len() == bytes.len()).then_some(raw)
}

#[cfg(test)]
mod tests {
    use super::exact;

    #[test]
    fn a_payload_goes_along_byte_for_byte_or_not_at_all() {
        let text = r#"{"n" : 9223372036854775808, "x":0.10000000000000000555 }"#;
        assert_eq!(exact(text.as_bytes()).expect("JSON").get(), text);
        for not in [&b" 1"[..], b"1\n", b"", b"{", b"\xff", b"\x00"] {
            assert!(exact(not).is_none(), "{not:?}");
        }
    }
}
