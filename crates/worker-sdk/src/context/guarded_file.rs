//! A file that only the newest attempt of a task writes to.
//!
//! A check before a write cannot hold off a process that is stopped between the two. Here both happen
//! under a lock of the file system, beside the highest exec_epoch that was ever let in:
//!
//! - An attempt of a higher epoch raises it; from then on the older one is refused, whatever it
//!   believes of its lease.
//! - A process that is stopped inside keeps the lock. Its line still comes before all of the newer
//!   attempt, which waits for it: it is late, never out of order. If it dies, the lock is gone.
//!
//! What cannot be helped: writes that go around this (another program, another name of the same
//! file by a hard link), file systems without locks between machines (NFS mounted with `nolock`),
//! and a line cut off by a crash in the middle of its write. For sinks that are no files, hand
//! [`Context::exec_epoch`] to them and let them refuse lower ones.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use task_events::{ExecEpoch, TaskId};

use super::{Context, Guard};
use crate::HandlerError;

/// Pause before a lock that another attempt holds is tried again, ms.
const LOCKED_MS: u64 = 20;

/// A file that refuses writes of all but the newest attempt of a task. Clones are the same sink.
#[derive(Clone)]
pub struct GuardedFile {
    context: Context,
    sink: Arc<Sink>,
}

impl Context {
    /// The file at `path`, appended to by this attempt as long as no newer one of the task has
    /// opened it. Its highest epoch stands beside it, in `PATH.TASK.epoch`; several tasks may share
    /// a file.
    ///
    /// # Errors
    /// The files cannot be used; or the attempt may no longer act: hand that through.
    pub async fn guarded_file(&self, path: impl Into<PathBuf>) -> Result<GuardedFile, HandlerError> {
        let sink = Arc::new(Sink::new(path.into(), self.task_id(), self.exec_epoch()));
        let file = GuardedFile { context: self.clone(), sink };
        file.write(Bytes::new()).await?;
        Ok(file)
    }
}

impl GuardedFile {
    /// Appends all of these bytes, in one write, and returns once they are on disk.
    ///
    /// # Errors
    /// They cannot be written; or the attempt may no longer act: hand that through.
    pub async fn append(&self, bytes: impl Into<Bytes>) -> Result<(), HandlerError> {
        self.write(bytes.into()).await
    }

    async fn write(&self, bytes: Bytes) -> Result<(), HandlerError> {
        while self.context.may_write() {
            let (sink, bytes, guard) = (self.sink.clone(), bytes.clone(), self.context.guard.clone());
            let written = tokio::task::spawn_blocking(move || sink.append(&bytes, &guard)).await;
            match written.map_err(|why| HandlerError::transient("IO_ERROR", why.to_string()))?? {
                Let::In => return Ok(()),
                Let::Wait => self.context.payloads.pause(LOCKED_MS).await,
                Let::Out => break,
            }
        }
        Err(HandlerError::stopped())
    }
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Let {
    In,
    /// Somebody else is inside.
    Wait,
    /// A newer attempt was let in before, or the lease is over.
    Out,
}

struct Sink {
    path: PathBuf,
    beside: PathBuf,
    epoch: ExecEpoch,
}

impl Sink {
    fn new(path: PathBuf, task: TaskId, epoch: ExecEpoch) -> Self {
        let mut beside = path.clone().into_os_string();
        beside.push(format!(".{task}.epoch"));
        Self { path, beside: beside.into(), epoch }
    }

    fn append(&self, bytes: &[u8], guard: &Guard) -> io::Result<Let> {
        let mut lock = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&self.beside)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Let::Wait),
            Err(TryLockError::Error(why)) => return Err(why),
        }
        let highest = highest(&mut lock, &self.beside)?;
        // Whoever lets go of the lock closes the file: both happen at every return.
        if highest > self.epoch || !guard.holds() {
            return Ok(Let::Out);
        }
        if highest < self.epoch {
            raise(&mut lock, self.epoch)?;
        }
        if !bytes.is_empty() {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all(bytes)?;
            file.sync_data()?;
        }
        Ok(Let::In)
    }
}

// Lines of ten digits; what a crash left half-written is shorter, and is passed over.
fn highest(lock: &mut File, path: &Path) -> io::Result<ExecEpoch> {
    let mut text = String::new();
    lock.read_to_string(&mut text)?;
    let known = text.lines().filter(|line| line.len() == 10).filter_map(|line| line.parse().ok().map(ExecEpoch)).max();
    if known.is_none() && text.len() >= 11 {
        return Err(io::Error::other(format!("{} holds no epoch: {text:?}", path.display())));
    }
    Ok(known.unwrap_or_default())
}

// The old one stays. On a line of its own, whatever a crash left before it.
fn raise(lock: &mut File, epoch: ExecEpoch) -> io::Result<()> {
    let line = format!("\n{:010}\n", epoch.get());
    lock.seek(io::SeekFrom::End(0))?;
    lock.write_all(line.as_bytes())?;
    lock.sync_data()
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    fn guard(until: u64) -> Guard {
        Guard { until: watch::channel(until).1, boot_ms: Arc::new(|| 10) }
    }

    fn task(n: i64) -> TaskId {
        TaskId::from_raw(n << 22).unwrap()
    }

    #[test]
    fn after_the_first_of_a_newer_attempt_the_older_one_is_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let sink = |n, epoch| Sink::new(path.clone(), task(n), ExecEpoch(epoch));
        let (old, new, other) = (sink(1, 1), sink(1, 3), sink(2, 1));
        let (end, until) = watch::channel(11);
        let holds = Guard { until, ..guard(11) };
        assert_eq!(old.append(b"1\n", &holds).unwrap(), Let::In);
        assert_eq!(new.append(b"", &holds).unwrap(), Let::In);
        assert_eq!(old.append(b"1\n", &holds).unwrap(), Let::Out, "its lease may hold as long as it likes");
        assert_eq!(new.append(b"3\n", &holds).unwrap(), Let::In);
        assert_eq!(other.append(b"o\n", &holds).unwrap(), Let::In, "another task has epochs of its own");
        end.send_replace(10);
        assert_eq!(new.append(b"3\n", &holds).unwrap(), Let::Out);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n3\no\n");
    }

    #[test]
    fn who_is_stopped_inside_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (
            Sink::new(dir.path().join("log"), task(1), ExecEpoch(1)),
            Sink::new(dir.path().join("log"), task(1), ExecEpoch(2)),
        );
        assert_eq!(old.append(b"1\n", &guard(11)).unwrap(), Let::In);
        let inside = File::open(&old.beside).unwrap();
        inside.lock().unwrap();
        assert_eq!(new.append(b"2\n", &guard(11)).unwrap(), Let::Wait);
        drop(inside);
        assert_eq!(new.append(b"2\n", &guard(11)).unwrap(), Let::In);
    }

    #[test]
    fn a_half_written_epoch_does_not_hide_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let sink = Sink::new(dir.path().join("log"), task(1), ExecEpoch(2));
        std::fs::write(&sink.beside, "0000000003\n00000").unwrap();
        assert_eq!(sink.append(b"2\n", &guard(11)).unwrap(), Let::Out);
        std::fs::write(&sink.beside, "something else").unwrap();
        assert!(sink.append(b"2\n", &guard(11)).is_err());
    }
}
