//! Reports that must survive a crash of the worker, in one file.
//!
//! Frames (length, crc32c, content) are appended: a report to keep, or the name of one to forget. A
//! report is synced before it is sent; forgetting is not, since the owner answers a report that
//! comes again with `duplicate`. Opening rewrites the file, so a tail torn by a crash is gone.

mod frame;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::machine::{EntryKey, OutboxEntry};

/// The file is rewritten when it is larger than this and mostly forgotten.
const REWRITE_ABOVE_BYTES: u64 = 4 << 20;

/// Where reports wait for their answers.
pub trait Outbox: Send + 'static {
    /// Keeps and forgets reports; when it returns, those to keep survive a crash. Blocking.
    ///
    /// # Errors
    /// They may not survive one. The next call tries again to keep them.
    fn apply(&mut self, keep: Vec<OutboxEntry>, forget: &[EntryKey]) -> io::Result<()>;
}

/// Keeps nothing: after a crash the leases run out instead.
#[derive(Debug, Default)]
pub struct NoOutbox;

impl Outbox for NoOutbox {
    fn apply(&mut self, _: Vec<OutboxEntry>, _: &[EntryKey]) -> io::Result<()> {
        Ok(())
    }
}

/// The outbox in a file that one process at a time may hold.
#[derive(Debug)]
pub struct FileOutbox {
    path: PathBuf,
    file: File,
    _lock: File,
    len: u64,
    /// What is kept, as it stands in the file, by the order of keeping.
    kept: BTreeMap<u64, (EntryKey, Vec<u8>)>,
    numbers: BTreeMap<EntryKey, u64>,
    next: u64,
    /// A write failed half-way: append nothing before the file is rewritten.
    broken: bool,
}

impl FileOutbox {
    /// Opens or creates an outbox, and gives back what an earlier process left in it.
    ///
    /// # Errors
    /// The file cannot be used, or another process holds it.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<OutboxEntry>)> {
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(beside(path, "lock"))?;
        lock.try_lock().map_err(|e| io::Error::other(format!("outbox {} is in use: {e}", path.display())))?;
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let (entries, read) = frame::read_all(&content);
        if read < content.len() {
            let (lost, kept_aside) = (content.len() - read, beside(path, "tail"));
            tracing::warn!(lost, path = %kept_aside.display(), "outbox ends in a torn frame, put aside");
            std::fs::write(kept_aside, &content[read..])?;
        }
        let mut outbox = Self {
            path: path.to_owned(),
            file,
            _lock: lock,
            len: 0,
            kept: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: 0,
            broken: false,
        };
        for entry in &entries {
            outbox.note(entry.key, frame::keep(entry).unwrap_or_default());
        }
        outbox.rewrite()?;
        Ok((outbox, entries))
    }

    /// Number of reports kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn note(&mut self, key: EntryKey, frame: Vec<u8>) {
        self.numbers.insert(key, self.next);
        self.kept.insert(self.next, (key, frame));
        self.next += 1;
    }

    // A new file beside the old one, put in its place once it is complete and synced.
    fn rewrite(&mut self) -> io::Result<()> {
        let new_path = beside(&self.path, "new");
        let mut new = OpenOptions::new().create(true).truncate(true).write(true).open(&new_path)?;
        new.write_all(frame::HEADER)?;
        for (_, frame) in self.kept.values() {
            new.write_all(frame)?;
        }
        new.sync_all()?;
        std::fs::rename(&new_path, &self.path)?;
        let directory = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()?;
        self.len = new.seek(SeekFrom::End(0))?;
        (self.file, self.broken) = (new, false);
        Ok(())
    }
}

impl Outbox for FileOutbox {
    fn apply(&mut self, keep: Vec<OutboxEntry>, forget: &[EntryKey]) -> io::Result<()> {
        let mut frames = Vec::new();
        let sync = !keep.is_empty();
        for entry in keep {
            let frame = frame::keep(&entry)?;
            frames.extend_from_slice(&frame);
            self.note(entry.key, frame);
        }
        for key in forget {
            if let Some(number) = self.numbers.remove(key) {
                self.kept.remove(&number);
                frames.extend_from_slice(&frame::forget(*key)?);
            }
        }
        let kept: u64 = self.kept.values().map(|(_, f)| f.len() as u64).sum::<u64>();
        if self.broken || self.len > REWRITE_ABOVE_BYTES && self.len > 4 * kept {
            self.broken = true;
            return self.rewrite();
        }
        self.broken = true;
        self.file.write_all(&frames)?;
        if sync {
            self.file.sync_data()?;
        }
        self.len += frames.len() as u64;
        self.broken = false;
        Ok(())
    }
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests;
