//! What a figure is taken on: `dualtrack dev`, or with `--stack` separate processes on the engines that
//! the environment names.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::Context as _;
use service_host::Sources;
use stack_control::{Cluster, Launch, Member, Plan, Served, variable};

use super::PARTITIONS;
use crate::demo::server;

/// The coordinator that is killed, and started again.
const VICTIM: Member = Member::Coordinator(1);

/// Coordinators of a suite of separate processes. One has all partitions: two on the same cores share the
/// work and add a process.
const COORDINATORS: u16 = 1;

/// What runs.
pub enum Suite {
    /// `dualtrack dev`; `None` while it is dead.
    Dev(Option<Served>, PathBuf),
    /// Separate processes; how the victim is started while it is dead.
    Apart(Cluster, Option<Launch>),
}

impl Suite {
    /// `dualtrack dev` on a folder, with these settings more.
    pub async fn dev(dir: &Path, more: &[(&str, &str)]) -> anyhow::Result<Self> {
        let data = serde_json::to_string(&dir.join("data")).context("the folder's name is no UTF-8")?;
        let settings = dir.join("dev.toml");
        let mut text = format!("[dev]\ndata = {data}\npartitions = {PARTITIONS}\n");
        for (section, key, value) in more.iter().filter_map(|(key, value)| {
            let (section, key) = key.split_once('.')?;
            Some((section, key, value))
        }) {
            text.push_str(&format!("\n[{section}]\n{key} = {value}\n"));
        }
        std::fs::write(&settings, text)?;
        let served = Served::start(server::dev(&settings, "127.0.0.1:0")?).await?;
        Ok(Self::Dev(Some(served), settings))
    }

    /// Separate processes on a topic and a keyspace of their own.
    pub async fn apart(dir: &Path, more: &[(&str, &str)]) -> anyhow::Result<Self> {
        let plan = plan(dir, more)?;
        Ok(Self::Apart(Cluster::start(&plan).await?, None))
    }

    /// Where it answers.
    pub fn url(&self) -> anyhow::Result<String> {
        match self {
            Self::Dev(served, _) => served.as_ref().map(|served| served.url.clone()),
            Self::Apart(cluster, _) => cluster.urls().into_iter().next(),
        }
        .context("the server is down")
    }

    /// Its process ids.
    pub fn ids(&self) -> Vec<u32> {
        match self {
            Self::Dev(served, _) => served.iter().map(Served::id).collect(),
            Self::Apart(cluster, _) => cluster.ids(),
        }
    }

    /// Fails if a process ended by itself.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Dev(served, _) => served.as_mut().context("the server is down")?.is_running(),
            Self::Apart(cluster, _) => cluster.is_running(),
        }
    }

    /// SIGKILL for the server, or for the coordinator.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Dev(served, _) => served.take().context("the server is down")?.kill().map(drop),
            Self::Apart(cluster, killed) => {
                *killed = Some(cluster.take(VICTIM)?.kill()?);
                Ok(())
            }
        }
    }

    /// What was killed again, at the same address, once its port is bound.
    pub fn launch_again(&mut self, address: &str) -> anyhow::Result<()> {
        match self {
            Self::Dev(served, settings) => *served = Some(Served::launch(server::dev(settings, address)?)?),
            Self::Apart(cluster, killed) => {
                cluster.put(VICTIM, Served::launch(killed.take().context("the coordinator runs")?)?);
            }
        }
        Ok(())
    }

    /// The same, once it is ready.
    pub async fn start_again(&mut self, address: &str) -> anyhow::Result<()> {
        self.launch_again(address)?;
        match self {
            Self::Dev(served, _) => served.as_mut().context("the server is down")?.ready().await,
            Self::Apart(cluster, _) => cluster.ready().await,
        }
    }
}

/// Topic and keyspace of one figure, made.
fn plan(dir: &Path, more: &[(&str, &str)]) -> anyhow::Result<Plan> {
    static FIGURES: AtomicU16 = AtomicU16::new(0);
    let (run, figure) = (std::process::id(), FIGURES.fetch_add(1, Ordering::Relaxed));
    let plan = Plan {
        engines: server::engines(),
        topic: format!("bench-{run}-{figure}"),
        keyspace: format!("bench_{run}_{figure}"),
        partitions: PARTITIONS,
        coordinators: COORDINATORS,
        more: more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        dir: dir.to_owned(),
    };
    plan.prepare(&std::env::current_exe().context("cannot find this program")?)?;
    Ok(plan)
}

/// Settings that reach a topic and a keyspace of their own, on the engines that the environment names.
pub fn settings(dir: &Path) -> anyhow::Result<dualtrack_coordinator::Settings> {
    let environment = plan(dir, &[])?.environment().into_iter().collect();
    Ok(Sources { environment, ..Sources::default() }.load()?)
}

/// Ports of the engines on this machine, by the engine's name.
pub fn ports() -> Vec<(&'static str, u16)> {
    let engines = server::engines().0;
    let all = [("Kafka", "log.bootstrap"), ("Cassandra", "store.contact_points"), ("Redis", "lock.url")];
    let port = |key: &str| engines.get(&variable(key))?.rsplit_once(':')?.1.parse().ok();
    all.into_iter().filter_map(|(name, key)| Some((name, port(key)?))).collect()
}
