//! One pass over a JSON text, before anything is made of it: grammar (RFC 8259), depth, and no key
//! twice in one object, however it is escaped. A parser that keeps the last of two equal keys and
//! one that keeps the first would see different requests.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rest_contract::{Code, MAX_JSON_DEPTH, Problem};

/// Checks a whole text.
///
/// # Errors
/// `malformed_json` with line and column (in characters, both from 1), `duplicate_field` with the
/// pointer of the field.
pub fn check(bytes: &[u8]) -> Result<(), Problem> {
    let text = std::str::from_utf8(bytes).map_err(|why| at(bytes, why.valid_up_to(), "is not UTF-8"))?;
    let mut scan = Scan { text, bytes, pos: 0, path: Vec::new() };
    scan.blanks();
    if scan.pos == bytes.len() {
        return Err(scan.wrong("has no value: the text is empty"));
    }
    scan.value()?;
    scan.blanks();
    if scan.pos == bytes.len() { Ok(()) } else { Err(scan.wrong("is followed by more than one value")) }
}

/// A step of a JSON pointer.
enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    path: Vec<Step<'a>>,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.pos += 1;
        }
    }

    fn wrong(&self, what: &str) -> Problem {
        at(self.bytes, self.pos, what)
    }

    // What stands where something else must stand.
    fn unexpected(&self, expected: &str) -> Problem {
        match self.text.get(self.pos..).and_then(|rest| rest.chars().next()) {
            Some(found) => self.wrong(&format!("has {found:?} where {expected} must stand")),
            None => self.wrong(&format!("ends where {expected} must stand")),
        }
    }

    fn value(&mut self) -> Result<(), Problem> {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(_) | None => Err(self.unexpected("a value")),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Problem> {
        if !self.bytes[self.pos..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a value"));
        }
        self.pos += word.len();
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Problem> {
        if self.path.len() >= MAX_JSON_DEPTH {
            let what = format!("is nested deeper than {MAX_JSON_DEPTH}");
            return Err(self.wrong(&what).limit(MAX_JSON_DEPTH));
        }
        self.pos += 1;
        self.blanks();
        Ok(())
    }

    fn array(&mut self) -> Result<(), Problem> {
        self.enter()?;
        if self.peek() == Some(b']') {
            self.pos += 1;
            return Ok(());
        }
        for index in 0.. {
            self.path.push(Step::Index(index));
            self.value()?;
            self.path.pop();
            self.blanks();
            match self.peek() {
                Some(b',') => self.pos += 1,
                Some(b']') => break,
                Some(_) | None => return Err(self.unexpected("',' or ']'")),
            }
            self.blanks();
        }
        self.pos += 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), Problem> {
        self.enter()?;
        if self.peek() == Some(b'}') {
            self.pos += 1;
            return Ok(());
        }
        let mut seen = Keys::default();
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a field's name"));
            }
            let start = self.pos;
            let key = self.string()?;
            self.path.push(Step::Key(key.clone()));
            if !seen.insert(key) {
                return Err(self.twice(start));
            }
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("':'"));
            }
            self.pos += 1;
            self.blanks();
            self.value()?;
            self.path.pop();
            self.blanks();
            match self.peek() {
                Some(b',') => self.pos += 1,
                Some(b'}') => break,
                Some(_) | None => return Err(self.unexpected("',' or '}'")),
            }
            self.blanks();
        }
        self.pos += 1;
        Ok(())
    }

    fn twice(&self, start: usize) -> Problem {
        let pointer = self.path.iter().fold(String::new(), |mut out, step| {
            out.push('/');
            match step {
                Step::Key(key) => out.push_str(&super::decode::escaped(key)),
                Step::Index(index) => out.push_str(&index.to_string()),
            }
            out
        });
        let (line, column) = position(self.bytes, start);
        Problem::new(Code::DuplicateField, format!("{pointer} is given twice, again at line {line} column {column}"))
            .field(pointer)
            .fact("line", line)
            .fact("column", column)
    }

    fn number(&mut self) -> Result<(), Problem> {
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        match self.peek() {
            Some(b'0') => self.pos += 1,
            Some(b'1'..=b'9') => self.digits()?,
            Some(_) | None => return Err(self.unexpected("a digit")),
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Problem> {
        let start = self.pos;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        if self.pos == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    // A string and what it says; borrowed unless something in it is escaped.
    fn string(&mut self) -> Result<Cow<'a, str>, Problem> {
        self.pos += 1;
        let start = self.pos;
        let mut said: Option<String> = None;
        let mut copied = start;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let said = said.get_or_insert_default();
                    said.push_str(self.text.get(copied..self.pos).unwrap_or_default());
                    said.push(self.escape()?);
                    copied = self.pos;
                }
                Some(0..=0x1f) => return Err(self.wrong("has a control character in a text; it must be escaped")),
                Some(_) => self.pos += 1,
                None => return Err(self.wrong("ends inside a text")),
            }
        }
        let rest = self.text.get(copied..self.pos).unwrap_or_default();
        self.pos += 1;
        Ok(match said {
            None => Cow::Borrowed(rest),
            Some(mut said) => {
                said.push_str(rest);
                Cow::Owned(said)
            }
        })
    }

    fn escape(&mut self) -> Result<char, Problem> {
        self.pos += 1;
        let plain = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            Some(_) | None => return Err(self.unexpected("an escape")),
        };
        self.pos += 1;
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, Problem> {
        let start = self.pos - 1;
        let first = self.hex4()?;
        let code = if (0xd800..0xdc00).contains(&first) && self.bytes[self.pos..].starts_with(b"\\u") {
            self.pos += 1;
            let second = self.hex4()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(at(self.bytes, start, "has half of a surrogate pair"));
            }
            0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| at(self.bytes, start, "has half of a surrogate pair"))
    }

    fn hex4(&mut self) -> Result<u32, Problem> {
        self.pos += 1;
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            let Some(digit) = digit else { return Err(self.unexpected("a hexadecimal digit")) };
            code = code * 16 + digit;
            self.pos += 1;
        }
        Ok(code)
    }
}

