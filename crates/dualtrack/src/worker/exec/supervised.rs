//! The worker's side of its supervisors: starting them, and what is left when one dies.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::Arc;

use futures::future::{Either, select};
use futures::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use rustix::process::Pid;
use service_kit::{Clock as _, SystemClock};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

use crate::cli::Failure;
use crate::worker::supervisor::{FromSupervisor, Start, ToSupervisor, codec, from_frame, to_frame};
use crate::worker::tree;

/// This program, also when its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Pause between two looks at what a supervisor left behind, ms.
const LOOK_MS: u64 = 5;
/// Longest wait for supervisors when the worker ends: they end by themselves when it is gone, ms.
const LEAVE_MS: u64 = 2_000;

/// All supervisors of this worker. Clones are the same.
#[derive(Clone)]
pub struct Supervisors {
    /// Processes that somebody waits for. Held while one is started, so that nobody takes it for an
    /// orphan.
    known: Arc<Mutex<BTreeSet<i32>>>,
    /// Where they put their scratch folders.
    temporary: Option<OsString>,
}

/// One supervisor, with its program.
pub struct Supervised {
    child: Child,
    pid: i32,
    to: FramedWrite<ChildStdin, LengthDelimitedCodec>,
    from: FramedRead<ChildStdout, LengthDelimitedCodec>,
    all: Supervisors,
}

impl Supervisors {
    /// None yet. From here on what a dying supervisor leaves behind is adopted by this process.
    /// `temporary`: folder for scratch folders, else the system's.
    pub fn new(temporary: Option<OsString>) -> io::Result<Self> {
        tree::adopt_orphans()?;
        Ok(Self { known: Arc::default(), temporary })
    }

    /// Does `work`, and meanwhile waits for orphans that end: as process 1 of a container nobody else
    /// would. Afterwards nothing of any program is left, or what is left cannot be ended.
    pub async fn look_after<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let reaping = self.reap_orphans();
        let outcome = match select(Box::pin(work), Box::pin(reaping)).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right((why, _)) => Err(Failure::Local(format!("cannot look after programs: {why}"))),
        };
        let until = SystemClock.boot_ms().saturating_add(LEAVE_MS);
        while !self.known.lock().is_empty() && SystemClock.boot_ms() < until {
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
        outcome
    }

    async fn reap_orphans(&self) -> io::Error {
        let mut ended = match signal(SignalKind::child()) {
            Ok(ended) => ended,
            Err(why) => return why,
        };
        loop {
            ended.recv().await;
            self.strangers(|child| {
                tree::reap(child);
            });
        }
    }

    /// Starts a supervisor and tells it what to run.
    pub async fn start(&self, what: Start) -> io::Result<Supervised> {
        let mut supervised = self.spawn()?;
        supervised.tell(&ToSupervisor::Start(Box::new(what))).await?;
        Ok(supervised)
    }

    fn spawn(&self) -> io::Result<Supervised> {
        let mut command = Command::new(THIS_PROGRAM);
        command
            .arg0("dualtrack")
            .args(["worker", "supervise"])
            // What the program may not see of the worker's environment, its parent need not have.
            .env_clear()
            .envs(self.temporary.iter().map(|folder| ("TMPDIR", folder)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A terminal's Ctrl-C is the worker's.
            .process_group(0);
        let mut known = self.known.lock();
        let mut child = command.spawn()?;
        let gone = || io::Error::other("a supervisor without pipes");
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or_else(gone)?;
        known.insert(pid);
        let (to, from) = (child.stdin.take().ok_or_else(gone)?, child.stdout.take().ok_or_else(gone)?);
        let (to, from) = (FramedWrite::new(to, codec()), FramedRead::new(from, codec()));
        Ok(Supervised { child, pid, to, from, all: self.clone() })
    }

    // Children that nobody waits for.
    fn strangers(&self, act: impl FnMut(Pid)) -> usize {
        let known = self.known.lock();
        let children = tree::children().unwrap_or_default();
        let strangers: Vec<_> =
            children.into_iter().filter(|child| !known.contains(&child.as_raw_nonzero().get())).collect();
        let count = strangers.len();
        strangers.into_iter().for_each(act);
        count
    }

    // Ends everything that a supervisor left behind when it died.
    async fn end_orphans(&self) {
        let end = |child| {
            tree::kill(child);
            tree::reap(child);
        };
        while self.strangers(end) > 0 {
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
    }
}

impl Supervised {
    /// Says something to the supervisor.
    ///
    /// # Errors
    /// It is gone: [`Supervised::hear`] tells.
    pub async fn tell(&mut self, message: &ToSupervisor) -> io::Result<()> {
        self.to.send(to_frame(message)?).await
    }

    /// The next thing it says; `None` if it is gone without a last word.
    pub async fn hear(&mut self) -> Option<FromSupervisor> {
        from_frame(&self.from.next().await?.ok()?).ok()
    }

    /// Ends it without its doing; what it supervised is ended by [`Supervised::end`].
    pub fn kill(&mut self) {
        // Of one that has ended already this is an error that says nothing.
        let _ = self.child.start_kill();
    }

    /// Waits until it is gone. `in_order`: it has said its last word, so nothing is left behind it.
    pub async fn end(mut self, in_order: bool) {
        if !in_order {
            self.kill();
        }
        let status = self.child.wait().await;
        self.all.known.lock().remove(&self.pid);
        if !in_order {
            tracing::error!(pid = self.pid, ?status, "a supervisor died: what it supervised is ended");
            self.all.end_orphans().await;
        }
    }
}
