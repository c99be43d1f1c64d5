//! A moving window over a file, so that a segment is scanned without being held in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes read at once.
const CHUNK: usize = 1024 * 1024;

/// Reads ahead of a scan; positions are bytes from the start of the file.
pub(super) struct Window<'a> {
    file: &'a File,
    /// Length of the file when the scan began.
    pub file_len: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl<'a> Window<'a> {
    pub fn new(file: &'a File) -> io::Result<Self> {
        Ok(Self { file, file_len: file.metadata()?.len(), start: 0, buffer: Vec::new() })
    }

    /// Up to `len` bytes from `position`; fewer only at the end of the file.
    pub fn get(&mut self, position: u64, len: usize) -> io::Result<&[u8]> {
        let end = position.saturating_add(len as u64).min(self.file_len);
        if position >= end {
            return Ok(&[]);
        }
        if position < self.start || end > self.start + self.buffer.len() as u64 {
            let want = (len.max(CHUNK) as u64).min(self.file_len - position) as usize;
            self.buffer.resize(want, 0);
            self.file.read_exact_at(&mut self.buffer, position)?;
            self.start = position;
        }
        let from = (position - self.start) as usize;
        Ok(&self.buffer[from..from + (end - position) as usize])
    }
}
