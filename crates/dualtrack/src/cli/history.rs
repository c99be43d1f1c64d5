//! A task's records as a history that people read, with the verdict on each.

use comfy_table::{Cell, CellAlignment, Color};
use rest_client::contract::{EventView, EventsView};
use serde_json::Value;

use super::show::{coloured, plain, table};
use super::times::shown;

/// Longest summary of a record, characters.
const SUMMARY_CHARS: usize = 120;

/// Facts of bodies that tell people nothing beside the rest.
const DULL: [&str; 4] = ["hash_form", "request_hash", "key_hash", "payload_hash"];

/// The history.
pub fn history(view: &EventsView) -> String {
    let mut table = table();
    let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    table.set_header(["offset", "time", "verdict", "no", "attempt", "event", "what"]);
    for event in &view.events {
        let field = |name: &str| event.event.as_ref().and_then(|e| e.get(name));
        let shown_number = |name: &str| field(name).and_then(Value::as_u64).filter(|n| *n > 0).map(|n| n.to_string());
        table.add_row([
            number(event.offset.to_string()),
            Cell::new(shown(event.broker_time)),
            verdict(event),
            number(shown_number("event_sequence").unwrap_or_default()),
            number(shown_number("exec_epoch").unwrap_or_default()),
            Cell::new(plain(field("kind").and_then(Value::as_str).unwrap_or("?"))),
            Cell::new(plain(&field("body").map(summary).unwrap_or_default())),
        ]);
    }
    let deleted = match view.deleted.len() {
        0 => String::new(),
        n => format!("\n{n} older records are beyond the log's retention"),
    };
    format!("{table}{deleted}")
}

fn verdict(event: &EventView) -> Cell {
    match (&event.reason, event.verdict.as_str()) {
        (None, "accepted") => coloured("accepted", Color::Green),
        (None, other) => coloured(other, Color::Red),
        (Some(reason), other) => coloured(&format!("{other}: {reason}"), Color::Red),
    }
}

// What a body says, in one line: scalars by name, lists by their length, one level deep.
fn summary(body: &Value) -> String {
    let mut facts = Vec::new();
    for (name, value) in body.as_object().into_iter().flatten().filter(|(name, _)| !DULL.contains(&name.as_str())) {
        match value.as_object() {
            Some(inner) => facts.extend(inner.iter().filter_map(|(name, value)| fact(name, value))),
            None => facts.extend(fact(name, value)),
        }
    }
    let text = facts.join(" ");
    if text.chars().count() <= SUMMARY_CHARS {
        return text;
    }
    text.chars().take(SUMMARY_CHARS).chain(['…']).collect()
}

fn fact(name: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::Bool(false) => None,
        Value::Bool(true) => Some(name.to_owned()),
        Value::Number(n) => Some(format!("{name}={n}")),
        Value::String(text) if text.is_empty() => None,
        Value::String(text) if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
            Some(format!("{name}={}…", &text[..12]))
        }
        Value::String(text) => Some(format!("{name}={text}")),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(format!("{name}×{}", items.len())),
    }
}

#[cfg(test)]
mod tests {
    use rest_client::contract::AsOf;
    use serde_json::json;
    use task_events::TaskId;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn a_history_tells_who_did_what_and_what_did_not_count() {
        let event = |offset, verdict: &str, reason: Option<&str>, event| EventView {
            offset,
            broker_time: 0,
            verdict: verdict.into(),
            reason: reason.map(Into::into),
            event,
        };
        let created = json!({"kind": "TaskCreated", "event_sequence": 1, "exec_epoch": 0,
            "body": {"task_type": "订单", "queue": "q", "deadline": null, "labels": {"国": "中"}, "key_hash": "00"}});
        let late = json!({"kind": "TaskCompleted", "event_sequence": 4, "exec_epoch": 1,
            "body": {"result_data_hash": "ab".repeat(32), "steps_done": [1, 2], "execution_time_ms": 7}});
        let view = EventsView {
            task_id: TaskId::from_raw(1 << 22).expect("an id"),
            events: vec![
                event(7, "accepted", None, Some(created)),
                event(9, "rejected", Some("stale_epoch"), Some(late)),
                event(11, "quarantined", Some("bad_crc"), None),
            ],
            deleted: vec![1, 2],
            as_of: AsOf { partition: 0, offset: 12 },
        };
        let text = history(&view);
        for words in [
            "task_type=订单",
            "国=中",
            "rejected: stale_epoch",
            "quarantined: bad_crc",
            "steps_done×2",
            "result_data_hash=abababababab…",
            "2 older records",
        ] {
            assert!(text.contains(words), "{words} is missing in\n{text}");
        }
        assert!(!text.contains("key_hash") && !text.contains("deadline"), "{text}");
        let widths: Vec<usize> = text.lines().filter(|l| !l.starts_with('2')).map(|line| line.width()).collect();
        assert!(widths.windows(2).all(|w| w[0] == w[1]), "{widths:?}\n{text}");
    }
}
