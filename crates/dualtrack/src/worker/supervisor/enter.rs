//! The last step before the program: the same process becomes it. What cannot be done from outside is
//! done here: a session of its own, and its death with the supervisor's.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use clap::Args;
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};

/// Exit code of a program that is not there, as shells have it.
const NOT_FOUND: u8 = 127;
/// Exit code of one that is there and cannot be run.
const CANNOT_RUN: u8 = 126;

/// Arguments of the hidden `dualtrack worker enter`.
#[derive(Clone, Debug, Args)]
pub struct EnterArgs {
    /// Process id of the supervisor.
    #[arg(long)]
    supervisor: i32,
    /// Program and arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the program; returns only if it cannot.
pub fn enter(args: &EnterArgs) -> ExitCode {
    let [program, arguments @ ..] = &args.command[..] else { return ExitCode::from(NOT_FOUND) };
    // No terminal, and a process group that the supervisor can signal.
    if let Err(why) = setsid() {
        return complain(program, &why.into());
    }
    if let Err(why) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return complain(program, &why.into());
    }
    // It may have died before that.
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get() != args.supervisor) {
        return ExitCode::from(CANNOT_RUN);
    }
    let why = Command::new(program).args(arguments).exec();
    complain(program, &why)
}

#[expect(clippy::print_stderr, reason = "what the program would have said on its stderr is kept as the error's text")]
fn complain(program: &OsString, why: &std::io::Error) -> ExitCode {
    eprintln!("dualtrack: cannot run {}: {why}", program.display());
    ExitCode::from(if why.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN })
}
