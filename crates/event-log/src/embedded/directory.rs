//! The directory of a log: kernel lock, metadata file, names of segment files.
//!
//! ```text
//! lock            held with flock(2) while open; the kernel frees it when the process ends
//! log.meta        text: log id, partition count, first retained segment, crc32c
//! segments/N.seg  entries of all partitions   segments/N.idx  derived index of a full segment
//! ```

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use held_directory::{Held, HoldError, replace};
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

/// An I/O error as an error of the port: it may pass, nothing was given up.
pub(super) fn io_error(what: &str, path: &Path, error: &io::Error) -> LogError {
    LogError::Unavailable(format!("{what} {}: {error}", path.display()))
}

impl Directory {
    /// Creates and locks the directory; reads or creates its metadata.
    pub fn open(config: &EmbeddedConfig) -> Result<(Self, Held, Meta), LogError> {
        let segments = config.dir.join("segments");
        fs::create_dir_all(&segments).map_err(|e| io_error("cannot create", &segments, &e))?;
        let lock = hold(&config.dir)?;
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
        replace(&path, print_meta(meta).as_bytes()).map_err(|e| io_error("cannot write", &path, &e))
    }
}

fn hold(root: &Path) -> Result<Held, LogError> {
    Held::take(root).map_err(|why| match why {
        HoldError::InUse { .. } => LogError::Refused(why.to_string()),
        HoldError::Io { .. } => LogError::Unavailable(why.to_string()),
    })
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
