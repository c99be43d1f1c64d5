//! From what a program printed or a receiver answered to a result.

use bytes::Bytes;
use rest_client::contract::MAX_PAYLOAD_BYTES;
use serde_json::value::RawValue;

/// JSON, byte for byte but for the blanks around it.
///
/// # Errors
/// It is no JSON.
pub fn json(said: &Bytes) -> serde_json::Result<Bytes> {
    serde_json::from_slice::<&RawValue>(said).map(|value| said.slice_ref(value.get().as_bytes()))
}

/// Anything else, as a JSON string; bytes that are no UTF-8 become U+FFFD. A text that fits stays a
/// result, even if its JSON string would not fit: then as the bytes it is.
pub fn text(said: &Bytes) -> Bytes {
    let quoted = serde_json::Value::from(String::from_utf8_lossy(said)).to_string();
    if quoted.len() > MAX_PAYLOAD_BYTES { said.clone() } else { quoted.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_loses_its_blanks_and_text_gets_quotes() {
        for (said, result) in [(" {\"n\": 1.0}\t\r\n", "{\"n\": 1.0}"), ("null", "null")] {
            assert_eq!(json(&Bytes::from_static(said.as_bytes())).unwrap(), result);
        }
        assert!(json(&Bytes::from_static(b"plain")).is_err());
        assert_eq!(text(&Bytes::from_static(b" plain \"text\"\n")), r#"" plain \"text\"\n""#);
        assert_eq!(text(&Bytes::from_static(b"\xff")), "\"\u{fffd}\"");
        let long = Bytes::from(vec![b'a'; MAX_PAYLOAD_BYTES]);
        assert_eq!(text(&long), long);
    }
}
