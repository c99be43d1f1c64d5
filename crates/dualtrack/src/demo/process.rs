//! Processes of the demo and of the benchmarks: the server and its workers are this program again,
//! started, killed and stopped from here. Whatever happens, none outlives who started it.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use dualtrack::signals::Signals;
use futures::future::{Either, select};
use rest_client::Client;
use rustix::process::{Pid, Signal, kill_process};
use service_kit::{Clock as _, SystemClock};

/// Longest time from a start to the first good answer of `/readyz`, ms.
const READY_MS: u64 = 60_000;
/// Longest time a process gets to end after SIGTERM, ms.
const END_MS: u64 = 20_000;
/// Pause between two looks, ms.
const LOOK_MS: u64 = 20;

/// Runs what starts processes until it ends or a signal comes: what is broken off is dropped, and so ends
/// its processes.
///
/// # Errors
/// Those of what runs; or it was broken off.
pub async fn until_stopped<T>(
    signals: &mut Signals,
    what: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    match select(Box::pin(what), Box::pin(signals.received())).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => bail!("broken off"),
    }
}

/// A process that was started here, in a process group of its own: a terminal's Ctrl-C reaches only who
/// started it, and ends it from there. Dropping it kills it.
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts this program with other arguments; `says`: where its stdout and stderr go.
    pub fn start(name: &str, arguments: &[&std::ffi::OsStr], says: (Stdio, Stdio)) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let (stdout, stderr) = says;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn();
        Ok(Self { name: name.to_owned(), child: child.with_context(|| format!("cannot start {name}"))? })
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if it ended by itself.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait().with_context(|| format!("cannot look after {}", self.name))? {
            Some(status) => bail!("{} ended by itself: {status}", self.name),
            None => Ok(()),
        }
    }

    /// Ends it without a warning: no clean-up, no flush, nothing but what is durable already.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.is_running()?;
        self.signal(Signal::KILL)?;
        let status = self.child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        ensure!(status.signal() == Some(9), "{} should have died by SIGKILL but ended with {status}", self.name);
        Ok(())
    }

    /// Asks it to end, and waits until it did.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.is_running()?;
        self.signal(Signal::TERM)?;
        let until = SystemClock.boot_ms() + END_MS;
        loop {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "{} ended with {status} after SIGTERM", self.name);
                return Ok(());
            }
            ensure!(SystemClock.boot_ms() < until, "{} has not ended {END_MS} ms after SIGTERM", self.name);
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        kill_process(pid, signal).with_context(|| format!("cannot signal {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Of one that ended already these are errors that say nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server: `dualtrack dev` in a process of its own.
pub struct Server {
    process: Process,
    /// Where REST answers.
    pub url: String,
}

impl Server {
    /// Starts `dualtrack dev` with these settings and waits until every partition has its owner. What
    /// it logs goes to `server.log` beside the settings.
    pub async fn start(settings: &Path, listen: &str) -> anyhow::Result<Self> {
        let mut server = Self::launch(settings, listen)?;
        server.ready().await?;
        Ok(server)
    }

    /// The same without the wait: once its port is bound.
    pub fn launch(settings: &Path, listen: &str) -> anyhow::Result<Self> {
        let place = settings.with_file_name("server.log");
        let log = OpenOptions::new().create(true).append(true).open(&place);
        let log = log.with_context(|| format!("cannot open {}", place.display()))?;
        let arguments =
            ["dev".as_ref(), "--config".as_ref(), settings.as_os_str(), "--listen".as_ref(), listen.as_ref()];
        let mut process = Process::start("the server", &arguments, (Stdio::piped(), log.into()))?;
        let out = process.child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(out).lines();
        let url = loop {
            let Some(line) = lines.next().transpose()? else {
                let status = process.child.wait()?;
                bail!("the server ended before it was up: {status}; {} says why", place.display());
            };
            if let Some(at) = line.find("http://") {
                let url = line[at..].split([' ', ',']).next().unwrap_or_default();
                break url.to_owned();
            }
        };
        // What else it says is nobody's, but must not fill the pipe.
        std::thread::spawn(move || lines.by_ref().for_each(drop));
        Ok(Self { process, url })
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let client = Client::new(&self.url)?;
        let until = SystemClock.boot_ms() + READY_MS;
        while !client.ready().await.is_ok_and(|health| health.status == 200) {
            self.is_running()?;
            ensure!(SystemClock.boot_ms() < until, "the server is not ready after {READY_MS} ms");
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
        Ok(())
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Fails if it ended by itself.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        self.process.is_running()
    }

    /// SIGKILL.
    pub fn kill(self) -> anyhow::Result<()> {
        self.process.kill()
    }

    /// SIGTERM: it answers what is in flight and hands over.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.process.stop().await
    }
}
