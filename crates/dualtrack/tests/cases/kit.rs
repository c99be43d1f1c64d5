//! The product as processes, workers as processes, and what the tests wait with. Shared by the targets
//! `cases`, `crash` and `fail_points`.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use bytes::Bytes;
use dualtrack::dev::Settings;
use rest_client::contract::CreateRequest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::value::to_raw_value;
use service_host::ProgramSettings as _;
use service_kit::{Clock as _, SystemClock};
use worker_sdk::{Context, HandlerError, Worker};

/// Longest wait for anything; only a defect reaches it.
pub const PATIENCE_MS: u64 = 90_000;

/// What a process of this test binary gets to know that it is a worker: `URL ID SLOTS HANDLER PATH`.
const WORKER: &str = "DUALTRACK_TEST_WORKER";

pub async fn pause(ms: u64) {
    SystemClock.sleep_until(SystemClock.boot_ms() + ms).await;
}

/// Looks again and again until there is what is looked for.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let limit = SystemClock.boot_ms() + PATIENCE_MS;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(SystemClock.boot_ms() < limit, "never came: {what}");
        pause(50).await;
    }
}

/// Settings of a `Dev` below this folder, on free ports.
pub fn settings(dir: &Path, partitions: u16, lease_ms: u64) -> Settings {
    let mut settings = Settings::defaults().expect("the defaults load");
    settings.dev.data = dir.join("data");
    settings.dev.listen = "127.0.0.1:0".to_owned();
    settings.dev.partitions = partitions;
    let c = &mut settings.coordinator;
    (c.lease_ms, c.lease_max_ms, c.heartbeat_ms) = (lease_ms, lease_ms, lease_ms / 3);
    (c.proof_ms, c.renew_ms, c.lease_margin_ms) = (1_000, 500, 1_000);
    settings.lock.ttl_ms = lease_ms;
    settings.task_engine.backoff_base_ms = 50;
    settings
}

/// The same as flags of the program.
pub fn flags(lease_ms: u64) -> Vec<String> {
    let set = [
        format!("coordinator.lease_ms={lease_ms}"),
        format!("coordinator.lease_max_ms={lease_ms}"),
        format!("coordinator.heartbeat_ms={}", lease_ms / 3),
        "coordinator.proof_ms=1000".to_owned(),
        "coordinator.renew_ms=500".to_owned(),
        "coordinator.lease_margin_ms=1000".to_owned(),
        format!("lock.ttl_ms={lease_ms}"),
        "task_engine.backoff_base_ms=50".to_owned(),
    ];
    let partitions = ["--partitions".to_owned(), "4".to_owned()];
    partitions.into_iter().chain(set.into_iter().flat_map(|set| ["--set".to_owned(), set])).collect()
}

/// A request for a task of this type.
pub fn request(task_type: &str, payload: u64) -> CreateRequest {
    let payload = to_raw_value(&payload).expect("JSON");
    CreateRequest { task_type: task_type.into(), payload: Some(payload), ..Default::default() }
}

/// A process of `dualtrack dev`; killed when it is dropped.
pub struct DevProcess {
    child: Child,
    said: Receiver<String>,
    errors: PathBuf,
}

impl DevProcess {
    /// Starts one on the folder. It may not be up yet, or end by itself.
    pub fn spawn(data: &Path, listen: &str, more: &[String], environment: &[(&str, String)]) -> Self {
        let errors = data.with_extension("stderr");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&errors).expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_dualtrack"))
            .env_remove("DUALTRACK_URL")
            .env_remove("DUALTRACK_LOG")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .args(["dev", "--listen", listen, "--data"])
            .arg(data)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let (tell, said) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { child, said, errors }
    }

    /// Waits until every partition has its owner; where it answers.
    pub fn ready(&mut self) -> String {
        let mut url = None;
        loop {
            match self.said.recv_timeout(Duration::from_millis(PATIENCE_MS)) {
                Ok(line) if line == "ready" => return url.expect("the start line names the URL"),
                Ok(line) => {
                    url = url.or_else(|| line.split([' ', ',']).find(|w| w.starts_with("http://")).map(str::to_owned));
                }
                Err(RecvTimeoutError::Timeout) => panic!("not ready: {}", self.log()),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().expect("it ended");
                    panic!("dev ended instead of starting, {status}: {}", self.log());
                }
            }
        }
    }

    /// What all processes on this folder logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.errors).expect("readable")
    }

    pub fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// As the machine's sudden end would; it must have been running until then.
    pub fn kill(mut self) {
        let ended = self.child.try_wait().expect("its status");
        assert!(ended.is_none(), "it ended by itself, {ended:?}: {}", self.log());
        self.signal(Signal::KILL);
        self.child.wait().expect("it ended");
    }

    /// Ends it politely.
    pub fn terminate(mut self) {
        self.signal(Signal::TERM);
        let status = self.child.wait().expect("it ended");
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its status")
    }

    /// Waits until it has died by SIGKILL.
    pub async fn killed_itself(&mut self, what: &str) {
        let status = until(what, async || self.ended()).await;
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{what}: {status}: {}", self.log());
    }
}

impl Drop for DevProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("not 0");
    kill_process(pid, signal).expect("it is there");
}

/// A worker in a process of its own: this test binary, told to be one. Killed when it is dropped.
pub struct WorkerProcess(Child);

impl WorkerProcess {
    /// `handler`: `hang`, `lines` (to the file at `path`, by the guard), or how long it runs, ms.
    pub fn start(url: &str, id: &str, slots: u32, handler: &str, path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", "a_worker_process", "--nocapture"]);
        command.env(WORKER, format!("{url} {id} {slots} {handler} {}", path.display()));
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process"))
    }

    pub fn signal(&self, signal: Signal) {
        send(&self.0, signal);
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Works until it is killed, if this process was told to.
#[expect(clippy::disallowed_methods, reason = "how a process of this binary is told to be a worker")]
pub fn work_if_told() {
    let Ok(told) = std::env::var(WORKER) else { return };
    let [url, id, slots, handler, path] = told.splitn(5, ' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let (kind, path) = (handler.to_owned(), PathBuf::from(path));
    let run = move |context| handle(kind.clone(), path.clone(), context);
    let worker = Worker::connect(url).worker_id(id).slots(slots.parse().expect("a number")).handler("t", run);
    let worker = worker.build().expect("settings");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(worker.run(std::future::pending())).expect("it is killed");
}

async fn handle(kind: String, path: PathBuf, context: Context) -> Result<Bytes, HandlerError> {
    match kind.as_str() {
        "hang" => std::future::pending().await,
        "lines" => {
            let file = context.guarded_file(path).await?;
            loop {
                file.append(format!("{} {}\n", context.task_id(), context.exec_epoch())).await?;
                pause(100).await;
            }
        }
        ms => {
            pause(ms.parse().expect("ms")).await;
            Ok(Bytes::from("1"))
        }
    }
}
