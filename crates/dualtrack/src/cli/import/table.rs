//! CSV (RFC 4180): a header that names fields of a task, then one task a record. Blank lines make none.

use std::io::{BufRead, Cursor, Read as _};

use rest_client::contract::{Code, Problem};

use super::columns::{Columns, is_known};
use super::jsonl::foreign;
use super::quotes::Quotes;
use super::record::{Broken, MAX_RECORD_BYTES, Record, Records};

/// Delimiters that a header may show.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Most columns.
const MAX_COLUMNS: usize = 1_000;

type Chained<R> = std::io::Chain<Cursor<Vec<u8>>, R>;

/// Records of a CSV file.
pub struct Table<R> {
    quotes: Quotes<Chained<R>>,
    columns: Columns,
    header: Vec<u8>,
}

impl<R: BufRead + Send> Table<R> {
    /// Reads the header; `None` for a file without one. Without a delimiter it is the one that makes
    /// the most of the header's cells names of columns.
    ///
    /// # Errors
    /// A header that names no columns.
    pub fn open(mut input: R, delimiter: Option<u8>, others: bool) -> Result<Option<Self>, Broken> {
        let broken = |line: u64| move |what: String| Broken { line, what };
        let mut head = Vec::new();
        let mut line = 1;
        // Blank lines before it, then the header.
        let begin = loop {
            let begin = head.len();
            let read = (&mut input).take(MAX_RECORD_BYTES as u64).read_until(b'\n', &mut head);
            match read.map_err(|why| broken(line)(why.to_string()))? {
                0 => return Ok(None),
                _ if head[begin..].trim_ascii().is_empty() => line += 1,
                _ => break begin,
            }
        };
        if let Some(what) = foreign(&head) {
            return Err(Broken { line, what });
        }
        let delimiter = delimiter.unwrap_or_else(|| guess(&head[begin..]));
        let mut quotes = Quotes::new(Cursor::new(head).chain(input), delimiter);
        let Some(header) = quotes.next(MAX_COLUMNS)? else { return Ok(None) };
        if header.count > MAX_COLUMNS {
            return Err(broken(line)(format!("has {} columns, at most {MAX_COLUMNS} can be", header.count)));
        }
        let columns = Columns::of(&header.values, others).map_err(broken(line))?;
        Ok(Some(Self { quotes, columns, header: canonical(&header.values) }))
    }
}

impl<R: BufRead + Send> Records for Table<R> {
    fn next(&mut self) -> Result<Option<Record>, Broken> {
        let expected = self.columns.count();
        loop {
            let Some(fields) = self.quotes.next(expected + 1)? else { return Ok(None) };
            let blank = fields.count == 1 && fields.values[0].trim_ascii().is_empty();
            if blank && expected > 1 {
                continue;
            }
            let (line, text) = (fields.line, canonical(&fields.values));
            let body = if fields.count == expected {
                self.columns.task(&fields.values)
            } else {
                let text = format!("the line has {} cells, the header has {expected}", fields.count);
                Err(Box::new(Problem::new(Code::InvalidField, text).value(fields.count).limit(expected)))
            };
            return Ok(Some(Record { line, text, body }));
        }
    }

    fn header(&self) -> Option<&[u8]> {
        Some(&self.header)
    }
}

fn guess(header: &[u8]) -> u8 {
    let known = |delimiter: u8| {
        let names = Quotes::new(header, delimiter).next(MAX_COLUMNS).ok().flatten().unwrap_or_default().values;
        (names.iter().filter(|name| is_known(name)).count(), names.len())
    };
    // The first of the best ones: a comma unless another does better.
    DELIMITERS.into_iter().rev().max_by_key(|delimiter| known(*delimiter)).unwrap_or(b',')
}

// The same for every way to write the same cells.
fn canonical(values: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = csv_core::Writer::new();
    // Every byte twice, quotes around each value, delimiters between them.
    let mut out = vec![0; values.iter().map(|value| value.len() * 2 + 3).sum::<usize>() + 2];
    let mut length = 0;
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            length += writer.delimiter(&mut out[length..]).1;
        }
        length += writer.field(value, &mut out[length..]).2;
    }
    length += writer.finish(&mut out[length..]).1;
    out.truncate(length);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<(u64, String)>, Broken> {
        let Some(mut table) = Table::open(text.as_bytes(), None, false)? else { return Ok(Vec::new()) };
        let mut out = Vec::new();
        while let Some(record) = table.next()? {
            let body = record.body.map(|body| String::from_utf8(body).expect("UTF-8"));
            out.push((record.line, body.unwrap_or_else(|problem| problem.detail)));
        }
        Ok(out)
    }

    #[test]
    fn delimiters_are_found_by_the_header() {
        let expected = [(2, r#"{"queue":"q,;","task_type":"t"}"#.to_owned())];
        for delimiter in [',', ';', '\t', '|'] {
            let text = format!("task_type{delimiter}queue\r\nt{delimiter}\"q,;\"");
            assert_eq!(all(&text).expect("records"), expected, "{delimiter:?}");
        }
        assert_eq!(all("task_type\nt\n").expect("records"), [(2, r#"{"task_type":"t"}"#.to_owned())]);
    }

    #[test]
    fn lines_and_cells_are_counted() {
        let records = all("\ntask_type,queue\n\nt,q\n  \nt,q,x\nt\n\"t\n\",q").expect("records");
        let lines: Vec<u64> = records.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [4, 6, 7, 8]);
        assert!(records[1].1.contains("3 cells") && records[2].1.contains("1 cells"), "{records:?}");
        for nothing in ["", "\n\r\n", "task_type,queue", "task_type,queue\r\n\r\n"] {
            assert_eq!(all(nothing).expect("nothing"), [], "{nothing:?}");
        }
        let header = all("\n\ntask_type,prio\n").expect_err("unknown");
        assert!(header.line == 3 && header.what.contains("prio"), "{header:?}");
    }

    #[test]
    fn equal_cells_have_equal_texts_however_they_are_written() {
        let text = |csv: &str| {
            let mut table = Table::open(csv.as_bytes(), None, false).expect("a table").expect("a header");
            table.next().expect("a record").expect("a record").text
        };
        let plain = text("task_type,payload_ref,queue\na,b c,\"x\"\"y\"\n");
        assert_eq!(plain, b"a,b c,\"x\"\"y\"");
        assert_eq!(text("task_type;payload_ref;queue\r\n\"a\";\"b c\";\"x\"\"y\"\r\n"), plain);
        assert_ne!(text("task_type,payload_ref,queue\n\"a,b c\",,\n"), text("task_type,payload_ref,queue\na,b c,\n"));
    }
}
