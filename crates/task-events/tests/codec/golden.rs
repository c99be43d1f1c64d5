//! Golden records of every published version: bytes that stay readable for as long as the log.

use serde_json::{Value, json};
use task_events::{Event, Kind, SCHEMA_ID, encode, samples, to_json};

use crate::{fixtures, read, read_back, second_opinion};

fn forms() -> impl Iterator<Item = (String, Event)> {
    Kind::ALL.iter().flat_map(|&k| [(k.to_string(), samples::minimal(k)), (format!("{k}.full"), samples::full(k))])
}

fn text_of(event: &Event) -> (Vec<u8>, String) {
    let record = encode(event, samples::PARTITION).expect("samples encode");
    let headers: Vec<Value> = record.headers.iter().map(|(n, c)| json!([n, std::str::from_utf8(c).unwrap()])).collect();
    let key = std::str::from_utf8(&record.key).unwrap();
    let text = json!({"key": key, "headers": headers, "event": to_json(event)});
    (record.value.to_vec(), format!("{}\n", serde_json::to_string_pretty(&text).unwrap()))
}

/// Only on demand, and only for the version being written: a changed golden record of a published
/// version means that the log of somebody can't be read any more.
pub fn write(folder: &std::path::Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("task-execution-event.avsc"), task_events::SCHEMA_JSON).unwrap();
    for (name, event) in forms() {
        let (value, text) = text_of(&event);
        std::fs::write(folder.join(format!("{name}.bin")), value).unwrap();
        std::fs::write(folder.join(format!("{name}.json")), text).unwrap();
    }
}

#[test]
fn the_current_version_is_written_to_the_byte() {
    let folder = fixtures().join(format!("v{SCHEMA_ID}"));
    for (name, event) in forms() {
        let (value, text) = text_of(&event);
        assert_eq!(std::fs::read(folder.join(format!("{name}.bin"))).unwrap(), value, "{name}.bin");
        assert_eq!(std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap(), text, "{name}.json");
    }
}

#[test]
fn every_version_is_read_as_apache_avro_reads_it() {
    for version in 1..=SCHEMA_ID {
        let folder = fixtures().join(format!("v{version}"));
        let schema = std::fs::read_to_string(folder.join("task-execution-event.avsc")).unwrap();
        let writer = apache_avro::Schema::parse_str(&schema).unwrap();
        let mut seen = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "bin") {
                continue;
            }
            seen += 1;
            let name = path.display();
            let value = std::fs::read(&path).unwrap();
            let text: Value = serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap()).unwrap();
            let headers: Vec<(&str, &[u8])> = text["headers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|h| (h[0].as_str().unwrap(), h[1].as_str().unwrap().as_bytes()))
                .collect();
            let event = read(&headers, &value).unwrap_or_else(|reason| panic!("{name}: {reason}"));
            assert_eq!(to_json(&event), text["event"], "{name}");
            let theirs = second_opinion::to_json(&writer, &value[5..]).unwrap_or_else(|| panic!("{name}"));
            assert!(second_opinion::within(&theirs, &text["event"]), "{name}: {theirs}");
            if version == SCHEMA_ID {
                assert_eq!(theirs, text["event"], "{name}");
                let again = encode(&event, samples::PARTITION).unwrap();
                assert_eq!(again.value, value, "{name}");
                assert_eq!(again.key, text["key"].as_str().unwrap().as_bytes(), "{name}");
                assert_eq!(read_back(&again), Ok(event), "{name}");
                assert!(second_opinion::rewrites_alike(&value[5..]), "{name}");
            }
        }
        assert!(seen >= 2 * 30, "version {version} has {seen} golden records");
    }
}

#[test]
fn a_full_event_leaves_nothing_empty() {
    fn empty(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::String(s) => s.is_empty(),
            Value::Array(items) => items.is_empty() || items.iter().any(empty),
            Value::Object(fields) => fields.values().any(empty),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }
    for &kind in Kind::ALL {
        assert!(!empty(&to_json(&samples::full(kind))["body"]), "{kind}");
    }
}
