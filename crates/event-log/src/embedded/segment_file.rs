//! Creating, opening and sealing segment files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use uuid::Uuid;

use super::config::Durability;
use super::format::SegmentHeader;
use super::index::SegmentIndex;
use super::segments::{Active, Sealed};

/// Creates a segment with nothing but its header.
pub(super) fn create_segment(path: &Path, header: &SegmentHeader, durability: Durability) -> io::Result<Active> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    file.write_all_at(&header.encode(), 0)?;
    if durability == Durability::Fsync {
        file.sync_all()?;
    }
    Ok(Active {
        number: header.number,
        salt: header.salt(),
        path: path.to_path_buf(),
        file: Arc::new(file),
        index: RwLock::new(SegmentIndex::new(header.created_ms, &header.bases)),
    })
}

/// Writes the index of a full segment; an error costs a rebuild later, nothing else.
pub(super) fn seal(active: &Active, index_path: &Path, log_id: Uuid, len: u64) -> Sealed {
    let index = active.index.read();
    if let Err(error) = fs::write(index_path, index.encode(log_id, active.number, len)) {
        tracing::warn!(file = %index_path.display(), %error, "index file not written, it will be rebuilt");
    }
    Sealed {
        number: active.number,
        len,
        salt: active.salt,
        path: active.path.clone(),
        index_path: index_path.to_path_buf(),
        summary: index.summary(),
    }
}

/// Opens an existing segment for writing.
pub(super) fn open_segment(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}
