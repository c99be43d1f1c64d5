//! A server and its workers, each a process of its own, and the folder they live in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use rest_client::Client;
use stack_control::Process;
use tempfile::TempDir;

use super::Run;
use super::suite::Suite;

/// A running server (or suite of separate processes) with its workers. Dropping it kills them and removes
/// the folder.
pub struct World {
    suite: Suite,
    workers: Vec<(Process, PathBuf)>,
    url: String,
    // Removed last.
    dir: TempDir,
}

/// A folder that goes away when it is dropped.
pub fn folder(base: &Path) -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix(".dualtrack-bench-").tempdir_in(base);
    folder.with_context(|| format!("cannot create a folder in {}", base.display()))
}

impl World {
    /// A server with the standard settings and these (`section.key`, value), once every partition has its
    /// owner.
    pub async fn start(run: &Run<'_>, more: &[(&str, &str)]) -> anyhow::Result<Self> {
        let dir = folder(&run.dir)?;
        let suite = match run.args.stack {
            true => Suite::apart(dir.path(), more).await?,
            false => Suite::dev(dir.path(), more).await?,
        };
        let url = suite.url()?;
        Ok(Self { suite, workers: Vec::new(), url, dir })
    }

    /// Starts a worker.
    pub fn add_worker(&mut self, slots: u32) -> anyhow::Result<()> {
        let name = format!("worker-{}", self.workers.len() + 1);
        let (outbox, samples) = (self.dir.path().join(&name), self.dir.path().join(format!("{name}.samples")));
        let slots = slots.to_string();
        let arguments: [&OsStr; 11] = [
            "bench".as_ref(),
            "--worker".as_ref(),
            name.as_ref(),
            "--url".as_ref(),
            self.url.as_ref(),
            "--slots".as_ref(),
            slots.as_ref(),
            "--outbox".as_ref(),
            outbox.as_os_str(),
            "--samples".as_ref(),
            samples.as_os_str(),
        ];
        let program = std::env::current_exe().context("cannot find this program")?;
        let worker = Process::start(&name, &program, arguments, &[], (Stdio::null(), Stdio::inherit()))?;
        self.workers.push((worker, samples));
        Ok(())
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// A client of the server.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.url)?)
    }

    /// The server's process id; of several processes the coordinator's.
    pub fn server_id(&self) -> anyhow::Result<u32> {
        self.server_ids().first().copied().context("the server is down")
    }

    /// All processes of the server.
    pub fn server_ids(&self) -> Vec<u32> {
        self.suite.ids()
    }

    /// The workers' process ids.
    pub fn worker_ids(&self) -> Vec<u32> {
        self.workers.iter().map(|(worker, _)| worker.id()).collect()
    }

    /// Fails if a process ended by itself.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        self.suite.is_running()?;
        self.workers.iter_mut().try_for_each(|(worker, _)| worker.is_running())
    }

    /// SIGKILL for the server.
    pub fn kill_server(&mut self) -> anyhow::Result<()> {
        self.suite.kill()
    }

    /// Kills the workers: what they hold is no longer of interest.
    pub fn kill_workers(&mut self) {
        self.workers.clear();
    }

    /// The server again, at the same address, once its port is bound.
    pub fn launch_again(&mut self) -> anyhow::Result<()> {
        let address = self.address().to_owned();
        self.suite.launch_again(&address)
    }

    /// The server again, at the same address, once it is ready.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        let address = self.address().to_owned();
        self.suite.start_again(&address).await
    }

    /// Drains the workers; (due, entered) of each first attempt, µs.
    pub async fn drain_workers(&mut self) -> anyhow::Result<Vec<(u64, u64)>> {
        let mut samples = Vec::new();
        for (worker, place) in self.workers.drain(..) {
            worker.stop().await?;
            let text = std::fs::read_to_string(&place).with_context(|| format!("cannot read {}", place.display()))?;
            for line in text.lines() {
                let (due, entered) = line.split_once(' ').context("a sample has two numbers")?;
                samples.push((due.parse()?, entered.parse()?));
            }
        }
        Ok(samples)
    }
}
