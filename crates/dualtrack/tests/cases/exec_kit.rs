//! `dualtrack worker exec` as a process, and what of its programs is there.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use procfs::process::{Process, all_processes};
use rest_client::Client;
use rest_client::contract::{CreateRequest, TaskView, TimeoutsBody};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::value::to_raw_value;
use task_events::{Kind, TaskId};

use crate::kit::until;

/// Variable by which everything that a worker of one test started is found again.
const MARK: &str = "DUALTRACK_TEST_MARK";

/// A worker that runs one program for each task.
pub struct ExecWorker {
    child: Child,
    mark: String,
}

impl ExecWorker {
    /// Starts one for tasks of type `t`; `flags` stand before the program.
    pub fn start(url: &str, dir: &Path, name: &str, flags: &[&str], script: &str) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_dualtrack")), url, dir, name, flags, script)
    }

    /// The same as process 1 of a process namespace; `None` where the machine does not permit it.
    pub fn start_as_init(url: &str, dir: &Path, name: &str, flags: &[&str], script: &str) -> Option<Self> {
        let namespace = ["--pid", "--fork", "--kill-child", "--mount-proc"];
        let permitted = Command::new("unshare").args(namespace).arg("true").status();
        if !permitted.is_ok_and(|status| status.success()) {
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(namespace).arg(env!("CARGO_BIN_EXE_dualtrack"));
        Some(Self::start_by(command, url, dir, name, flags, script))
    }

    fn start_by(mut command: Command, url: &str, dir: &Path, name: &str, flags: &[&str], script: &str) -> Self {
        let mark = format!("{}/{name}", dir.display());
        let says = std::fs::File::create(dir.join(format!("{name}.says"))).expect("a file");
        let child = command
            .env_remove("DUALTRACK_LOG")
            .env(MARK, &mark)
            .args(["worker", "exec", "--url", url, "--type", "t", "--name", name, "--env", MARK])
            .args(flags)
            .args(["--", "sh", "-c", script])
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(says.try_clone().expect("a file"))
            .stderr(says)
            .spawn()
            .expect("the program starts");
        Self { child, mark }
    }

    /// Its process: of a worker that is process 1, as it is seen from outside.
    pub fn process(&self) -> Option<Process> {
        let started = Process::new(i32::try_from(self.child.id()).ok()?).ok()?;
        match started.cmdline().ok()?.first()?.ends_with("unshare") {
            true => children(&started).into_iter().next(),
            false => Some(started),
        }
    }

    pub fn signal(&self, signal: Signal) {
        send(self.process().expect("it is there").pid, signal);
    }

    /// Its supervisors.
    pub fn supervisors(&self) -> Vec<Process> {
        self.process().map(|process| children(&process)).unwrap_or_default()
    }

    /// How many processes there are that came of its programs.
    pub fn programs(&self) -> usize {
        let own = self.process().map(|process| process.pid);
        let started = i32::try_from(self.child.id()).ok();
        let is_marked = |process: &Process| {
            let environment = process.environ().ok()?;
            Some(environment.get(MARK.as_ref() as &std::ffi::OsStr)? == self.mark.as_str())
        };
        let all = all_processes().expect("/proc").filter_map(Result::ok);
        all.filter(|process| Some(process.pid) != own && Some(process.pid) != started)
            .filter(|process| is_marked(process) == Some(true))
            .count()
    }

    /// Waits until nothing of its programs is left, and no supervisor.
    pub async fn nothing_is_left(&self) {
        until("an end of everything", async || (self.programs() == 0 && self.supervisors().is_empty()).then_some(()))
            .await;
    }

    /// Threads and descriptors.
    pub fn size(&self) -> (usize, usize) {
        let process = self.process().expect("it is there");
        (process.tasks().expect("readable").count(), process.fd_count().expect("readable"))
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its status")
    }

    /// SIGKILL: no clean-up of its own.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("it ended");
    }
}

impl Drop for ExecWorker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("not 0"), signal).expect("it is there");
}

/// Children of a process, ended ones included.
pub fn children(of: &Process) -> Vec<Process> {
    let tasks = of.tasks().into_iter().flatten().filter_map(Result::ok);
    let pids = tasks.filter_map(|task| task.children().ok()).flatten();
    pids.filter_map(|pid| Process::new(i32::try_from(pid).ok()?).ok()).collect()
}

/// A task of type `t`.
pub async fn create(client: &Client, payload: &str, max_retries: u32, start_to_close_ms: Option<u64>) -> TaskId {
    let payload = to_raw_value(payload).expect("JSON");
    let timeouts = start_to_close_ms.map(|ms| TimeoutsBody { start_to_close_ms: Some(ms), schedule_to_start_ms: None });
    let request = CreateRequest {
        task_type: "t".into(),
        payload: Some(payload),
        max_retries: Some(max_retries),
        timeouts,
        ..Default::default()
    };
    client.create(&request, None).await.expect("created").task_id
}

/// The task once it has ended.
pub async fn ended(client: &Client, task: TaskId) -> TaskView {
    until("the end of a task", async || {
        client.get(task, Some(Duration::from_secs(5))).await.ok().filter(|view| view.status.is_terminal())
    })
    .await
}

/// Code of the error that a task ended with, and how many attempts it had.
pub fn code(view: &TaskView) -> (&str, u32) {
    (view.error.as_ref().map_or("", |error| error.code.as_str()), view.exec_epoch)
}

/// How many accepted events of these kinds a task has.
pub async fn accepted(client: &Client, task: TaskId, kinds: &[Kind]) -> usize {
    let events = client.events(task).await.expect("its events").events;
    let names: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
    let is_one = |event: &serde_json::Value| names.iter().any(|name| event["kind"] == *name);
    events.iter().filter(|e| e.verdict == "accepted" && e.event.as_ref().is_some_and(is_one)).count()
}
