//! The `.avsc` as the strict rules need it: types and ranges, names resolved.

use std::collections::HashMap;

use serde_json::Value;

/// A schema prepared for walking.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Null,
    Boolean,
    Long { min: i64, max: i64 },
    Text,
    Bytes,
    Fixed(usize),
    Enum(u64),
    Array(Box<Node>),
    Map(Box<Node>),
    Union(Box<[Node]>),
    Record(Box<[Node]>),
}

impl Node {
    /// Prepares a schema of ours; `Err` names what this walker does not know.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        Self::build(schema, &mut HashMap::new())
    }

    fn build(schema: &Value, names: &mut HashMap<String, Node>) -> Result<Self, String> {
        match schema {
            Value::String(name) => match name.as_str() {
                "null" => Ok(Self::Null),
                "boolean" => Ok(Self::Boolean),
                "long" => Ok(Self::Long { min: i64::MIN, max: i64::MAX }),
                "string" => Ok(Self::Text),
                "bytes" => Ok(Self::Bytes),
                other => names.get(other).cloned().ok_or_else(|| format!("unknown type {other:?}")),
            },
            Value::Array(branches) => {
                branches.iter().map(|b| Self::build(b, names)).collect::<Result<_, _>>().map(Self::Union)
            }
            Value::Object(object) => {
                let kind = object.get("type").and_then(Value::as_str).ok_or("schema without a type")?;
                let node = match kind {
                    "long" => Self::Long {
                        min: object.get("minimum").and_then(Value::as_i64).unwrap_or(i64::MIN),
                        max: object.get("maximum").and_then(Value::as_i64).unwrap_or(i64::MAX),
                    },
                    "fixed" => {
                        let size = object.get("size").and_then(Value::as_u64).ok_or("fixed without a size")?;
                        Self::Fixed(usize::try_from(size).map_err(|e| e.to_string())?)
                    }
                    "enum" => Self::Enum(
                        object.get("symbols").and_then(Value::as_array).ok_or("enum without symbols")?.len() as u64,
                    ),
                    "array" => Self::Array(Box::new(Self::build(&object["items"], names)?)),
                    "map" => Self::Map(Box::new(Self::build(&object["values"], names)?)),
                    "record" => {
                        let fields = object.get("fields").and_then(Value::as_array).ok_or("record without fields")?;
                        Self::Record(fields.iter().map(|f| Self::build(&f["type"], names)).collect::<Result<_, _>>()?)
                    }
                    plain => Self::build(&Value::String(plain.to_owned()), names)?,
                };
                if let Some(name) = object.get("name").and_then(Value::as_str) {
                    names.insert(name.to_owned(), node.clone());
                }
                Ok(node)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Err(format!("not a schema: {schema}")),
        }
    }
}
