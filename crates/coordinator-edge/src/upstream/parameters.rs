//! What stands in paths, queries and headers.

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::extract::Query;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, Uri};
use rest_contract::{MAX_NAME_BYTES, MAX_PAGE, MAX_WAIT_MS, Problem};
use task_events::{TaskId, Text, TraceId, TraceParent};

use crate::problems::{Failure, bad_field, bad_parameter};

/// A part of a path, as axum hands it over.
pub(crate) type Part = Result<Path<String>, PathRejection>;

/// The text of a part.
pub(crate) fn text_of(name: &str, part: Part) -> Result<String, Failure> {
    let Path(text) = part.map_err(|why| bad_parameter(name, &why.body_text(), "UTF-8, percent-encoded"))?;
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        return Err(bad_parameter(name, &text, &format!("1 to {MAX_NAME_BYTES} bytes")).into());
    }
    Ok(text)
}

/// The task of a path.
pub(crate) fn task_of(part: Part) -> Result<TaskId, Failure> {
    let text = text_of("task_id", part)?;
    let must = "a decimal number in 1..=9223372036854775807 without sign or leading zero";
    text.parse().map_err(|_| bad_parameter("task_id", &text, must).into())
}

/// The parameters of a query: only these, each once.
pub(crate) fn query(uri: &Uri, known: &[&str]) -> Result<BTreeMap<String, String>, Failure> {
    query_with_lists(uri, known, "").map(|(found, _)| found)
}

/// The same, except that the parameter of this name may be given several times.
pub(crate) fn query_with_lists(
    uri: &Uri,
    known: &[&str],
    list: &str,
) -> Result<(BTreeMap<String, String>, Vec<String>), Failure> {
    let read = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let pairs = read.map_err(|why| bad_parameter("query", &why.body_text(), "name=value pairs"))?.0;
    let (mut found, mut several) = (BTreeMap::new(), Vec::new());
    for (name, value) in pairs {
        // What is no UTF-8 was read as the replacement character, which nobody means.
        if value.contains(char::REPLACEMENT_CHARACTER) {
            return Err(bad_parameter(&name, &value, "UTF-8, percent-encoded").into());
        }
        if !known.contains(&name.as_str()) {
            let must = if known.is_empty() { "absent".to_owned() } else { format!("one of {}", known.join(", ")) };
            return Err(bad_parameter(&name, &value, &format!("{must}: it is not known")).into());
        }
        if name == list {
            several.push(value);
            continue;
        }
        if found.contains_key(&name) {
            return Err(bad_parameter(&name, &value, "given once").into());
        }
        found.insert(name, value);
    }
    Ok((found, several))
}

/// `limit` of a page. What cannot be meant is refused and never cut silently: a caller that asks for
/// everything shall know that it does not get it.
pub(crate) fn page_limit(text: Option<&String>, default: u32) -> Result<usize, Problem> {
    let Some(text) = text else { return Ok(default as usize) };
    let limit = text.parse::<u32>().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    limit.map(|limit| limit as usize).ok_or_else(|| {
        let value = text.parse::<i64>().map_or_else(|_| text.as_str().into(), serde_json::Value::from);
        bad_field("limit", value, &format!("1 to {MAX_PAGE}")).limit(MAX_PAGE)
    })
}

/// `30s`, `500ms`, or a number of ms.
pub(crate) fn wait_ms(text: &str) -> Result<u64, Failure> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 1000),
        (None, None) => (text, 1),
    };
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let wait = number.parse::<u64>().ok().filter(|_| digits).and_then(|n| n.checked_mul(unit));
    let must = format!("a time of at most {MAX_WAIT_MS} ms: 30s, 500ms, or a number of ms");
    wait.filter(|ms| *ms <= MAX_WAIT_MS).ok_or_else(|| bad_parameter("wait", text, &must).into())
}

/// `Idempotency-Key`.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<Text>, Failure> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let must = format!("given once, 1 to {MAX_NAME_BYTES} visible ASCII characters");
    let shown = String::from_utf8_lossy(value.as_bytes());
    let text = value.to_str().ok().map(str::trim).filter(|text| !text.is_empty() && text.len() <= MAX_NAME_BYTES);
    match (text, values.next()) {
        (Some(text), None) => Ok(Some(text.into())),
        (Some(_) | None, _) => Err(bad_parameter("Idempotency-Key", &shown, &must).into()),
    }
}

/// The span of whoever asks, by `traceparent` (W3C Trace Context); what cannot be read counts as absent,
/// and so does what is there twice, as the standard wants it.
pub(crate) fn parent_of(headers: &HeaderMap) -> Option<TraceParent> {
    TraceParent::of_headers(headers.get_all("traceparent").iter().map(|value| ("traceparent", value.as_bytes())))
}

/// Whether it is a trace id: 32 lower-case hexadecimal digits, not all 0.
pub(crate) fn is_trace(text: &str) -> bool {
    TraceId::parse(text.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_with_their_unit() {
        for (text, ms) in [("30s", Some(30_000)), ("500ms", Some(500)), ("0", Some(0)), ("60000", Some(60_000))] {
            assert_eq!(wait_ms(text).ok(), ms, "{text}");
        }
        for text in ["", "s", "-1", "61s", "60001", "1m", "1.5s", "+3", "99999999999999999999s"] {
            assert!(wait_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_traceparent_counts_once() {
        let mut headers = HeaderMap::new();
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(parent_of(&headers), None);
        headers.append("traceparent", text.parse().expect("a header"));
        assert_eq!(parent_of(&headers), TraceParent::parse(text.as_bytes()));
        headers.append("traceparent", text.parse().expect("a header"));
        assert_eq!(parent_of(&headers), None);
    }
}
