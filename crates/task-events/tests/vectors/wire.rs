//! Bytes of a record, put together by hand: never by the encoder under test.

use serde_json::{Value, json};

/// Zig-zag varint.
pub fn long(n: i64) -> Vec<u8> {
    let mut rest = ((n << 1) ^ (n >> 63)) as u64;
    let mut out = Vec::new();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

/// Length and bytes, of a string or of bytes.
pub fn sized(bytes: &[u8]) -> Vec<u8> {
    join(&[&long(bytes.len() as i64), bytes])
}

/// A string.
pub fn text(text: &str) -> Vec<u8> {
    sized(text.as_bytes())
}

/// The second branch of a union with null.
pub fn some(value: Vec<u8>) -> Vec<u8> {
    join(&[&[2], &value])
}

/// The null branch.
pub fn null() -> Vec<u8> {
    vec![0]
}

/// Joins parts.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A datum in named pieces, so that a case changes one of them and says which.
#[derive(Clone)]
pub struct Draft {
    pieces: Vec<(&'static str, Vec<u8>)>,
    kind: &'static str,
}

impl Draft {
    /// The envelope of a kind with the given index, all options null, and body fields.
    pub fn new(kind: &'static str, index: i64, body: Vec<(&'static str, Vec<u8>)>) -> Self {
        let mut pieces = vec![
            ("event_id", vec![0x11; 16]),
            ("kind", long(index)),
            ("event_sequence", long(0)),
            ("task_id", null()),
            ("run_no", long(0)),
            ("exec_epoch", long(0)),
            ("partition_epoch", null()),
            ("owner_seq", null()),
            ("event_time", long(1_800_000_000_000)),
            ("trace_id", text("")),
            ("causation_id", null()),
            ("service", long(0)),
            ("instance", text("c-1")),
            ("incarnation", long(99)),
            ("rule_version", long(1)),
            ("branch", long(index)),
        ];
        pieces.extend(body);
        Self { pieces, kind }
    }

    /// Replaces one piece.
    pub fn set(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let piece = self.pieces.iter_mut().find(|(n, _)| *n == name);
        piece.unwrap_or_else(|| panic!("no piece {name}")).1 = bytes.into();
        self
    }

    /// Everything before this piece, then `bytes`, and nothing after.
    pub fn cut(mut self, name: &str, bytes: &[u8]) -> Self {
        let at = self.pieces.iter().position(|(n, _)| *n == name).unwrap_or_else(|| panic!("no piece {name}"));
        self.pieces.truncate(at);
        self.pieces.push(("cut", bytes.to_vec()));
        self
    }

    /// Appends bytes after the datum.
    pub fn and(mut self, bytes: &[u8]) -> Self {
        self.pieces.push(("more", bytes.to_vec()));
        self
    }

    /// The framed record with right headers.
    pub fn record(self) -> Record {
        let datum: Vec<u8> = self.pieces.into_iter().flat_map(|(_, bytes)| bytes).collect();
        Record::framed(self.kind, &[0, 0, 0, 0, 1], &datum)
    }
}

/// Part of a value.
#[derive(Clone)]
pub enum Part {
    Bytes(Vec<u8>),
    Repeat(u8, usize),
}

/// A record as it would lie in the log.
#[derive(Clone)]
pub struct Record {
    pub key: Option<Vec<u8>>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub value: Option<Vec<Part>>,
}

impl Record {
    /// Frame and datum, with the headers that belong to them.
    pub fn framed(kind: &str, frame: &[u8], datum: &[u8]) -> Self {
        Self::of(kind, vec![Part::Bytes(join(&[frame, datum]))])
    }

    /// Any value, with a right crc.
    pub fn of(kind: &str, parts: Vec<Part>) -> Self {
        let mut record = Self {
            key: Some(b"#7".to_vec()),
            headers: vec![("kind".into(), kind.into()), ("rule-version".into(), "1".into())],
            value: Some(parts),
        };
        let crc = crc32c::crc32c(&record.bytes().expect("a value"));
        record.headers.push(("crc32c".into(), format!("{crc:08x}").into_bytes()));
        record
    }

    /// The value as one piece.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let parts = self.value.as_ref()?;
        Some(
            parts
                .iter()
                .flat_map(|p| match p {
                    Part::Bytes(bytes) => bytes.clone(),
                    Part::Repeat(byte, times) => vec![*byte; *times],
                })
                .collect(),
        )
    }

    /// Without the header(s) of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| n != name);
        self
    }

    /// One more header.
    pub fn with(mut self, name: &str, content: &[u8]) -> Self {
        self.headers.push((name.into(), content.to_vec()));
        self
    }

    /// Another content of a header.
    pub fn header(self, name: &str, content: &[u8]) -> Self {
        self.without(name).with(name, content)
    }

    /// Another key.
    pub fn key(mut self, key: Option<&[u8]>) -> Self {
        self.key = key.map(<[u8]>::to_vec);
        self
    }

    /// As it stands in the vectors file.
    pub fn to_json(&self) -> Value {
        let headers: Vec<Value> = self.headers.iter().map(|(n, c)| json!([n, hex::encode(c)])).collect();
        let value = self.value.as_ref().map(|parts| {
            parts
                .iter()
                .map(|p| match p {
                    Part::Bytes(bytes) => json!(hex::encode(bytes)),
                    Part::Repeat(byte, times) => json!({"repeat": hex::encode([*byte]), "times": times}),
                })
                .collect::<Vec<_>>()
        });
        json!({"key": self.key.as_ref().map(hex::encode), "headers": headers, "value": value})
    }
}
