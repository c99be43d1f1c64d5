//! The directory of a log: kernel lock, metadata file, names of segment files.
//!
//! ```text
//! lock            held with flock(2) while open; the kernel frees it when the process ends
//! log.meta        text: log id, partition count, first retained segment, crc32c
//! segments/N.seg  entries of all partitions   segments/N.idx  derived index of a full segment
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use super::config::EmbeddedConfig;
use crate::LogError;

/// Identity of a log and what has been deleted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta {
    pub log_id: Uuid,
    pub partitions: u16,
    /// Number of the oldest segment that retention has left.
    pub first_segment: u64,
    /// The first segment was written: from here on a missing one is a loss, not a new log.
    pub initialised: bool,
}

/// Names and metadata of a directory.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
}

/// The kernel's lock on a directory, held as long as this lives.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone isn't enough: a child that was just forked holds the descriptor until it
        // executes its program, and would keep the directory locked that long.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// An I/O error as an error of the port: it may pass, nothing was given up.
pub(super) fn io_error(what: &str, path: &Path, error: &io::Error) -> LogError {
    LogError::Unavailable(format!("{what} {}: {error}", path.display()))
}

impl Directory {
    /// Creates and locks the directory; reads or creates its metadata.
    pub fn open(config: &EmbeddedConfig) -> Result<(Self, Lock, Meta), LogError> {
        let segments = config.dir.join("segments");
        fs::create_dir_all(&segments).map_err(|e| io_error("cannot create", &segments, &e))?;
        let lock = lock(&config.dir)?;
        let directory = Self { root: config.dir.clone() };
        let meta = match directory.load_meta()? {
            Some(meta) => meta,
            None if directory.segment_numbers()?.is_empty() => {
                let log_id = config.expected_log_id.unwrap_or_else(new_log_id);
                let meta = Meta { log_id, partitions: config.partitions, first_segment: 1, initialised: false };
                directory.save_meta(&meta)?;
                meta
            }
            None => {
                let text = format!("{} is missing although there are segments", directory.meta_path().display());
                return Err(LogError::Refused(text));
            }
        };
        if meta.partitions != config.partitions {
            let text = format!(
                "{} has {} partitions, configured are {}",
                directory.root.display(),
                meta.partitions,
                config.partitions
            );
            return Err(LogError::Refused(text));
        }
        match config.expected_log_id {
            Some(expected) if expected != meta.log_id => Err(LogError::Refused(format!(
                "{} holds log {}, expected is {expected}",
                directory.root.display(),
                meta.log_id
            ))),
            _ => Ok((directory, lock, meta)),
        }
    }

    fn meta_path(&self) -> PathBuf {
        self.root.join("log.meta")
    }

    pub fn segment_path(&self, number: u64) -> PathBuf {
        self.root.join("segments").join(format!("{number:020}.seg"))
    }

    pub fn index_path(&self, number: u64) -> PathBuf {
        self.root.join("segments").join(format!("{number:020}.idx"))
    }

    /// Numbers of the segment files, ascending.
    pub fn segment_numbers(&self) -> Result<Vec<u64>, LogError> {
        let dir = self.root.join("segments");
        let failed = |e: &io::Error| io_error("cannot list", &dir, e);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&dir).map_err(|e| failed(&e))? {
            let name = entry.map_err(|e| failed(&e))?.file_name();
            let number: Option<u64> =
                name.to_str().and_then(|name| name.strip_suffix(".seg")).and_then(|stem| stem.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes creations and removals of segment files durable.
    pub fn sync_segments_dir(&self) -> io::Result<()> {
        File::open(self.root.join("segments"))?.sync_all()
    }

    fn load_meta(&self) -> Result<Option<Meta>, LogError> {
        let path = self.meta_path();
        let mut text = String::new();
        match File::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("cannot read", &path, &error)),
        }
        match parse_meta(&text) {
            Some(meta) => Ok(Some(meta)),
            None => {
                Err(LogError::Refused(format!("{} is damaged: its fields or its crc32c don't fit", path.display())))
            }
        }
    }

    /// Replaces the metadata file atomically and durably.
    pub fn save_meta(&self, meta: &Meta) -> Result<(), LogError> {
        let path = self.meta_path();
        let write = || -> io::Result<()> {
            let temporary = self.root.join("log.meta.new");
            let mut file = File::create(&temporary)?;
            file.write_all(print_meta(meta).as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(&self.root)?.sync_all()
        };
        write().map_err(|e| io_error("cannot write", &path, &e))
    }
}

fn lock(root: &Path) -> Result<Lock, LogError> {
    let path = root.join("lock");
    let failed = |e: &io::Error| io_error("cannot lock", &path, e);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(|e| failed(&e))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let text = format!(
                "{} is in use by another process (pid {}): one process per directory",
                root.display(),
                holder.trim()
            );
            return Err(LogError::Refused(text));
        }
        Err(errno) => return Err(failed(&errno.into())),
    }
    // Information for the message above only; the lock is the kernel's.
    let noted = file.set_len(0).and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
    noted.map_err(|e| failed(&e))?;
    Ok(Lock { file })
}

#[expect(
    clippy::disallowed_methods,
    reason = "made once in the life of a log; who wants a certain one gives expected_log_id"
)]
fn new_log_id() -> Uuid {
    Uuid::new_v4()
}

fn print_meta(meta: &Meta) -> String {
    let body = format!(
        "dualtrack-event-log 1\nlog_id={}\npartitions={}\nfirst_segment={}\ninitialised={}\n",
        meta.log_id, meta.partitions, meta.first_segment, meta.initialised
    );
    format!("{body}crc32c={:08x}\n", crc32c::crc32c(body.as_bytes()))
}

fn parse_meta(text: &str) -> Option<Meta> {
    let at = text.rfind("crc32c=")?;
    let (body, crc) = text.split_at(at);
    let crc = u32::from_str_radix(crc.strip_prefix("crc32c=")?.strip_suffix('\n')?, 16).ok()?;
    let mut lines = body.lines();
    if crc32c::crc32c(body.as_bytes()) != crc || lines.next()? != "dualtrack-event-log 1" {
        return None;
    }
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
    Some(Meta {
        log_id: field("log_id")?.parse().ok()?,
        partitions: field("partitions")?.parse().ok()?,
        first_segment: field("first_segment")?.parse().ok()?,
        initialised: field("initialised")?.parse().ok()?,
    })
}