// Keys of one object: few are compared one by one, many are looked up.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    many: BTreeSet<Cow<'a, str>>,
}

const FEW: usize = 24;

impl<'a> Keys<'a> {
    fn insert(&mut self, key: Cow<'a, str>) -> bool {
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < FEW {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
    }
}

fn at(bytes: &[u8], pos: usize, what: &str) -> Problem {
    let (line, column) = position(bytes, pos);
    Problem::new(Code::MalformedJson, format!("the body {what}, at line {line} column {column}"))
        .fact("line", line)
        .fact("column", column)
}

fn position(bytes: &[u8], pos: usize) -> (usize, usize) {
    let before = &bytes[..pos.min(bytes.len())];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> Problem {
        check(bytes).expect_err("it is refused")
    }

    fn position_of(problem: &Problem) -> (u64, u64) {
        let fact = |name: &str| problem.facts[name].as_u64().expect("a number");
        (fact("line"), fact("column"))
    }

    #[test]
    fn what_is_json_passes() {
        let deep = format!("{}1{}", "[".repeat(32), "]".repeat(32));
        for text in [
            "null",
            " true ",
            "-0.5e+10",
            "[]",
            "{}",
            r#"{"a":{"a":1},"b":[{"a":2},{"a":3}]}"#,
            r#""\ud83d\ude00 \u00e9\n\/""#,
            "[9223372036854775808,0.10000000000000000555,1E400]",
            &deep,
        ] {
            assert!(check(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused_with_its_position() {
        let deep = "[".repeat(1000);
        let cases: [(&[u8], u64, u64); 19] = [
            (b"", 1, 1),
            (b" \n ", 2, 2),
            (b"{\"a\":1", 1, 7),
            (b"{\"a\":\n  tru}", 2, 3),
            (b"[1,]", 1, 4),
            (b"{\"a\":1,}", 1, 8),
            (b"{} {}", 1, 4),
            (b"{\"a\":\"\xff\"}", 1, 7),
            (b"\xef\xbb\xbf{}", 1, 1),
            (deep.as_bytes(), 1, 33),
            (b"01", 1, 2),
            (b"1.", 1, 3),
            (b"-", 1, 2),
            (b"\"\\ud800\"", 1, 2),
            (b"\"\\ud800\\u0041\"", 1, 2),
            (b"\"\\x\"", 1, 3),
            (b"\"a\nb\"", 1, 3),
            (b"\"abc", 1, 5),
            ("{\"\u{e9}\u{e9}\":nul}".as_bytes(), 1, 7),
        ];
        for (bytes, line, column) in cases {
            let problem = refused(bytes);
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(problem.code, Code::MalformedJson, "{text}");
            assert_eq!(position_of(&problem), (line, column), "{text}: {}", problem.detail);
        }
    }

    #[test]
    fn a_key_stands_once_however_it_is_spelled() {
        for (text, pointer) in [
            (r#"{"priority":9,"priority":0}"#, "/priority"),
            (r#"{"priority":9,"\u0070riority":0}"#, "/priority"),
            (r#"{"payload":{"a":[{"x":1,"y":2,"x":3}]}}"#, "/payload/a/0/x"),
            (r#"{"a/b~":1,"a\/b~":2}"#, "/a~1b~0"),
        ] {
            let problem = refused(text.as_bytes());
            assert_eq!((problem.code, problem.field.as_deref()), (Code::DuplicateField, Some(pointer)), "{text}");
        }
        let many: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":0")).collect();
        assert!(check(format!("{{{}}}", many.join(",")).as_bytes()).is_ok());
        assert!(check(format!("{{{},\"k999\":1}}", many.join(",")).as_bytes()).is_err());
    }
}
