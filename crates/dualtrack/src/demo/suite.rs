//! What the demo runs on: one process of `dualtrack dev`, or the suite as separate processes on shared
//! engines. The plot is the same.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Context as _;
use rest_client::Client;
use service_host::Sources;
use service_kit::{Clock as _, SystemClock};
use stack_control::{Cluster, Launch, Member, Plan, Served, until};

use super::files::Places;
use super::settings::CHOSEN;
use super::{DemoArgs, PARTITIONS, server};

/// Coordinators of the suite as separate processes; the first is killed.
const COORDINATORS: u16 = 2;

/// Longest time from a coordinator's death until another one owns all of its partitions, ms: 10 s are
/// promised.
const TAKEN_OVER_MS: u64 = 30_000;

/// What runs.
pub enum Suite {
    /// `dualtrack dev`; `None` while it is dead.
    Dev(Option<Served>),
    /// Separate processes.
    Apart(Cluster),
}

/// What was killed, to be started again.
pub struct Killed(Launch);

impl Suite {
    /// Starts it, and waits until every partition has its owner.
    pub async fn start(args: &DemoArgs, places: &Places) -> anyhow::Result<Self> {
        if !args.stack {
            return Ok(Self::Dev(Some(Served::start(server::dev(&places.settings, "127.0.0.1:0")?).await?)));
        }
        let plan = plan(args);
        plan.prepare(&std::env::current_exe().context("cannot find this program")?)?;
        Ok(Self::Apart(Cluster::start(&plan).await?))
    }

    /// Where it answers; the last one outlives the kill, if there are several.
    pub fn urls(&self) -> Vec<String> {
        match self {
            Self::Dev(served) => served.iter().map(|served| served.url.clone()).collect(),
            Self::Apart(cluster) => cluster.urls(),
        }
    }

    /// Fails if a process ended by itself.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Dev(served) => served.as_mut().map_or(Ok(()), Served::is_running),
            Self::Apart(cluster) => cluster.is_running(),
        }
    }

    /// Kills the server, or the first coordinator.
    pub fn kill(&mut self) -> anyhow::Result<Killed> {
        let victim = match self {
            Self::Dev(served) => served.take().context("the server is down")?,
            Self::Apart(cluster) => cluster.take(Member::Coordinator(1))?,
        };
        Ok(Killed(victim.kill()?))
    }

    /// Starts again what was killed. Of several coordinators another one has taken over before.
    pub async fn recover(&mut self, killed: Killed) -> anyhow::Result<()> {
        match self {
            Self::Dev(served) => *served = Some(Served::start(killed.0).await?),
            Self::Apart(cluster) => {
                let died = SystemClock.boot_ms();
                let survivor = Client::new(cluster.urls().first().context("there is another coordinator")?)?;
                until("another coordinator owns every partition", TAKEN_OVER_MS, || owns_all(&survivor)).await?;
                let took = (SystemClock.boot_ms() - died) as f64 / 1000.0;
                let mut say = std::io::stdout();
                writeln!(say, "coordinator-2 owns all {PARTITIONS} partitions {took:.1} s later")?;
                cluster.start_again(Member::Coordinator(1), killed.0).await?;
            }
        }
        Ok(())
    }

    /// Stops it in order.
    pub async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Dev(Some(served)) => served.stop().await.map(drop),
            Self::Dev(None) => Ok(()),
            Self::Apart(cluster) => cluster.stop().await.map(drop),
        }
    }
}

async fn owns_all(of: &Client) -> anyhow::Result<Option<()>> {
    let Ok(ready) = of.ready().await else { return Ok(None) };
    let partitions = ready.body["partitions"].as_object();
    let owned = partitions.map_or(0, |all| all.values().filter(|at| at["owning"] == true).count());
    Ok((owned == usize::from(PARTITIONS)).then_some(()))
}

/// Settings of a coordinator of the suite as separate processes: where the engines are.
pub fn settings(args: &DemoArgs) -> anyhow::Result<dualtrack_coordinator::Settings> {
    let environment = plan(args).environment().into_iter().collect();
    Ok(Sources { environment, ..Sources::default() }.load()?)
}

/// The suite as separate processes on the engines that the environment names.
pub fn plan(args: &DemoArgs) -> Plan {
    let more: BTreeMap<_, _> = CHOSEN.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Plan {
        engines: server::engines(),
        topic: args.topic.clone(),
        keyspace: args.keyspace.clone(),
        partitions: PARTITIONS,
        coordinators: COORDINATORS,
        more,
        dir: args.work.clone(),
    }
}
