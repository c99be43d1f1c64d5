//! Fields of CSV, one by one, on the csv crate's state machine; beside it a watch over the same bytes
//! that knows in which line a quote opened. The state machine takes a quote that never closes for a
//! field that goes to the end of the file, and text behind a closing quote for text.

use std::io::BufRead;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use super::record::{Broken, MAX_RECORD_BYTES};

/// A record as its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Physical line where it begins, from 1.
    pub line: u64,
    /// Each field without its quotes, as many as were asked for.
    pub values: Vec<Vec<u8>>,
    /// How many there are.
    pub count: usize,
}

/// Records of fields.
pub struct Quotes<R> {
    input: R,
    core: Reader,
    watch: Watch,
}

struct Watch {
    delimiter: u8,
    line: u64,
    begun: Option<u64>,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Plain,
    Quoted { opened: u64 },
    Closed { opened: u64 },
}

impl<R: BufRead> Quotes<R> {
    /// From the beginning.
    pub fn new(input: R, delimiter: u8) -> Self {
        let core = ReaderBuilder::new().delimiter(delimiter).build();
        Self { input, core, watch: Watch { delimiter, line: 1, begun: None, at: At::Start } }
    }

    /// The next record, with at most `most` of its values; `None` at the end. Blank lines are none.
    ///
    /// # Errors
    /// A quote that is not closed, text behind a closed one, a record that is too long: with the line.
    pub fn next(&mut self, most: usize) -> Result<Option<Fields>, Broken> {
        let mut fields = Fields::default();
        let mut bytes = 0;
        self.watch.begun = None;
        loop {
            let Some((value, ends)) = self.field(&mut bytes)? else { return Ok(None) };
            fields.count += 1;
            if fields.values.len() < most {
                fields.values.push(value);
            }
            if ends {
                fields.line = self.watch.begun.unwrap_or(self.watch.line);
                return Ok(Some(fields));
            }
        }
    }

    // A field, and whether it is the record's last.
    fn field(&mut self, bytes: &mut usize) -> Result<Option<(Vec<u8>, bool)>, Broken> {
        let (mut value, mut length) = (vec![0; 256], 0);
        self.watch.at = At::Start;
        loop {
            let input = self.input.fill_buf().map_err(|why| self.watch.broken(why.to_string()))?;
            let at_end = input.is_empty();
            let (result, read, written) = self.core.read_field(input, &mut value[length..]);
            let seen = self.watch.see(&input[..read]);
            self.input.consume(read);
            seen?;
            (length, *bytes) = (length + written, *bytes + written);
            if *bytes > MAX_RECORD_BYTES {
                return Err(self.watch.too_long());
            }
            match result {
                ReadFieldResult::InputEmpty => {}
                ReadFieldResult::OutputFull => value.resize(value.len() * 2, 0),
                ReadFieldResult::Field { record_end } => {
                    if let (true, At::Quoted { opened }) = (at_end, self.watch.at) {
                        return Err(Broken { line: opened, what: "opens a quote that is never closed".to_owned() });
                    }
                    value.truncate(length);
                    return Ok(Some((value, record_end)));
                }
                ReadFieldResult::End => return Ok(None),
            }
        }
    }
}

impl Watch {
    fn see(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        for &byte in bytes {
            let line_end = byte == b'\n' || byte == b'\r';
            // Line ends before a record are blank lines, or the rest of the last one's end.
            if !(line_end && self.at == At::Start && self.begun.is_none()) {
                self.begun.get_or_insert(self.line);
                self.at = match self.at {
                    At::Start if byte == b'"' => At::Quoted { opened: self.line },
                    At::Start | At::Plain => At::Plain,
                    At::Quoted { opened } if byte == b'"' => At::Closed { opened },
                    At::Closed { opened } if byte == b'"' => At::Quoted { opened },
                    At::Closed { opened } if byte != self.delimiter && !line_end => return Err(self.behind(opened)),
                    at @ (At::Quoted { .. } | At::Closed { .. }) => at,
                };
            }
            self.line += u64::from(byte == b'\n');
        }
        Ok(())
    }

    fn broken(&self, what: String) -> Broken {
        Broken { line: self.line, what }
    }

    // The usual cause is a quote further up that was not closed and met the next one.
    fn behind(&self, opened: u64) -> Broken {
        let here = self.line;
        let what = format!(
            "opens a quote that ends in line {here} with text right behind it: is it closed where it should be? \
             A quote inside a quoted field is written twice"
        );
        Broken { line: opened, what }
    }

    fn too_long(&self) -> Broken {
        match self.at {
            At::Quoted { opened } => {
                let what = format!("opens a quote that is not closed within {MAX_RECORD_BYTES} bytes");
                Broken { line: opened, what }
            }
            At::Start | At::Plain | At::Closed { .. } => Broken {
                line: self.begun.unwrap_or(self.line),
                what: format!("begins a record of more than {MAX_RECORD_BYTES} bytes"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Read through a small buffer, so that every state is met at its edge.
    fn all(text: &str, buffer: usize) -> Result<Vec<(u64, Vec<String>)>, Broken> {
        let input = std::io::BufReader::with_capacity(buffer, text.as_bytes());
        let mut quotes = Quotes::new(input, b',');
        let mut out = Vec::new();
        while let Some(fields) = quotes.next(9)? {
            let values = fields.values.iter().map(|value| String::from_utf8_lossy(value).into_owned());
            out.push((fields.line, values.collect()));
        }
        Ok(out)
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let text = "a,b\r\n\r\n\"x\ny\",\"say \"\"hi\"\"\"\r\n\n,\n5\" pipe,\"\"\nlast,one";
        for buffer in [1, 2, 3, 7, 4096] {
            let records = all(text, buffer).expect("records");
            let lines: Vec<u64> = records.iter().map(|(line, _)| *line).collect();
            assert_eq!(lines, [1, 3, 6, 7, 8], "{records:?}");
            assert_eq!(records[1].1, ["x\ny", "say \"hi\""]);
            assert_eq!((&records[2].1, &records[3].1), (&vec![String::new(); 2], &vec!["5\" pipe".into(), "".into()]));
            assert_eq!(records[4].1, ["last", "one"]);
        }
        assert_eq!(all("", 8).expect("nothing"), []);
        assert_eq!(all("\r\n\n", 8).expect("nothing"), []);
    }

    #[test]
    fn a_quote_is_reported_where_it_opened() {
        for buffer in [1, 3, 4096] {
            let never = all("a,b\n1,\"x\n2,y\n3,z", buffer).expect_err("never closed");
            assert!(never.line == 2 && never.what.contains("never closed"), "{never:?}");
            let next = all("a,b\n1,\"x\n2,\"y\"\n3,z", buffer).expect_err("closed by the next one");
            assert!(next.line == 2 && next.what.contains("line 3"), "{next:?}");
        }
        let lines = "2,y\n".repeat(MAX_RECORD_BYTES);
        let long = all(&format!("a,b\n1,\"x\n{lines}"), 4096).expect_err("memory stays flat");
        assert!(long.line == 2 && long.what.contains("not closed within"), "{long:?}");
        let wide = all(&format!("a,b\n1,{}\n", "x".repeat(MAX_RECORD_BYTES)), 4096).expect_err("too long");
        assert!(wide.line == 2 && wide.what.contains("record of more than"), "{wide:?}");
    }
}
