//! A task's records as a history that people read, with the verdict on each.

use comfy_table::Color;
use rest_client::contract::{EventView, EventsView};
use serde_json::Value;

use super::listing::{Column, Listing, Shown};
use super::screen::Screen;
use super::times::shown;

/// Longest summary of a record, characters.
const SUMMARY_CHARS: usize = 120;

/// Facts of bodies that tell people nothing beside the rest.
const DULL: [&str; 4] = ["hash_form", "request_hash", "key_hash", "payload_hash"];

/// What is told of each record. The event and its verdict always stay.
const COLUMNS: [Column; 7] = [
    Column::number("offset", 5),
    Column::new("time", 4),
    Column::text("verdict", 0, 8),
    Column::number("no", 1),
    Column::number("attempt", 2),
    Column::new("event", 0),
    Column::text("what", 3, 20),
];

/// The history.
pub fn history(view: &EventsView, screen: &Screen) -> String {
    let mut list = Listing::new(&COLUMNS);
    for event in &view.events {
        let field = |name: &str| event.event.as_ref().and_then(|e| e.get(name));
        let number = |name: &str| field(name).and_then(Value::as_u64).filter(|n| *n > 0).map(|n| n.to_string());
        list.row([
            event.offset.to_string().into(),
            shown(event.broker_time).into(),
            verdict(event),
            number("event_sequence").unwrap_or_default().into(),
            number("exec_epoch").unwrap_or_default().into(),
            field("kind").and_then(Value::as_str).unwrap_or("?").into(),
            field("body").map(summary).unwrap_or_default().into(),
        ]);
    }
    let deleted = match view.deleted.len() {
        0 => String::new(),
        n => format!("\n{n} older records are no longer kept"),
    };
    format!("{}{deleted}", list.show(screen))
}

fn verdict(event: &EventView) -> Shown {
    match (&event.reason, event.verdict.as_str()) {
        (None, "accepted") => Shown::coloured("accepted", Color::Green),
        (None, other) => Shown::coloured(other, Color::Red),
        (Some(reason), other) => Shown::coloured(format!("{other}: {reason}"), Color::Red),
    }
}

/// What a body says, in one line: scalars by name, lists by their length, one level deep.
pub fn summary(body: &Value) -> String {
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
            next_cursor: None,
        };
        let text = history(&view, &Screen { width: None, colour: false });
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
        for width in [40, 80, 120] {
            let text = history(&view, &Screen { width: Some(width), colour: false });
            assert!(text.lines().all(|line| line.width() <= usize::from(width)), "{width}\n{text}");
            assert!(text.contains("TaskCompleted") && text.contains("rejected"), "{width}\n{text}");
        }
    }
}
