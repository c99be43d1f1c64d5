//! A directory that one process at a time holds: the kernel's lock on its file `lock`, and files in it
//! that are replaced whole. Log, store and `dualtrack dev` keep theirs so.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Why a directory is not held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Another holder, of this process or another, has it.
    #[error("{} is in use by another process (pid {pid}): one process per directory", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Who says that it holds it.
        pid: String,
    },
    /// An I/O error; it may pass.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock's file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// The kernel's lock on a directory, held as long as this lives; the kernel frees it when the process
/// ends.
#[derive(Debug)]
pub struct Held(File);

impl Held {
    /// Locks the directory, which exists.
    ///
    /// # Errors
    /// Somebody else holds it, or the lock's file cannot be used.
    pub fn take(dir: &Path) -> Result<Self, HoldError> {
        let path = dir.join("lock");
        let failed = |source| HoldError::Io { path: path.clone(), source };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(HoldError::InUse { dir: dir.to_owned(), pid: pid.trim().to_owned() });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        // Information for the message above only; the lock is the kernel's.
        let noted = file.set_len(0).and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
        noted.map_err(failed)?;
        Ok(Self(file))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing alone isn't enough: a child that was just forked holds the descriptor until it
        // executes its program, and would keep the directory locked that long.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Writes a file so that it is there whole or not at all, also after a crash: beside its place (its name
/// and `.new`), synced, renamed, and the folder synced.
///
/// # Errors
/// What went wrong; the file is as it was, or already the new one.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = File::create(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_next_when_it_is_given_back() {
        let dir = tempfile::tempdir().expect("a folder");
        let held = Held::take(dir.path()).expect("nobody holds it");
        let refused = Held::take(dir.path()).expect_err("it is held").to_string();
        assert!(refused.contains(&format!("(pid {})", std::process::id())), "{refused}");
        drop(held);
        Held::take(dir.path()).expect("it was given back");
        let nowhere = Held::take(&dir.path().join("gone")).expect_err("there is no such folder");
        assert!(matches!(nowhere, HoldError::Io { .. }), "{nowhere}");
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("meta");
        for content in [&b"a longer first"[..], b"second"] {
            replace(&path, content).expect("written");
            assert_eq!(fs::read(&path).expect("there"), content);
        }
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
    }
}
