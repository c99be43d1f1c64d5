//! apache-avro by its `Value` path: names, not positions, and no code of ours.

use std::sync::LazyLock;

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Avro;
use apache_avro::writer::datum::GenericDatumWriter;
use serde_json::{Map, Value, json};
use task_events::SCHEMA_JSON;

/// The published schema.
pub static PUBLISHED: LazyLock<apache_avro::Schema> =
    LazyLock::new(|| apache_avro::Schema::parse_str(SCHEMA_JSON).expect("schema parses"));

/// The datum read by its writer's schema, in the JSON form of `decoding.md` §5. `None` when
/// apache-avro refuses it or leaves bytes over.
///
/// Without a reader schema, on purpose: resolving to one, apache-avro 0.22 takes the first branch
/// of a union that can be made to fit, whatever the record's name, so that `TaskCancelRequested`
/// comes back as `TaskRetried` (docs/adr/021). A test below keeps an eye on it.
pub fn to_json(writer: &apache_avro::Schema, datum: &[u8]) -> Option<Value> {
    let reader = GenericDatumReader::builder(writer).build().expect("schema resolves");
    let mut rest = datum;
    let value = reader.read_value(&mut rest).ok()?;
    rest.is_empty().then(|| show(&value, ""))
}

/// Whether what an older schema's reader sees is in the event: everything it sees is there alike;
/// what it doesn't see came later.
pub fn within(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Object(t), Value::Object(o)) => t.iter().all(|(k, v)| o.get(k).is_some_and(|w| within(v, w))),
        (Value::Array(t), Value::Array(o)) => t.len() == o.len() && t.iter().zip(o).all(|(v, w)| within(v, w)),
        (t, o) => t == o,
    }
}

/// Whether apache-avro writes the datum it read as it was. It keeps maps in a hash map, so labels
/// may come back in another order: then the bytes are compared as a heap of bytes.
pub fn rewrites_alike(datum: &[u8]) -> bool {
    let rewritten = || {
        let value = GenericDatumReader::builder(&PUBLISHED).build().ok()?.read_value(&mut &datum[..]).ok()?;
        GenericDatumWriter::builder(&PUBLISHED).build().ok()?.write_value_to_vec(value).ok()
    };
    let sorted = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes.sort_unstable();
        bytes
    };
    rewritten().is_some_and(|again| again == datum || sorted(&again) == sorted(datum))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "not our enum, and most of it occurs in no event")]
fn show(value: &Avro, field: &str) -> Value {
    match value {
        Avro::Null => Value::Null,
        Avro::Boolean(b) => json!(b),
        Avro::Long(n) if matches!(field, "task_id" | "incarnation" | "owner_seq") => json!(n.to_string()),
        Avro::Long(n) => json!(n),
        Avro::String(s) => json!(s),
        Avro::Enum(_, symbol) => json!(symbol),
        Avro::Fixed(16, bytes) => json!(uuid::Uuid::from_slice(bytes).expect("16 bytes").to_string()),
        Avro::Fixed(_, bytes) | Avro::Bytes(bytes) => json!(hex::encode(bytes)),
        Avro::Union(_, inner) => show(inner, field),
        Avro::Array(items) => items.iter().map(|i| show(i, field)).collect(),
        Avro::Map(entries) => {
            Value::Object(entries.iter().map(|(k, v)| (k.clone(), show(v, ""))).collect::<Map<_, _>>())
        }
        Avro::Record(fields) => {
            Value::Object(fields.iter().map(|(k, v)| (k.clone(), show(v, k))).collect::<Map<_, _>>())
        }
        other => panic!("{other:?} occurs in no event"),
    }
}

#[test]
fn a_reader_schema_is_still_no_use_with_a_union_of_records() {
    let event = task_events::samples::full(task_events::Kind::TaskCancelRequested);
    let value = task_events::encode(&event, task_events::samples::PARTITION).unwrap().value;
    let reader = GenericDatumReader::builder(&PUBLISHED).reader_schema(&PUBLISHED).build().unwrap();
    let resolved = show(&reader.read_value(&mut &value[5..]).unwrap(), "");
    assert_eq!(resolved["kind"], "TaskCancelRequested");
    assert_eq!(resolved["body"], json!({"not_before": null}), "mended upstream? then use it in to_json");
}
