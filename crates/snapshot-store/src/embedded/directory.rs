//! The store's directory: who holds it, and in which format it is.
//!
//! ```text
//! lock      the kernel's lock is on it; holds the pid of the holder, for the message only
//! format    text: name and version of what is in tables/
//! tables/   the LSM tree's own files
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

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

/// Creates and locks the directory and checks its format. Returns where the tables are.
pub(super) fn open(dir: &Path) -> Result<(Lock, PathBuf), OpenError> {
    fs::create_dir_all(dir).map_err(|e| failed("cannot create", dir, &e))?;
    let lock = lock(dir)?;
    let tables = dir.join("tables");
    check_format(dir, &tables)?;
    Ok((lock, tables))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> OpenError {
    OpenError::Io(format!("{what} {}: {error}", path.display()))
}

fn lock(dir: &Path) -> Result<Lock, OpenError> {
    let path = dir.join("lock");
    let failed = |e: &io::Error| failed("cannot lock", &path, e);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(|e| failed(&e))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            return Err(OpenError::InUse { dir: dir.display().to_string(), pid: pid.trim().to_owned() });
        }
        Err(errno) => return Err(failed(&errno.into())),
    }
    let noted = file.set_len(0).and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
    noted.map_err(|e| failed(&e))?;
    Ok(Lock { file })
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
            write_format(dir, &path).map_err(|e| failed("cannot write", &path, &e))
        }
        Err(error) => Err(failed("cannot read", &path, &error)),
    }
}

fn write_format(dir: &Path, path: &Path) -> io::Result<()> {
    let beside = dir.join("format.new");
    let mut file = File::create(&beside)?;
    file.write_all(format!("{FORMAT}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(dir)?.sync_all()
}
