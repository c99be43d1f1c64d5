//! Records that every reader accepts, each with the event it must give.

use serde_json::{Value, json};

use crate::Case;
use crate::wire::{Draft, Part, Record, join, long, null, some, text};

/// `OwnershipRenewed`: the kind without fields.
pub fn renewed() -> Draft {
    Draft::new("OwnershipRenewed", 27, vec![])
}

/// `TaskCreated` with empty or null fields.
pub fn created() -> Draft {
    let body = vec![
        ("task_type", text("t")),
        ("queue", text("q")),
        ("creator", text("c")),
        ("priority", long(4)),
        ("deadline", null()),
        ("not_before", null()),
        ("payload_hash", vec![0xaa; 32]),
        ("hash_form", long(0)),
        ("payload_ref", null()),
        ("business_key", null()),
        ("labels", long(0)),
        ("concurrency_key", null()),
        ("start_to_close_ms", long(3_600_000)),
        ("schedule_to_start_ms", null()),
        ("max_retries", long(3)),
        ("trace_given", vec![0]),
        ("key_hash", null()),
        ("request_hash", null()),
    ];
    Draft::new("TaskCreated", 0, body).set("task_id", some(long(42))).set("event_sequence", long(1))
}

/// `TaskCompleted` without steps.
pub fn completed() -> Draft {
    let body = vec![
        ("execution_id", hex::decode("00000000000080059000000018000000").unwrap()),
        ("result_data_hash", vec![0xbb; 32]),
        ("execution_time_ms", long(12)),
        ("steps_done", long(0)),
        ("memory_usage_percent", long(40)),
    ];
    Draft::new("TaskCompleted", 5, body).set("task_id", some(long(42)))
}

/// `TaskFailed`, the kind with an optional boolean.
pub fn failed() -> Draft {
    let body = vec![
        ("execution_id", vec![0; 16]),
        ("error_code", text("E1")),
        ("error_message", text("")),
        ("category", long(0)),
        ("failed_step", null()),
        ("is_idempotent", null()),
        ("execution_time_ms", long(0)),
        ("steps_done", long(0)),
        ("memory_usage_percent", long(0)),
    ];
    Draft::new("TaskFailed", 6, body).set("task_id", some(long(42)))
}

/// `LogSealed` with this note.
pub fn sealed(note: &str) -> Draft {
    Draft::new("LogSealed", 29, vec![("note", text(note))])
}

/// One step.
pub fn step(name: &str) -> Vec<u8> {
    join(&[&text(name), &long(0), &[0xcc; 32], &[1]])
}

fn event(kind: &str, changes: Value, body: Value) -> Value {
    let mut event = json!({
        "event_id": "11111111-1111-1111-1111-111111111111", "kind": kind, "event_sequence": 0, "task_id": null,
        "run_no": 0, "exec_epoch": 0, "partition_epoch": null, "owner_seq": null, "event_time": 1_800_000_000_000_i64,
        "trace_id": "", "causation_id": null,
        "producer": {"service": "COORDINATOR", "instance": "c-1", "incarnation": "99"},
        "rule_version": 1, "body": body
    });
    for (field, value) in changes.as_object().unwrap() {
        event[field.as_str()] = value.clone();
    }
    event
}

fn created_body(changes: Value) -> Value {
    let mut body = json!({
        "task_type": "t", "queue": "q", "creator": "c", "priority": 4, "deadline": null, "not_before": null,
        "payload_hash": "aa".repeat(32), "hash_form": "PLAIN_SHA256", "payload_ref": null, "business_key": null,
        "labels": {}, "concurrency_key": null,
        "timeouts": {"start_to_close_ms": 3_600_000, "schedule_to_start_ms": null},
        "max_retries": 3, "trace_given": false, "key_hash": null, "request_hash": null
    });
    for (field, value) in changes.as_object().unwrap() {
        body[field.as_str()] = value.clone();
    }
    body
}

fn created_event(changes: Value) -> Value {
    event("TaskCreated", json!({"task_id": "42", "event_sequence": 1}), created_body(changes))
}

