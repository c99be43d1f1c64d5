//! A record as it lies in the log, and putting right what a mutation broke on the way in.

use task_events::{Encoded, Kind};

/// A record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Where it is delivered: a reader may see an offset twice, or miss some.
    pub offset: u64,
    /// LogAppendTime, Unix ms.
    pub broker_ms: i64,
    /// Key, if any.
    pub key: Option<Vec<u8>>,
    /// Headers in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
}

impl Record {
    /// An encoded event as it lies in the log.
    pub fn of(encoded: &Encoded) -> Self {
        Self {
            offset: 0,
            broker_ms: 0,
            key: Some(encoded.key.to_vec()),
            headers: encoded.headers.iter().map(|(n, c)| ((*n).to_owned(), c.to_vec())).collect(),
            value: Some(encoded.value.to_vec()),
        }
    }

    /// The headers as a decoder takes them.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.headers.iter().map(|(name, content)| (name.as_str(), content.as_slice()))
    }

    /// Makes frame, checksum and header `kind` fit the value again, so that the datum is read.
    pub fn mend(&mut self) {
        let Some(value) = &mut self.value else { return };
        if let Some(frame) = value.get_mut(..5) {
            frame.copy_from_slice(&[0, 0, 0, 0, 1]);
        }
        // The kind is the first varint after the frame and the 16 bytes of the event id.
        let kind = value.get(21).and_then(|b| Kind::ALL.get(usize::from(b >> 1))).copied();
        if let Some(kind) = kind {
            self.set("kind", kind.as_str().into());
        }
        self.sign();
    }

    /// Makes the checksum fit the value.
    pub fn sign(&mut self) {
        if let Some(value) = &self.value {
            let crc = format!("{:08x}", crc32c::crc32c(value)).into_bytes();
            self.set("crc32c", crc);
        }
    }

    fn set(&mut self, name: &str, content: Vec<u8>) {
        self.headers.retain(|(n, _)| n != name);
        self.headers.push((name.to_owned(), content));
    }

    /// Bytes of key, headers and value: what a bound on memory is measured by.
    pub fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(n, c)| n.len() + c.len()).sum();
        headers + self.key.as_ref().map_or(0, Vec::len) + self.value.as_ref().map_or(0, Vec::len)
    }
}
