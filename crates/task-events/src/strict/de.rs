//! The strict walk as a serde deserializer: checks and builds in one pass, so that there is no
//! second decoder that could refuse what the document accepts.
//!
//! Records, enums and the union of bodies are read by position, not by name: the types mirror the
//! current `.avsc` field by field (`tests/schema.rs`), and names would cost half the time.

use std::fmt;

use serde::Deserialize;
use serde::de::value::U32Deserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::{DatumFault, Node, Walk};

/// Reads exactly one strict datum.
pub(crate) fn read<'de, T: Deserialize<'de>>(node: &Node, datum: &'de [u8]) -> Result<T, Refused> {
    let mut walk = Walk { rest: datum };
    let value = T::deserialize(At { walk: &mut walk, node })?;
    if walk.rest.is_empty() { Ok(value) } else { Err(DatumFault::Trailing.into()) }
}

/// Why [`read`] gave no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The datum is not strict.
    Fault(DatumFault),
    /// Schema and types disagree: a defect of this crate, shown by its tests.
    Types,
}

impl From<DatumFault> for Refused {
    fn from(fault: DatumFault) -> Self {
        Self::Fault(fault)
    }
}
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Types => f.write_str("schema and types disagree"),
        }
    }
}
impl std::error::Error for Refused {}
impl de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Types
    }
}

struct At<'w, 'de> {
    walk: &'w mut Walk<'de>,
    node: &'w Node,
}

impl<'w, 'de> Deserializer<'de> for At<'w, 'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node {
            Node::Null => visitor.visit_unit(),
            Node::Boolean => visitor.visit_bool(self.walk.boolean()?),
            Node::Long { min, max } => visitor.visit_i64(self.walk.ranged(*min, *max)?),
            Node::Text => visitor.visit_borrowed_str(self.walk.text()?),
            Node::Bytes => visitor.visit_borrowed_bytes(self.walk.sized()?),
            Node::Fixed(size) => visitor.visit_borrowed_bytes(self.walk.take(*size)?),
            Node::Array(items) => {
                let left = self.walk.count()?;
                let walk = &mut *self.walk;
                let value = visitor.visit_seq(Items { walk, node: items, left })?;
                self.walk.end_of_items(left)?;
                Ok(value)
            }
            Node::Map(values) => {
                let left = self.walk.count()?;
                let walk = &mut *self.walk;
                let value = visitor.visit_map(Entries { walk, node: values, left, last: None })?;
                self.walk.end_of_items(left)?;
                Ok(value)
            }
            Node::Record(fields) => visitor.visit_seq(Fields { walk: self.walk, nodes: fields.iter() }),
            Node::Enum(_) | Node::Union(_) => Err(Refused::Types),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Node::Union(branches) = self.node else { return Err(Refused::Types) };
        let branch = self.walk.index(branches.len() as u64)?;
        let node = &branches[branch];
        if matches!(node, Node::Null) { visitor.visit_none() } else { visitor.visit_some(At { walk: self.walk, node }) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match self.node {
            Node::Enum(symbols) => {
                let index = self.walk.index(*symbols)? as u32;
                visitor.visit_enum(IntoDeserializer::<Refused>::into_deserializer(index))
            }
            Node::Union(branches) => {
                let index = self.walk.index(branches.len() as u64)?;
                visitor.visit_enum(Branch { index: index as u32, at: At { walk: self.walk, node: &branches[index] } })
            }
            Node::Null
            | Node::Boolean
            | Node::Long { .. }
            | Node::Text
            | Node::Bytes
            | Node::Fixed(_)
            | Node::Array(_)
            | Node::Map(_)
            | Node::Record(_) => Err(Refused::Types),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Fields<'w, 'de> {
    walk: &'w mut Walk<'de>,
    nodes: std::slice::Iter<'w, Node>,
}

impl<'de> de::SeqAccess<'de> for Fields<'_, 'de> {
    type Error = Refused;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        let Some(node) = self.nodes.next() else { return Ok(None) };
        seed.deserialize(At { walk: self.walk, node }).map(Some)
    }
}

struct Items<'w, 'de> {
    walk: &'w mut Walk<'de>,
    node: &'w Node,
    left: u64,
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = Refused;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(At { walk: self.walk, node: self.node }).map(Some)
    }
    // Not above the bytes left, and serde caps what it reserves by it at 1 MiB.
    fn size_hint(&self) -> Option<usize> {
        usize::try_from(self.left).ok()
    }
}

struct Entries<'w, 'de> {
    walk: &'w mut Walk<'de>,
    node: &'w Node,
    left: u64,
    last: Option<&'de str>,
}

impl<'de> de::MapAccess<'de> for Entries<'_, 'de> {
    type Error = Refused;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let key = self.walk.key(&mut self.last)?;
        seed.deserialize(de::value::BorrowedStrDeserializer::new(key)).map(Some)
    }
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Refused> {
        seed.deserialize(At { walk: self.walk, node: self.node })
    }
}

struct Branch<'w, 'de> {
    index: u32,
    at: At<'w, 'de>,
}

impl<'w, 'de> de::EnumAccess<'de> for Branch<'w, 'de> {
    type Error = Refused;
    type Variant = Body<'w, 'de>;
    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), Refused> {
        let index: U32Deserializer<Refused> = self.index.into_deserializer();
        Ok((seed.deserialize(index)?, Body(self.at)))
    }
}

struct Body<'w, 'de>(At<'w, 'de>);

impl<'de> de::VariantAccess<'de> for Body<'_, 'de> {
    type Error = Refused;
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refused> {
        seed.deserialize(self.0)
    }
    fn unit_variant(self) -> Result<(), Refused> {
        Err(Refused::Types)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Refused> {
        Err(Refused::Types)
    }
    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Refused> {
        Err(Refused::Types)
    }
}