/// The cases.
#[rustfmt::skip] // a table: one record a line
pub fn cases() -> Vec<Case> {
    let plain = || event("OwnershipRenewed", json!({}), json!({}));
    let note = |text: &str| Some(event("LogSealed", json!({}), json!({"note": text})));
    let utf16_trap = join(&[&long(2), &text("\u{ffff}"), &text("1"), &text("\u{10000}"), &text("2"), &long(0)]);
    let full = renewed()
        .set("event_sequence", long(4_294_967_295))
        .set("task_id", some(long(i64::MAX)))
        .set("run_no", long(4_294_967_295))
        .set("exec_epoch", long(4_294_967_295))
        .set("partition_epoch", some(long(4_294_967_295)))
        .set("owner_seq", some(long(i64::MAX)))
        .set("event_time", long(i64::MIN))
        .set("trace_id", text("4bf92f3577b34da6a3ce929d0e0e4736"))
        .set("causation_id", some((0..16).collect()))
        .set("service", long(3))
        .set("incarnation", long(i64::MAX));
    let full_event = event(
        "OwnershipRenewed",
        json!({
            "event_sequence": 4_294_967_295_u32, "task_id": "9223372036854775807", "run_no": 4_294_967_295_u32,
            "exec_epoch": 4_294_967_295_u32, "partition_epoch": 4_294_967_295_u32,
            "owner_seq": "9223372036854775807", "event_time": i64::MIN,
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "causation_id": "00010203-0405-0607-0809-0a0b0c0d0e0f",
            "producer": {"service": "AUDIT_REPORT", "instance": "c-1", "incarnation": "9223372036854775807"}
        }),
        json!({}),
    );
    let step_json = json!({"step": "pay", "index": 0, "output_hash": "cc".repeat(32), "is_idempotent": true});
    let completed_event = event(
        "TaskCompleted",
        json!({"task_id": "42"}),
        json!({
            "execution_id": "00000000-0000-8005-9000-000018000000", "result_data_hash": "bb".repeat(32),
            "execution_time_ms": 12, "steps_done": [step_json, step_json], "memory_usage_percent": 40
        }),
    );
    // Headers of a record don't count into its size: 2 MiB are the framed value alone.
    let limit = 2 * 1024 * 1024;
    let head = sealed("").record().bytes().unwrap();
    let head = &head[..head.len() - 1];
    let note_len = limit - head.len() - 4;
    let largest = vec![Part::Bytes(join(&[head, &long(note_len as i64)])), Part::Repeat(b'a', note_len)];
    assert_eq!(Record::of("", largest.clone()).bytes().unwrap().len(), limit);

    vec![
        Case::ok("a body without fields", renewed().record(), Some(plain())),
        Case::ok("all options set and every number at its bound", full.record(), Some(full_event)),
        Case::ok("time at the upper bound", renewed().set("event_time", long(i64::MAX)).record(),
            Some(event("OwnershipRenewed", json!({"event_time": i64::MAX}), json!({})))),
        Case::ok("a task with defaults", created().record().key(Some(b"42")), Some(created_event(json!({})))),
        Case::ok("priority 0", created().set("priority", long(0)).record(), Some(created_event(json!({"priority": 0})))),
        Case::ok("priority 9", created().set("priority", long(9)).record(), Some(created_event(json!({"priority": 9})))),
        Case::ok("labels ascending by bytes, not by UTF-16 units", created().set("labels", utf16_trap).record(),
            Some(created_event(json!({"labels": {"\u{ffff}": "1", "\u{10000}": "2"}})))),
        Case::ok("an empty label name before a prefix before a longer one",
            created().set("labels", join(&[&long(3), &text(""), &text("x"), &text("a"), &text(""), &text("ab"), &text("y"), &long(0)])).record(),
            Some(created_event(json!({"labels": {"": "x", "a": "", "ab": "y"}})))),
        Case::ok("a label called like an id stays as given",
            created().set("labels", join(&[&long(1), &text("task_id"), &text("007"), &long(0)])).record(),
            Some(created_event(json!({"labels": {"task_id": "007"}})))),
        Case::ok("an optional hash", created().set("key_hash", some(vec![0xde; 32])).set("hash_form", long(1)).record(),
            Some(created_event(json!({"key_hash": "de".repeat(32), "hash_form": "SALTED_SHA256"})))),
        Case::ok("an array in one block", completed().set("steps_done", join(&[&long(2), &step("pay"), &step("pay"), &long(0)])).record(),
            Some(completed_event)),
        Case::ok("U+0000, a non-character and four bytes of UTF-8 are text", sealed("\0\u{ffff}\u{1f600}").record(), note("\0\u{ffff}\u{1f600}")),
        Case::ok("text is not normalised", sealed("e\u{301}\u{e9}").record(), note("e\u{301}\u{e9}")),
        Case::ok("an empty note", sealed("").record(), note("")),
        Case::ok("exactly 2 MiB", Record::of("LogSealed", largest), None),
        Case::ok("traceparent and unknown headers, also repeated, are not looked at",
            renewed().record().with("traceparent", b"nonsense").with("x", b"").with("x", &[0xff]).with("traceparent", b""), Some(plain())),
        Case::ok("header names are case-sensitive: Kind is an unknown header", renewed().record().with("Kind", b"TaskLost"), Some(plain())),
        Case::ok("headers in another order", { let mut r = renewed().record(); r.headers.reverse(); r }, Some(plain())),
        Case::ok("no key is not malformed", renewed().record().key(None), Some(plain())),
        Case::ok("a foreign key is not malformed", renewed().record().key(Some(&[0xff, 0])), Some(plain())),
        Case::ok("a control kind with a task is not malformed", renewed().set("task_id", some(long(1))).record(),
            Some(event("OwnershipRenewed", json!({"task_id": "1"}), json!({})))),
        Case::ok("a task kind without a task is not malformed", created().set("task_id", null()).set("event_sequence", long(0)).record(),
            Some(event("TaskCreated", json!({}), created_body(json!({}))))),
        Case::ok("a foreign writer is not malformed", renewed().set("service", long(1)).record(),
            Some(event("OwnershipRenewed", json!({"producer": {"service": "TASK_ENGINE", "instance": "c-1", "incarnation": "99"}}), json!({})))),
        Case::ok("rule version 0 and its header", renewed().set("rule_version", long(0)).record().header("rule-version", b"0"),
            Some(event("OwnershipRenewed", json!({"rule_version": 0}), json!({})))),
        Case::ok("a rule version that is not active is information", renewed().set("rule_version", long(4_294_967_295)).record().header("rule-version", b"4294967295"),
            Some(event("OwnershipRenewed", json!({"rule_version": 4_294_967_295_u32}), json!({})))),
        Case::ok("true as a boolean", failed().set("is_idempotent", some(vec![1])).record(),
            Some(event("TaskFailed", json!({"task_id": "42"}), json!({
                "execution_id": "00000000-0000-0000-0000-000000000000", "error_code": "E1", "error_message": "",
                "category": "TRANSIENT", "failed_step": null, "is_idempotent": true, "execution_time_ms": 0,
                "steps_done": [], "memory_usage_percent": 0})))),
    ]
}
