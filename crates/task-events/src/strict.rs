//! The strict rules of a datum (`schemas/decoding.md` §3): *malformed* is decided by the document,
//! not by whichever decoder happens to run. Every byte is read once and no length is trusted.
//!
//! [`read`] builds the event by them in one pass. [`check`] only walks: the encoder holds its own
//! output against it, and the tests hold the two against each other.

mod de;
mod node;
#[cfg(test)]
mod tests;

pub(crate) use de::{Refused, read};
pub(crate) use node::Node;

/// Why a datum is malformed. The names are the reasons of `schemas/decoding.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DatumFault {
    /// The datum ends inside a value.
    #[error("truncated")]
    Truncated,
    /// A varint with needless zero groups, or more than 64 bits.
    #[error("varint")]
    Varint,
    /// A number outside its declared range.
    #[error("range")]
    Range,
    /// A negative length or one beyond the end of the datum.
    #[error("length")]
    Length,
    /// A negative (size-prefixed) block count, or a second block: one value has one encoding.
    #[error("block")]
    Block,
    /// A boolean other than 0 or 1.
    #[error("boolean")]
    Boolean,
    /// Bytes of a string that are not UTF-8.
    #[error("utf8")]
    Utf8,
    /// An enum symbol or union branch that the schema does not have.
    #[error("index")]
    Index,
    /// Map keys not strictly ascending by bytes.
    #[error("map_order")]
    MapOrder,
    /// Bytes after the datum.
    #[error("trailing")]
    Trailing,
}

impl DatumFault {
    /// The reason that a record with this fault is quarantined for.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "datum_truncated",
            Self::Varint => "datum_varint",
            Self::Range => "datum_range",
            Self::Length => "datum_length",
            Self::Block => "datum_block",
            Self::Boolean => "datum_boolean",
            Self::Utf8 => "datum_utf8",
            Self::Index => "datum_index",
            Self::MapOrder => "datum_map_order",
            Self::Trailing => "datum_trailing",
        }
    }
}

/// Checks that `datum` is exactly one strict datum of the schema.
pub(crate) fn check(node: &Node, datum: &[u8]) -> Result<(), DatumFault> {
    let mut walk = Walk { rest: datum };
    walk.value(node)?;
    if walk.rest.is_empty() { Ok(()) } else { Err(DatumFault::Trailing) }
}

struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    // Recursion depth is the depth of the schema, which refers to no type inside itself.
    fn value(&mut self, node: &Node) -> Result<(), DatumFault> {
        match node {
            Node::Null => Ok(()),
            Node::Boolean => self.boolean().map(drop),
            Node::Long { min, max } => self.ranged(*min, *max).map(drop),
            Node::Text => self.text().map(drop),
            Node::Bytes => self.sized().map(drop),
            Node::Fixed(size) => self.take(*size).map(drop),
            Node::Enum(symbols) => self.index(*symbols).map(drop),
            Node::Array(items) => {
                let count = self.count()?;
                for _ in 0..count {
                    self.value(items)?;
                }
                self.end_of_items(count)
            }
            Node::Map(values) => {
                let mut last = None;
                let count = self.count()?;
                for _ in 0..count {
                    self.key(&mut last)?;
                    self.value(values)?;
                }
                self.end_of_items(count)
            }
            Node::Union(branches) => {
                let branch = self.index(branches.len() as u64)?;
                self.value(&branches[branch])
            }
            Node::Record(fields) => fields.iter().try_for_each(|f| self.value(f)),
        }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], DatumFault> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(DatumFault::Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    fn varint(&mut self) -> Result<u64, DatumFault> {
        // Most numbers, lengths and indices of a record take one byte.
        if let [byte @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte holds bit 63 alone; a last group of zero is needless.
            if (i == 9 && byte > 1) || (byte == 0 && i > 0) {
                return Err(DatumFault::Varint);
            }
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(DatumFault::Truncated)
    }

    fn long(&mut self) -> Result<i64, DatumFault> {
        let n = self.varint()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    fn ranged(&mut self, min: i64, max: i64) -> Result<i64, DatumFault> {
        let n = self.long()?;
        if (min..=max).contains(&n) { Ok(n) } else { Err(DatumFault::Range) }
    }

    fn boolean(&mut self) -> Result<bool, DatumFault> {
        match self.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DatumFault::Boolean),
        }
    }

    fn sized(&mut self) -> Result<&'a [u8], DatumFault> {
        let length = usize::try_from(self.long()?).map_err(|_| DatumFault::Length)?;
        if length > self.rest.len() {
            return Err(DatumFault::Length);
        }
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str, DatumFault> {
        std::str::from_utf8(self.sized()?).map_err(|_| DatumFault::Utf8)
    }

    // Rust compares str by bytes, as the document does.
    fn key(&mut self, last: &mut Option<&'a str>) -> Result<&'a str, DatumFault> {
        let key = self.text()?;
        if last.replace(key).is_some_and(|l| l >= key) { Err(DatumFault::MapOrder) } else { Ok(key) }
    }

    fn index(&mut self, count: u64) -> Result<usize, DatumFault> {
        match u64::try_from(self.long()?) {
            Ok(i) if i < count => Ok(i as usize),
            _ => Err(DatumFault::Index),
        }
    }

    // Every item of ours takes at least one byte, so a count above what is left is a lie that must
    // not become an allocation.
    fn count(&mut self) -> Result<u64, DatumFault> {
        match u64::try_from(self.long()?) {
            Ok(n) if n > self.rest.len() as u64 => Err(DatumFault::Length),
            Ok(n) => Ok(n),
            Err(_) => Err(DatumFault::Block),
        }
    }

    fn end_of_items(&mut self, count: u64) -> Result<(), DatumFault> {
        if count == 0 || self.long()? == 0 { Ok(()) } else { Err(DatumFault::Block) }
    }
}
