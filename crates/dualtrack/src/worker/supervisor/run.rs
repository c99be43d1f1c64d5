//! The supervisor's loop: it ends the tree when it is told to, when the time is up, when there is too
//! much memory, when the program itself ends, and when the worker is gone.

use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process_group};
use service_kit::{Clock as _, SystemClock};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

use super::capture::{Printed, capture};
use super::lines::Lines;
use super::pipe::Pipe;
use super::start::{NAME, Program, scratch, start};
use super::{Cut, Ended, FromSupervisor, How, Start, ToSupervisor, codec, from_frame, to_frame};
use crate::worker::tree::{self, Status};

/// Longest line of descriptor 3 that is handed on whole, bytes; of a longer one the beginning is.
const MAX_LINE_BYTES: usize = 1 << 20;
/// Memory of the tree is looked at so often, ms.
const MEMORY_EVERY_MS: u64 = 200;
/// Pause between two looks at what is left of a tree that is being ended, ms.
const LOOK_MS: u64 = 2;
const LOOK_MAX_MS: u64 = 200;
/// Replies that wait for a program that does not read them; beyond, they are dropped.
const REPLIES: usize = 64;

type Control = FramedRead<Receiver, LengthDelimitedCodec>;

/// Runs one program as the worker at the other end of stdin and stdout says. The exit code tells
/// nobody anything: the last message does.
pub fn supervise() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(run())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

async fn run() -> io::Result<()> {
    rustix::thread::set_name(NAME)?;
    tree::adopt_orphans()?;
    // Whoever signals a whole group or service means the worker; this one ends after the program.
    let ignored = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    let _ignored: Vec<Signals> = ignored.into_iter().map(signal).collect::<Result<_, _>>()?;
    let children = signal(SignalKind::child())?;
    let stdin = Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let stdout = Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
    let mut control = FramedRead::new(stdin, codec());
    // A worker that ended before it said what to run has nothing to be told.
    let Some(first) = control.next().await else { return Ok(()) };
    let ToSupervisor::Start(what) = from_frame(&first?)? else { return Err(io::Error::other("no start")) };
    let (say, said) = mpsc::channel(4);
    let saying = tokio::spawn(write_out(FramedWrite::new(stdout, codec()), said));
    let folder = scratch(&what.steps)?;
    let ended = match start(&what, folder.path()) {
        Ok(program) => Supervisor::new(*what, program, control, children, say.clone()).run().await,
        Err(why) => not_started(&why),
    };
    drop(folder);
    if let Some(ended) = ended {
        let _ = say.send(FromSupervisor::Ended(Box::new(ended))).await;
        drop(say);
        let _ = saying.await;
    }
    Ok(())
}

fn not_started(why: &io::Error) -> Option<Ended> {
    let (stdout, stderr) = Default::default();
    Some(Ended { how: How::NotStarted(why.to_string()), cut: None, stdout, stderr, last_line: None })
}

async fn write_out(mut to: FramedWrite<Sender, LengthDelimitedCodec>, mut said: mpsc::Receiver<FromSupervisor>) {
    while let Some(message) = said.recv().await {
        // A worker that is gone reads nothing; the loop notices it by itself.
        let Ok(frame) = to_frame(&message) else { return };
        if to.send(frame).await.is_err() {
            return;
        }
    }
}

struct Supervisor {
    pid: Pid,
    until: u64,
    at_most_until: u64,
    memory: Option<u64>,
    /// When a program that was asked to end is ended, ms on the boot clock.
    kill_at: u64,
    status: Option<Status>,
    cut: Option<Cut>,
    worker_is_gone: bool,
    control: Control,
    children: Signals,
    over: watch::Sender<bool>,
    replies: mpsc::Sender<Bytes>,
    stdout: JoinHandle<Printed>,
    stderr: JoinHandle<Printed>,
    lines: JoinHandle<()>,
}

impl Supervisor {
    fn new(
        what: Start,
        program: Program,
        control: Control,
        children: Signals,
        say: mpsc::Sender<FromSupervisor>,
    ) -> Self {
        let (over, is_over) = watch::channel(false);
        let (replies, to_reply) = mpsc::channel(REPLIES);
        tokio::spawn(feed(program.stdin, what.stdin));
        tokio::spawn(reply(program.replies, to_reply));
        Self {
            pid: program.pid,
            until: what.until,
            at_most_until: what.at_most_until,
            memory: what.memory,
            kill_at: u64::MAX,
            status: None,
            cut: None,
            worker_is_gone: false,
            control,
            children,
            over,
            replies,
            stdout: tokio::spawn(capture(Pipe::new(program.stdout, is_over.clone()))),
            stderr: tokio::spawn(capture(Pipe::new(program.stderr, is_over.clone()))),
            lines: tokio::spawn(hand_on(Pipe::new(program.lines, is_over), say)),
        }
    }

