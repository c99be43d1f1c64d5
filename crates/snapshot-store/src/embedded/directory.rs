//! The store's directory: who holds it, and in which format it is.
//!
//! ```text
//! lock      the kernel's lock is on it; holds the pid of the holder, for the message only
//! format    text: name and version of what is in tables/
//! tables/   the LSM tree's own files
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use held_directory::{Held, HoldError, replace};

/// First line of the format file. The number rises when an older binary would misread the tables.
const FORMAT: &str = "dualtrack-snapshot-store 1";

/// Why a directory cannot be opened as a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another store, of this process or another, has it.
    #[error("{dir} is in use by another process (pid {pid}): one process per directory")]
    InUse {
        /// The directory.
        dir: String,
        /// Who says that it holds it.
        pid: String,
    },
    /// The tables are of another version, or nothing says of which.
    #[error("{path} says {found:?}, this program reads {FORMAT:?}")]
    Format {
        /// The format file.
        path: String,
        /// Its first line; empty when it is missing although there are tables.
        found: String,
    },
    /// The files of the tables are damaged beyond what a crash leaves behind.
    #[error("{0}")]
    Damaged(String),
    /// An I/O error; it may pass.
    #[error("{0}")]
    Io(String),
}

/// Creates and locks the directory and checks its format. Returns where the tables are.
pub(super) fn open(dir: &Path) -> Result<(Held, PathBuf), OpenError> {
    fs::create_dir_all(dir).map_err(|e| failed("cannot create", dir, &e))?;
    let lock = hold(dir)?;
    let tables = dir.join("tables");
    check_format(dir, &tables)?;
    Ok((lock, tables))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> OpenError {
    OpenError::Io(format!("{what} {}: {error}", path.display()))
}

fn hold(dir: &Path) -> Result<Held, OpenError> {
    Held::take(dir).map_err(|why| match why {
        HoldError::InUse { dir, pid } => OpenError::InUse { dir: dir.display().to_string(), pid },
        HoldError::Io { .. } => OpenError::Io(why.to_string()),
    })
}

// The format file comes before the first table: tables without it are not ours.
fn check_format(dir: &Path, tables: &Path) -> Result<(), OpenError> {
    let path = dir.join("format");
    let refused = |found: &str| OpenError::Format { path: path.display().to_string(), found: found.to_owned() };
    match fs::read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let first = text.lines().next().unwrap_or_default();
            if first == FORMAT { Ok(()) } else { Err(refused(first)) }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && tables.exists() => Err(refused("")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            replace(&path, format!("{FORMAT}\n").as_bytes()).map_err(|e| failed("cannot write", &path, &e))
        }
        Err(error) => Err(failed("cannot read", &path, &error)),
    }
}
