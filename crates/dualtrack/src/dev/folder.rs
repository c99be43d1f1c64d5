//! The folder of `dualtrack dev`: who holds it, and what is in it.
//!
//! ```text
//! lock    the kernel's lock is on it; holds the pid of the holder, for the message only
//! log/    the event track          store/   the snapshot track
//! ```
//!
//! With `archive.enabled=false` it is a private temporary folder, nothing is synced, and it goes away
//! with the process; a process that is killed leaves it behind for the system's cleaner.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use event_log::{EmbeddedConfig as LogConfig, EmbeddedLog};
use held_directory::{Held, HoldError};
use service_kit::{Clock as _, SystemClock};
use snapshot_store::{EmbeddedConfig as StoreConfig, EmbeddedStore};
use tempfile::TempDir;

use super::{DevError, Settings};

/// An open folder; dropping it gives it back.
pub(super) struct Folder {
    path: PathBuf,
    // Unlocked before a temporary folder is removed: fields are dropped in their order.
    _lock: Held,
    temporary: Option<TempDir>,
}

fn failed(what: &'static str, path: &Path, why: &io::Error) -> DevError {
    DevError::Folder { what, path: path.display().to_string(), why: why.to_string() }
}

impl Folder {
    pub fn open(settings: &Settings) -> Result<Self, DevError> {
        if settings.archive.enabled {
            let path = settings.dev.data.clone();
            fs::create_dir_all(&path).map_err(|e| failed("cannot create the folder", &path, &e))?;
            let lock = hold(&path)?;
            return Ok(Self { path, _lock: lock, temporary: None });
        }
        let temporary = tempfile::Builder::new().prefix("dualtrack-volatile-").tempdir();
        let temporary =
            temporary.map_err(|e| failed("cannot create a temporary folder in", &std::env::temp_dir(), &e))?;
        let path = temporary.path().to_owned();
        Ok(Self { _lock: hold(&path)?, path, temporary: Some(temporary) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_volatile(&self) -> bool {
        self.temporary.is_some()
    }

    /// Opens the log; repairs of a torn tail are logged with file and offset.
    pub fn log(&self, settings: &Settings) -> Result<EmbeddedLog, DevError> {
        let mut config = LogConfig::new(self.path.join("log"), settings.dev.partitions);
        if self.is_volatile() {
            config.durability = event_log::Durability::Volatile;
        }
        Ok(EmbeddedLog::open(config)?)
    }

    /// Opens the store.
    pub fn store(&self) -> Result<EmbeddedStore, DevError> {
        let mut config = StoreConfig::new(self.path.join("store"), || SystemClock.wall_ms());
        if self.is_volatile() {
            config.durability = snapshot_store::Durability::Volatile;
        }
        Ok(EmbeddedStore::open(config)?)
    }
}

fn hold(dir: &Path) -> Result<Held, DevError> {
    Held::take(dir).map_err(|why| match why {
        HoldError::InUse { dir, pid } => DevError::InUse { dir: dir.display().to_string(), pid },
        HoldError::Io { path, source } => failed("cannot lock", &path, &source),
    })
}