    // `None`: there is nobody to be told.
    async fn run(mut self) -> Option<Ended> {
        self.until_it_ends().await;
        self.end_tree().await;
        self.over.send_replace(true);
        if self.worker_is_gone {
            return None;
        }
        // The lines come before the end; a worker that stands still takes them when it goes on.
        self.lines.await.ok()?;
        let (stdout, stderr) = (self.stdout.await.ok()?, self.stderr.await.ok()?);
        Some(Ended {
            how: self.status.map_or_else(|| How::NotStarted("its end was not seen".into()), How::Ended),
            cut: self.cut,
            stdout: stdout.captured,
            stderr: stderr.captured,
            last_line: stdout.last_line,
        })
    }

    async fn until_it_ends(&mut self) {
        let clock = SystemClock;
        let mut memory_at = self.memory.map_or(u64::MAX, |_| clock.boot_ms());
        loop {
            self.reap();
            let now = clock.boot_ms();
            let time_up = self.until.min(self.at_most_until);
            if self.status.is_some() {
                return;
            }
            if now >= time_up || now >= self.kill_at {
                self.cut.get_or_insert(Cut::TimeUp);
                return;
            }
            if now >= memory_at {
                memory_at = now + MEMORY_EVERY_MS;
                if let Some(used) = self.too_much_memory() {
                    self.cut = Some(Cut::Memory(used));
                    return;
                }
            }
            let next = time_up.min(self.kill_at).min(memory_at);
            tokio::select! {
                frame = self.control.next() => match frame.map(|frame| frame.and_then(|frame| from_frame(&frame))) {
                    Some(Ok(message)) => if self.heard(message) { return },
                    // The worker is gone, or what comes is not a worker's.
                    Some(Err(_)) | None => {
                        self.worker_is_gone = true;
                        return;
                    }
                },
                _ = self.children.recv() => {}
                () = clock.sleep_until(next) => {}
            }
        }
    }

    // Whether the tree is to be ended now.
    fn heard(&mut self, message: ToSupervisor) -> bool {
        match message {
            ToSupervisor::Until(until) => self.until = until,
            ToSupervisor::Terminate(grace_ms) => {
                self.kill_at = self.kill_at.min(SystemClock.boot_ms().saturating_add(grace_ms));
                if self.cut.replace(Cut::Told).is_none() {
                    let _ = kill_process_group(self.pid, Signal::TERM);
                }
            }
            ToSupervisor::Kill => {
                self.cut = Some(Cut::Told);
                return true;
            }
            // A program that does not read its replies does not get them all.
            ToSupervisor::Reply(line) => drop(self.replies.try_send(line)),
            // There is one at a time.
            ToSupervisor::Start(_) => {}
        }
        false
    }

    fn too_much_memory(&self) -> Option<u64> {
        let limit = self.memory?;
        tree::memory_below().ok().filter(|used| *used > limit)
    }

    fn reap(&mut self) {
        while let Some((pid, status)) = tree::reap_any() {
            if pid == self.pid {
                self.status = Some(status);
            }
        }
    }

    // Children are ended until there are none: those of whoever ends become children of this process.
    async fn end_tree(&mut self) {
        let clock = SystemClock;
        let mut pause = LOOK_MS;
        loop {
            self.reap();
            match tree::children() {
                Ok(children) if children.is_empty() => return,
                Ok(children) => children.into_iter().for_each(tree::kill),
                // Without /proc there is the program's group at least.
                Err(_) => drop(kill_process_group(self.pid, Signal::KILL)),
            }
            tokio::select! {
                _ = self.children.recv() => {}
                () = clock.sleep_until(clock.boot_ms() + pause) => pause = (pause * 2).min(LOOK_MAX_MS),
            }
        }
    }
}

// What the program does not read is its own affair.
async fn feed(mut stdin: Sender, bytes: Bytes) {
    let _ = stdin.write_all(&bytes).await;
}

async fn reply(mut to: Sender, mut replies: mpsc::Receiver<Bytes>) {
    while let Some(line) = replies.recv().await {
        if to.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn hand_on(mut from: Pipe, say: mpsc::Sender<FromSupervisor>) {
    let mut lines = Lines::new(MAX_LINE_BYTES);
    let mut buffer = vec![0; 16 * 1024];
    let mut found = Vec::new();
    let note = |begin: &[u8], bytes: u64| (bytes > 0).then(|| (Bytes::copy_from_slice(begin), bytes));
    while let Some(bytes) = from.read(&mut buffer).await {
        lines.push(&buffer[..bytes], |begin, bytes| found.extend(note(begin, bytes)));
        if !tell(&mut found, &say).await {
            return;
        }
    }
    lines.finish(|begin, bytes| found.extend(note(begin, bytes)));
    tell(&mut found, &say).await;
}

async fn tell(found: &mut Vec<(Bytes, u64)>, say: &mpsc::Sender<FromSupervisor>) -> bool {
    for (begin, bytes) in found.drain(..) {
        if say.send(FromSupervisor::Line { begin, bytes }).await.is_err() {
            return false;
        }
    }
    true
}
