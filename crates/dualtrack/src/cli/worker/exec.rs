//! `dualtrack worker exec`.

use std::ffi::OsString;

use clap::Args;

use super::ServeArgs;
use crate::cli::failure::note;
use crate::cli::times::duration_ms;
use crate::cli::{Common, Failure};
use crate::worker::exec::{Exec, NoRetry, Passed, Settings, Supervisors};
use crate::worker::serve::{Serving, ending, handlers};

/// Longest grace: the coordinator counts a worker as not stopped 30 s after a cancel.
const MAX_GRACE_MS: u64 = 25_000;

/// What the help says last.
pub const HELP: &str = "\
The program gets the payload on stdin and the task in its environment (DUALTRACK_TASK_ID, _RUN,
_EXEC_EPOCH, _EXECUTION_ID, TRACEPARENT …). Exit code 0 is success, and the last line of stdout the
result. Steps, checkpoints and progress are JSON lines on descriptor 3. All that is left of it is
ended with it. docs/guide/workers.md has the rest.

Example:
  dualtrack worker exec --type checksum -- sh -c 'jq -r .file | xargs sha256sum'";

/// Arguments of `worker exec`.
#[derive(Clone, Debug, Args)]
pub struct ExecArgs {
    #[command(flatten)]
    serve: ServeArgs,
    /// Variable of the worker's environment to pass on; more than once. PATH, HOME, USER, LOGNAME,
    /// SHELL, LANG, LC_*, TZ, TMPDIR and TERM are passed on anyway
    #[arg(long = "env", value_name = "NAME")]
    env: Vec<OsString>,
    /// From SIGTERM to SIGKILL when a program must end, at most 25s
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "5s", value_parser = grace)]
    grace: u64,
    /// Longest life of a program [default: start-to-close of the task]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration_ms)]
    time_limit: Option<u64>,
    /// Most memory of a program with all its descendants, as in 512MiB [default: none]
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<bytesize::ByteSize>,
    /// Exit codes and signals that are not worth another attempt, as in 2,65-78,SEGV
    #[arg(long, value_name = "LIST", default_value = "126,127")]
    no_retry_on: NoRetry,
    /// A last line of stdout that is no JSON is a failure
    #[arg(long)]
    require_json: bool,
    /// Program and arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn grace(text: &str) -> Result<u64, String> {
    let ms = duration_ms(text)?;
    if ms > MAX_GRACE_MS { Err(format!("is {ms} ms, at most {MAX_GRACE_MS} ms are possible")) } else { Ok(ms) }
}

/// Works.
pub async fn run(args: ExecArgs, common: Common) -> Result<(), Failure> {
    // A program that is ended may be busy for all of its grace, so this is checked before anything runs.
    let passed = Passed::new(std::env::vars_os().collect(), &args.env).map_err(Failure::Usage)?;
    let local = |why: std::io::Error| Failure::Local(format!("cannot look after programs: {why}"));
    let supervisors = Supervisors::new(passed.temporary()).map_err(local)?;
    // It may yet come, so this is no reason not to start.
    if let Some(program) = args.command.first()
        && let Err(why) = which::which(program)
    {
        note(&format!("{}: {why}: tasks fail until it is there", program.to_string_lossy()));
    }
    let (end, ending) = ending();
    let does = args.command.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let settings = Settings {
        command: args.command,
        passed,
        grace_ms: args.grace,
        time_limit_ms: args.time_limit,
        memory: args.memory_limit.map(|size| size.as_u64()),
        no_retry: args.no_retry_on,
        require_json: args.require_json,
    };
    let exec = Exec::new(settings, supervisors.clone(), ending);
    let handlers = handlers(&args.serve, move |context| exec.clone().run(context))?;
    let serving = Serving { url: common.url()?, args: args.serve, handlers, does, grace_ms: args.grace };
    supervisors.look_after(serving.run(end)).await
}
