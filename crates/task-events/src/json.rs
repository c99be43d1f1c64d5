//! The JSON form of an event for people (`schemas/decoding.md` §5): history, fixtures, API.
//!
//! Written through the same `Serialize` impls as the Avro form, so a new kind or field appears
//! here without being named; only the few fields that JSON can't hold as they are stand in a list.

use std::fmt;

use serde::ser::{self, Impossible, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Event;

/// Numbers beyond 2^53, which JavaScript would round: shown as decimal strings.
const AS_TEXT: [&str; 3] = ["task_id", "incarnation", "owner_seq"];
/// 16-byte fields shown as UUIDs; all other bytes are shown in hexadecimal.
const AS_UUID: [&str; 3] = ["event_id", "causation_id", "execution_id"];

/// An event as JSON for people: envelope fields by schema name, `body` without the union's
/// wrapper, ids beyond 2^53 as strings, UUIDs and hashes as text. Never read back into the log.
pub fn to_json(event: &Event) -> Value {
    // The types hold nothing that the writer below refuses; a unit test walks every kind.
    event.serialize(Writer { field: "" }).unwrap_or_else(|e| Value::String(e.0))
}

#[derive(Clone, Copy)]
struct Writer {
    field: &'static str,
}

impl Writer {
    fn number(self, n: impl Into<serde_json::Number> + fmt::Display) -> Value {
        if AS_TEXT.contains(&self.field) { Value::String(n.to_string()) } else { Value::Number(n.into()) }
    }
}

#[derive(Debug)]
struct NotJson(String);

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for NotJson {}
impl ser::Error for NotJson {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        Self(msg.to_string())
    }
}

fn unused<T>(what: &str) -> Result<T, NotJson> {
    Err(NotJson(format!("{what} occurs in no event")))
}

impl ser::Serializer for Writer {
    type Ok = Value;
    type Error = NotJson;
    type SerializeSeq = Items;
    type SerializeTuple = Impossible<Value, NotJson>;
    type SerializeTupleStruct = Impossible<Value, NotJson>;
    type SerializeTupleVariant = Impossible<Value, NotJson>;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Impossible<Value, NotJson>;

    fn serialize_bool(self, v: bool) -> Result<Value, NotJson> {
        Ok(Value::Bool(v))
    }
    fn serialize_i8(self, v: i8) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_i16(self, v: i16) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_i32(self, v: i32) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_i64(self, v: i64) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_u8(self, v: u8) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_u16(self, v: u16) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_u32(self, v: u32) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_u64(self, v: u64) -> Result<Value, NotJson> {
        Ok(self.number(v))
    }
    fn serialize_f32(self, _: f32) -> Result<Value, NotJson> {
        unused("a float")
    }
    fn serialize_f64(self, _: f64) -> Result<Value, NotJson> {
        unused("a float")
    }
    fn serialize_char(self, v: char) -> Result<Value, NotJson> {
        Ok(Value::String(v.to_string()))
    }
    fn serialize_str(self, v: &str) -> Result<Value, NotJson> {
        Ok(Value::String(v.to_owned()))
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<Value, NotJson> {
        let uuid = if AS_UUID.contains(&self.field) { Uuid::from_slice(v).ok() } else { None };
        Ok(Value::String(uuid.map_or_else(|| hex::encode(v), |u| u.to_string())))
    }
    fn serialize_none(self) -> Result<Value, NotJson> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<Value, NotJson> {
        v.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, NotJson> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, NotJson> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, symbol: &'static str) -> Result<Value, NotJson> {
        Ok(Value::String(symbol.to_owned()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Result<Value, NotJson> {
        v.serialize(self)
    }
    // The branch of `body`: the envelope's kind already names it.
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        v: &T,
    ) -> Result<Value, NotJson> {
        v.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Items, NotJson> {
        Ok(Items { item: self, items: Vec::new() })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Entries, NotJson> {
        Ok(Entries::default())
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries, NotJson> {
        Ok(Entries::default())
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, NotJson> {
        unused("a tuple")
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, NotJson> {
        unused("a tuple")
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, NotJson> {
        unused("a tuple variant")
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, NotJson> {
        unused("a struct variant")
    }
}

struct Items {
    item: Writer,
    items: Vec<Value>,
}

impl ser::SerializeSeq for Items {
    type Ok = Value;
    type Error = NotJson;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), NotJson> {
        self.items.push(v.serialize(self.item)?);
        Ok(())
    }
    fn end(self) -> Result<Value, NotJson> {
        Ok(Value::Array(self.items))
    }
}

#[derive(Default)]
struct Entries {
    key: String,
    entries: Map<String, Value>,
}

impl ser::SerializeStruct for Entries {
    type Ok = Value;
    type Error = NotJson;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, v: &T) -> Result<(), NotJson> {
        self.entries.insert(field.to_owned(), v.serialize(Writer { field })?);
        Ok(())
    }
    fn end(self) -> Result<Value, NotJson> {
        Ok(Value::Object(self.entries))
    }
}

impl ser::SerializeMap for Entries {
    type Ok = Value;
    type Error = NotJson;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NotJson> {
        let Value::String(text) = key.serialize(Writer { field: "" })? else {
            return unused("a map key other than text");
        };
        self.key = text;
        Ok(())
    }
    // Map values are the users' own: never taken for one of our fields.
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), NotJson> {
        self.entries.insert(std::mem::take(&mut self.key), v.serialize(Writer { field: "" })?);
        Ok(())
    }
    fn end(self) -> Result<Value, NotJson> {
        Ok(Value::Object(self.entries))
    }
}
