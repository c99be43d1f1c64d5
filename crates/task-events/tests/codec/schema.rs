//! The published schema: its copies, its evolution, and that the types mirror it.

use apache_avro::schema_compatibility::{Compatibility, SchemaCompatibility};
use serde_json::Value;
use task_events::{Kind, SCHEMA_ID, SCHEMA_JSON};

use crate::fixtures;
use crate::second_opinion::PUBLISHED;

fn published() -> Value {
    serde_json::from_str(SCHEMA_JSON).unwrap()
}

fn version(n: u32) -> String {
    std::fs::read_to_string(fixtures().join(format!("v{n}/task-execution-event.avsc"))).unwrap()
}

#[test]
fn the_newest_copy_is_the_published_schema() {
    assert_eq!(SCHEMA_ID, 1, "keep the copy of version 1 and add one of the new version");
    assert!(version(SCHEMA_ID) == SCHEMA_JSON, "fixtures/v{SCHEMA_ID}/task-execution-event.avsc is another schema");
}

#[test]
fn every_version_within_retention_can_be_read() {
    for n in 1..=SCHEMA_ID {
        let writer = apache_avro::Schema::parse_str(&version(n)).unwrap();
        assert_eq!(SchemaCompatibility::can_read(&writer, &PUBLISHED).unwrap(), Compatibility::Full, "version {n}");
        let older: Value = serde_json::from_str(&version(n)).unwrap();
        assert_eq!(extends(&older, &published(), ""), Ok(()), "version {n}");
    }
}

/// Stricter than Avro: positions never move, so old indices and old readers' tables stay true.
/// New fields come last and have a default; symbols and branches are only added at the end.
fn extends(old: &Value, new: &Value, at: &str) -> Result<(), String> {
    let grown = |what: &str, name: &str| format!("{at}{name}: {what}");
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => {
            if new.len() < old.len() {
                return Err(grown("a branch was removed", ""));
            }
            old.iter().zip(new).try_for_each(|(o, n)| extends(o, n, at))
        }
        (Value::Object(o), Value::Object(n)) => {
            for attribute in ["type", "name", "namespace", "size", "minimum", "maximum", "items", "values", "default"] {
                match (o.get(attribute), n.get(attribute)) {
                    (Some(old), Some(new)) => extends(old, new, &format!("{at}{attribute}."))?,
                    (None, None) => {}
                    _ => return Err(grown("was added or removed", attribute)),
                }
            }
            if let (Some(Value::Array(o)), Some(Value::Array(n))) = (o.get("symbols"), n.get("symbols"))
                && !n.starts_with(o)
            {
                return Err(grown("changed", "symbols"));
            }
            if let (Some(Value::Array(o)), Some(Value::Array(n))) = (o.get("fields"), n.get("fields")) {
                if n.len() < o.len() {
                    return Err(grown("a field was removed", ""));
                }
                for (old, new) in o.iter().zip(n) {
                    extends(old, new, &format!("{at}{}.", old["name"].as_str().unwrap_or("?")))?;
                }
                if let Some(bare) = n[o.len()..].iter().find(|f| f.get("default").is_none()) {
                    return Err(grown("a new field has no default", bare["name"].as_str().unwrap_or("?")));
                }
            }
            Ok(())
        }
        (old, new) if old == new => Ok(()),
        (old, new) => Err(grown(&format!("{old} became {new}"), "")),
    }
}

#[test]
fn what_would_break_old_records_is_noticed() {
    let at = |v: &mut Value, i: usize| v["fields"][i].clone();
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 6] = [
        ("a field removed", |v| drop(v["fields"].as_array_mut().unwrap().remove(3))),
        ("a field without a default", |v| {
            v["fields"].as_array_mut().unwrap().push(serde_json::json!({"name": "x", "type": "long"}));
        }),
        ("a symbol moved", |v| v["fields"][1]["type"]["symbols"].as_array_mut().unwrap().swap(0, 1)),
        ("a branch removed", |v| drop(v["fields"][13]["type"].as_array_mut().unwrap().pop())),
        ("a narrower range", |v| v["fields"][2]["type"]["maximum"] = 10.into()),
        ("another type", |v| v["fields"][9]["type"] = "bytes".into()),
    ];
    for (what, change) in changes {
        let mut new = published();
        change(&mut new);
        assert!(extends(&published(), &new, "").is_err(), "{what}");
    }
    let mut new = published();
    let mut field = at(&mut new, 10);
    field["name"] = "x".into();
    new["fields"].as_array_mut().unwrap().push(field);
    new["fields"][1]["type"]["symbols"].as_array_mut().unwrap().push("TaskNew".into());
    assert_eq!(extends(&published(), &new, ""), Ok(()));
}

#[test]
fn a_kind_has_one_index_everywhere() {
    let schema = published();
    let names = |list: &Value, of: fn(&Value) -> &Value| {
        list.as_array().unwrap().iter().map(|v| of(v).as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let kinds: Vec<_> = Kind::ALL.iter().map(|k| k.as_str().to_owned()).collect();
    assert_eq!(names(&schema["fields"][1]["type"]["symbols"], |v| v), kinds);
    assert_eq!(names(&schema["fields"][13]["type"], |v| &v["name"]), kinds);
    for (index, kind) in Kind::ALL.iter().enumerate() {
        assert_eq!(*kind as usize, index, "{kind}");
    }
}

#[test]
fn enums_have_the_symbols_of_the_schema_in_its_order() {
    use task_events::*;
    let schema = published();
    macro_rules! same {
        ($($name:ident)*) => { $(
            let symbols: Vec<_> = $name::ALL.iter().map(|s| s.as_str()).collect();
            let named = find(&schema, stringify!($name)).expect(stringify!($name));
            assert_eq!(named["symbols"], serde_json::json!(symbols), stringify!($name));
            for (index, symbol) in $name::ALL.iter().enumerate() { assert_eq!(*symbol as usize, index); }
        )* };
    }
    same!(Kind Service HashForm ReleaseReason ErrorCategory TimeoutKind Witness TaskState ReplayFrom ReviewOutcome ReportedStatus);
}

fn find<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema {
        Value::Object(o) if o.get("type").is_some_and(|t| t == "enum") && o["name"] == name => Some(schema),
        Value::Object(o) => o.values().find_map(|v| find(v, name)),
        Value::Array(items) => items.iter().find_map(|v| find(v, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
