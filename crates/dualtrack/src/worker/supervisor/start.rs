//! Starting the program with its pipes.

use std::ffi::{CStr, OsString};
use std::fs;
use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{Pid, getpid};
use tempfile::TempDir;
use tokio::net::unix::pipe::{Receiver, Sender};

use super::Start;

/// This program, also when its file was replaced meanwhile.
pub const THIS_PROGRAM: &str = "/proc/self/exe";
/// Descriptor on which the program writes lines.
const LINES_FD: i32 = 3;
/// Descriptor on which it reads replies.
const REPLIES_FD: i32 = 4;
/// What `ps` shows of a supervisor.
pub const NAME: &CStr = c"dt-supervisor";

/// A program that runs, with this end of its pipes.
pub struct Program {
    pub pid: Pid,
    pub stdin: Sender,
    pub stdout: Receiver,
    pub stderr: Receiver,
    pub lines: Receiver,
    pub replies: Sender,
}

/// The folder of one attempt: gone with the supervisor, whatever lies in it.
pub fn scratch(steps: &[u8]) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("dualtrack-").tempdir()?;
    fs::write(folder.path().join("steps.json"), steps)?;
    Ok(folder)
}

/// Starts the program.
pub fn start(what: &Start, scratch: &Path) -> io::Result<Program> {
    let ((stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr)) = (pipe()?, pipe()?, pipe()?);
    let ((from_lines, lines), (replies, to_replies)) = (pipe()?, pipe()?);
    let os = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
    let mut command = Command::new(THIS_PROGRAM);
    command
        .arg0("dualtrack")
        .args(["worker", "enter", "--supervisor", &getpid().to_string(), "--"])
        .args(what.command.iter().map(os))
        .env_clear()
        .envs(what.environment.iter().map(|(name, value)| (os(name), os(value))))
        .env("DUALTRACK_SCRATCH", scratch)
        .env("DUALTRACK_STEPS", scratch.join("steps.json"))
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    let mappings = vec![
        FdMapping { parent_fd: lines.into(), child_fd: LINES_FD },
        FdMapping { parent_fd: replies.into(), child_fd: REPLIES_FD },
    ];
    command.fd_mappings(mappings).map_err(io::Error::other)?;
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(Program {
        pid: pid.ok_or_else(|| io::Error::other("a process without a number"))?,
        stdin: sender(to_stdin)?,
        stdout: receiver(from_stdout)?,
        stderr: receiver(from_stderr)?,
        lines: receiver(from_lines)?,
        replies: sender(to_replies)?,
    })
}

fn sender(pipe: PipeWriter) -> io::Result<Sender> {
    Sender::from_owned_fd(pipe.into())
}

fn receiver(pipe: PipeReader) -> io::Result<Receiver> {
    Receiver::from_owned_fd(pipe.into())
}
