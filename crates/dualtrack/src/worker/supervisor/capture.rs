//! What a program prints, in bounded memory: the beginning and the end of it, and the last line.

use std::collections::VecDeque;

use bytes::Bytes;
use rest_client::contract::MAX_PAYLOAD_BYTES;
use serde::{Deserialize, Serialize};

use super::LastLine;
use super::lines::Lines;
use super::pipe::Pipe;

/// Of each stream the first so many bytes are kept,
pub const HEAD_BYTES: usize = 16 * 1024;
/// and the last so many.
pub const TAIL_BYTES: usize = 48 * 1024;

/// Beginning and end of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// Its beginning.
    pub head: Bytes,
    /// Its end, as far as it is not in the beginning.
    pub tail: Bytes,
    /// How long it was, bytes.
    pub total: u64,
}

/// A stream of which both are kept.
#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    fn finish(self) -> Captured {
        Captured { head: self.head.into(), tail: Vec::from(self.tail).into(), total: self.total }
    }
}

/// What was printed to a stream.
#[derive(Debug)]
pub(super) struct Printed {
    pub captured: Captured,
    pub last_line: Option<LastLine>,
}

/// Reads a stream until it ends.
pub(super) async fn capture(mut from: Pipe) -> Printed {
    let mut kept = Kept::default();
    // One byte more, so that a line that is too long is known as such.
    let mut lines = Lines::new(MAX_PAYLOAD_BYTES + 1);
    let mut last_line = None;
    let mut buffer = vec![0; 64 * 1024];
    while let Some(bytes) = from.read(&mut buffer).await {
        kept.push(&buffer[..bytes]);
        lines.push(&buffer[..bytes], |begin, bytes| note(&mut last_line, begin, bytes));
    }
    lines.finish(|begin, bytes| note(&mut last_line, begin, bytes));
    Printed { captured: kept.finish(), last_line }
}

fn note(last: &mut Option<LastLine>, begin: &[u8], bytes: u64) {
    let is_whole = begin.len() as u64 == bytes;
    let (begin, bytes) = match begin.strip_suffix(b"\r") {
        Some(begin) if is_whole => (begin, bytes - 1),
        Some(_) | None => (begin, bytes),
    };
    if begin.iter().any(|byte| !byte.is_ascii_whitespace()) {
        *last = Some(LastLine { begin: Bytes::copy_from_slice(begin), bytes });
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::unix::pipe::Receiver;
    use tokio::sync::watch;

    use super::*;

    #[test]
    fn beginning_and_end_are_kept_and_their_memory_is_bounded() {
        let all: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        for chunk in [1, 999, 65_536, 1_000_000] {
            let mut kept = Kept::default();
            all.chunks(chunk).for_each(|bytes| kept.push(bytes));
            let captured = kept.finish();
            assert_eq!(captured.head, all[..HEAD_BYTES], "{chunk}");
            assert_eq!(captured.tail, all[all.len() - TAIL_BYTES..], "{chunk}");
            assert_eq!(captured.total, 1_000_000);
        }
        let mut short = Kept::default();
        short.push(&all[..HEAD_BYTES + 10]);
        let captured = short.finish();
        assert_eq!([&captured.head[..], &captured.tail[..]].concat(), all[..HEAD_BYTES + 10]);
    }

    async fn printed(what: Vec<u8>) -> Printed {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let (_still, over) = watch::channel(false);
        let writing = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &what).unwrap());
        let printed = capture(Pipe::new(Receiver::from_owned_fd(reader.into()).unwrap(), over)).await;
        writing.join().unwrap();
        printed
    }

    #[tokio::test]
    async fn the_last_line_is_the_last_that_is_not_blank() {
        for (what, last) in
            [("a\nb\n", Some("b")), ("a\nb", Some("b")), ("a\r\n\r\n \n\n", Some("a")), ("\n \n", None), ("", None)]
        {
            let line = printed(what.into()).await.last_line;
            assert_eq!(line.as_ref().map(|l| &l.begin[..]), last.map(str::as_bytes), "{what:?}");
            assert_eq!(line.map(|l| l.bytes), last.map(|l| l.len() as u64), "{what:?}");
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_counted_not_kept() {
        for bytes in [MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES + 1, 13 << 20] {
            let line = printed([b"x\n", &vec![b'a'; bytes][..], b"\n"].concat()).await.last_line.unwrap();
            assert_eq!(line.bytes, bytes as u64);
            assert_eq!(line.begin.len(), bytes.min(MAX_PAYLOAD_BYTES + 1));
        }
    }
}
