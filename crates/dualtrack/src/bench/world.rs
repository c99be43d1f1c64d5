//! A server and its workers, each a process of its own, and the folder they live in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use rest_client::Client;
use tempfile::TempDir;

use super::{PARTITIONS, Run};
use crate::demo::process::{Process, Server};

/// A running server with its workers. Dropping it kills them and removes the folder.
pub struct World {
    server: Option<Server>,
    workers: Vec<(Process, PathBuf)>,
    url: String,
    settings: PathBuf,
    // Removed last.
    dir: TempDir,
}

/// A folder that goes away when it is dropped.
pub fn folder(base: &Path) -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix(".dualtrack-bench-").tempdir_in(base);
    folder.with_context(|| format!("cannot create a folder in {}", base.display()))
}

impl World {
    /// A server with the standard settings and these (TOML), once every partition has its owner.
    pub async fn start(run: &Run<'_>, more: &str) -> anyhow::Result<Self> {
        let dir = folder(&run.dir)?;
        let data = serde_json::to_string(&dir.path().join("data")).context("the folder's name is no UTF-8")?;
        let settings = dir.path().join("dev.toml");
        std::fs::write(&settings, format!("[dev]\ndata = {data}\npartitions = {PARTITIONS}\n\n{more}"))?;
        let server = Server::start(&settings, "127.0.0.1:0").await?;
        let url = server.url.clone();
        Ok(Self { server: Some(server), workers: Vec::new(), url, settings, dir })
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
        let worker = Process::start(&name, &arguments, (Stdio::null(), Stdio::inherit()))?;
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

    /// The server's process id.
    pub fn server_id(&self) -> anyhow::Result<u32> {
        Ok(self.server.as_ref().context("the server is down")?.id())
    }

    /// The workers' process ids.
    pub fn worker_ids(&self) -> Vec<u32> {
        self.workers.iter().map(|(worker, _)| worker.id()).collect()
    }

    /// Fails if a process ended by itself.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        self.server.as_mut().context("the server is down")?.is_running()?;
        self.workers.iter_mut().try_for_each(|(worker, _)| worker.is_running())
    }

    /// SIGKILL for the server.
    pub fn kill_server(&mut self) -> anyhow::Result<()> {
        self.server.take().context("the server is down")?.kill()
    }

    /// Kills the workers: what they hold is no longer of interest.
    pub fn kill_workers(&mut self) {
        self.workers.clear();
    }

    /// The server again, at the same address, once its port is bound.
    pub fn launch_again(&mut self) -> anyhow::Result<()> {
        self.server = Some(Server::launch(&self.settings, self.address())?);
        Ok(())
    }

    /// The server again, at the same address, once it is ready.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.server = Some(Server::start(&self.settings, self.address()).await?);
        Ok(())
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
