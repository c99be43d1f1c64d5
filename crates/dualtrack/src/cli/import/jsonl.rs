//! One JSON object a line. Blank lines count as lines and make no task.

use std::io::{BufRead, Read as _};

use rest_client::contract::{Code, Problem};

use super::record::{Broken, MAX_RECORD_BYTES, Record, Records};

/// Lines of JSON.
pub struct Jsonl<R> {
    input: R,
    line: u64,
}

impl<R: BufRead + Send> Jsonl<R> {
    /// From the beginning.
    pub const fn new(input: R) -> Self {
        Self { input, line: 0 }
    }

    // Whether the line goes on beyond what a record may have; the rest of it is thrown away.
    fn read(&mut self, text: &mut Vec<u8>) -> std::io::Result<bool> {
        let limit = MAX_RECORD_BYTES as u64 + 1;
        (&mut self.input).take(limit).read_until(b'\n', text)?;
        let too_long = text.len() > MAX_RECORD_BYTES && text.last() != Some(&b'\n');
        if too_long {
            self.input.skip_until(b'\n')?;
        }
        Ok(too_long)
    }
}

impl<R: BufRead + Send> Records for Jsonl<R> {
    fn next(&mut self) -> Result<Option<Record>, Broken> {
        loop {
            let mut text = Vec::new();
            self.line += 1;
            let line = self.line;
            let too_long = self.read(&mut text).map_err(|why| Broken { line, what: why.to_string() })?;
            if text.is_empty() {
                return Ok(None);
            }
            let whole = text.ends_with(b"\n");
            let text = text.trim_ascii().to_vec();
            if text.is_empty() {
                continue;
            }
            if let Some(what) = foreign(&text) {
                return Err(Broken { line, what });
            }
            let body = if too_long { Err(Box::new(too_long_line())) } else { Ok(text.clone()) };
            let body = body.and_then(|body| if whole { Ok(body) } else { unfinished(body) });
            return Ok(Some(Record { line, text, body }));
        }
    }
}

fn too_long_line() -> Problem {
    let text = format!("the line has more than {MAX_RECORD_BYTES} bytes");
    Problem::new(Code::PayloadTooLarge, text).limit(MAX_RECORD_BYTES)
}

// A last line without its end is fine if it is whole, and says more than "malformed" if it is not.
fn unfinished(body: Vec<u8>) -> Result<Vec<u8>, Box<Problem>> {
    match coordinator_edge::json::check(&body) {
        Err(mut problem) if problem.code == Code::MalformedJson => {
            problem.detail += "; the file ends in the middle of this line: is it still being written?";
            Err(Box::new(problem))
        }
        Ok(()) | Err(_) => Ok(body),
    }
}

/// What is wrong with a text that cannot be UTF-8 text at all.
pub fn foreign(text: &[u8]) -> Option<String> {
    text.contains(&0)
        .then(|| "has a zero byte: UTF-16 without a byte order mark? say so with --encoding utf-16le".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (u64, Result<String, Code>);

    fn all(text: &[u8]) -> Result<Vec<Read>, Broken> {
        let mut lines = Jsonl::new(text);
        let mut out = Vec::new();
        while let Some(record) = lines.next()? {
            let body = record.body.map(|body| String::from_utf8_lossy(&body).into_owned());
            out.push((record.line, body.map_err(|problem| problem.code)));
        }
        Ok(out)
    }

    #[test]
    fn blank_lines_count_and_make_nothing() {
        let lines = all(b"\n{\"a\":1}\r\n  \t\n\r\n{\"b\":2}").expect("lines");
        assert_eq!(lines, [(2, Ok("{\"a\":1}".into())), (5, Ok("{\"b\":2}".into()))]);
        assert_eq!(all(b"").expect("nothing"), []);
        assert_eq!(all(b"\n\n").expect("nothing"), []);
    }

    #[test]
    fn a_long_line_is_refused_alone_and_a_cut_one_says_so() {
        let long = "x".repeat(MAX_RECORD_BYTES + 1);
        let fits = format!("\"{}\"", "x".repeat(MAX_RECORD_BYTES - 2));
        let lines = all(format!("{long}\n{fits}\n{{}}\n").as_bytes()).expect("lines");
        assert_eq!(lines[0], (1, Err(Code::PayloadTooLarge)));
        assert_eq!(lines[1..], [(2, Ok(fits)), (3, Ok("{}".into()))]);
        assert_eq!(all(b"{}\n{\"a\":").expect("lines")[1], (2, Err(Code::MalformedJson)));
    }

    #[test]
    fn utf_16_without_its_mark_is_recognised() {
        let text: Vec<u8> = "{}\n{}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let broken = all(&text).expect_err("no UTF-8");
        assert!(broken.line == 1 && broken.what.contains("utf-16le"), "{broken:?}");
    }
}
