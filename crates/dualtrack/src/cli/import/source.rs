//! Where lines come from: a file, or standard input; in UTF-8 whatever they were written in.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use encoding_rs::Encoding;
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

/// Read at a time, bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// Text in UTF-8, read on as it is needed.
pub type Text = BufReader<DecodeReaderBytes<Box<dyn Read + Send>, Vec<u8>>>;

/// A source at its beginning.
pub struct Opened {
    /// What it says.
    pub text: Text,
    /// It was written in something else than UTF-8; what was no text there shows as U+FFFD.
    pub is_translated: bool,
}

/// A source of lines.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    encoding: Option<&'static Encoding>,
    // What a file was like when it was first looked at.
    seen: Option<Print>,
}

// By this a file that is being written shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Source {
    /// A file, or standard input for `-`.
    ///
    /// # Errors
    /// An encoding nobody knows, a file that cannot be looked at; in words.
    pub fn new(path: &Path, encoding: Option<&str>) -> Result<Self, String> {
        let known = |label: &str| {
            let encoding = Encoding::for_label(label.as_bytes());
            encoding
                .ok_or_else(|| format!("--encoding {label:?} is not known: utf-8, utf-16le, gb18030, windows-1252 …"))
        };
        let encoding = encoding.map(known).transpose()?;
        let seen = if is_stdin(path) { None } else { print(path)? };
        Ok(Self { path: path.to_owned(), encoding, seen })
    }

    /// Whether it can be read twice.
    pub const fn is_file(&self) -> bool {
        self.seen.is_some()
    }

    /// As it stands in messages.
    pub fn shown(&self) -> String {
        if is_stdin(&self.path) { "standard input".to_owned() } else { self.path.display().to_string() }
    }

    /// Its beginning. A byte order mark says what it is written in, else `--encoding`, else UTF-8.
    ///
    /// # Errors
    /// In words.
    pub fn open(&self) -> Result<Opened, String> {
        let raw: Box<dyn Read + Send> = if is_stdin(&self.path) {
            Box::new(std::io::stdin())
        } else {
            Box::new(File::open(&self.path).map_err(|why| format!("{}: {why}", self.shown()))?)
        };
        let (raw, is_utf16) = peeked(raw).map_err(|why| format!("{}: {why}", self.shown()))?;
        let mut decoder = DecodeReaderBytesBuilder::new();
        // UTF-8 is passed on as it is, so that what is none is refused and not replaced.
        let foreign = self.encoding.filter(|encoding| *encoding != encoding_rs::UTF_8);
        decoder.utf8_passthru(true).strip_bom(true).bom_override(true).encoding(foreign);
        let text = BufReader::with_capacity(BUFFER_BYTES, decoder.build(raw));
        Ok(Opened { text, is_translated: is_utf16 || foreign.is_some() })
    }

    /// Whether the file is as it was at first.
    pub fn is_unchanged(&self) -> bool {
        self.seen.is_none_or(|seen| print(&self.path).is_ok_and(|now| now == Some(seen)))
    }
}

// Whether it begins with the byte order mark of UTF-16.
fn peeked(mut raw: Box<dyn Read + Send>) -> std::io::Result<(Box<dyn Read + Send>, bool)> {
    let mut head = Vec::new();
    (&mut raw).take(2).read_to_end(&mut head)?;
    let is_utf16 = head == [0xff, 0xfe] || head == [0xfe, 0xff];
    Ok((Box::new(Cursor::new(head).chain(raw)), is_utf16))
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

// Nothing for a pipe, whose content is gone once it is read.
fn print(path: &Path) -> Result<Option<Print>, String> {
    let about = std::fs::metadata(path).map_err(|why| format!("{}: {why}", path.display()))?;
    if about.is_dir() {
        return Err(format!("{} is a folder: name a file", path.display()));
    }
    let modified = (about.mtime(), about.mtime_nsec());
    Ok(about.is_file().then(|| Print { device: about.dev(), inode: about.ino(), length: about.len(), modified }))
}
