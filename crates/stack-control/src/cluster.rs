//! The suite as separate processes on shared engines: coordinators, task engine, auto-replay.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::process::program_beside;
use crate::served::{Launch, Served};

/// Where the engines are, and how to get in: the variables that `make stack` writes
/// (`DUALTRACK_LOG__BOOTSTRAP`, `DUALTRACK_STORE__CONTACT_POINTS`, `DUALTRACK_LOCK__URL`, …).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Engines(pub BTreeMap<String, String>);

/// A member of a [`Cluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// The coordinator of this number, from 1.
    Coordinator(u16),
    /// The task engine.
    TaskEngine,
    /// Auto-replay.
    AutoReplay,
}

impl Member {
    /// Name of its program.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Coordinator(_) => "dualtrack-coordinator",
            Self::TaskEngine => "dualtrack-task-engine",
            Self::AutoReplay => "dualtrack-auto-replay",
        }
    }

    /// Name of the instance.
    pub fn instance(self) -> String {
        match self {
            Self::Coordinator(number) => format!("coordinator-{number}"),
            Self::TaskEngine => "task-engine-1".to_owned(),
            Self::AutoReplay => "auto-replay-1".to_owned(),
        }
    }
}

/// What a cluster is to be like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engines.
    pub engines: Engines,
    /// Topic; made if it is not there.
    pub topic: String,
    /// Keyspace; made if it is not there.
    pub keyspace: String,
    /// Partitions of the topic.
    pub partitions: u16,
    /// Coordinators.
    pub coordinators: u16,
    /// More settings, `section.key` and value. Those of sections that a program does not have it ignores.
    pub more: BTreeMap<String, String>,
    /// Folder of what the programs say of themselves, `INSTANCE.log`.
    pub dir: PathBuf,
}

impl Plan {
    /// Every setting as variables, for programs and for the command line. Engines of one node.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut all = self.engines.0.clone();
        let own = [
            ("log.topic", self.topic.clone()),
            ("log.partitions", self.partitions.to_string()),
            ("log.replication", "1".to_owned()),
            ("log.min_insync", "1".to_owned()),
            ("store.keyspace", self.keyspace.clone()),
            ("store.replication", "1".to_owned()),
        ];
        let own = own.into_iter().map(|(key, value)| (key.to_owned(), value));
        all.extend(own.chain(self.more.clone()).map(|(key, value)| (variable(&key), value)));
        all.into_iter().collect()
    }

    /// How a member is started.
    ///
    /// # Errors
    /// Its program is not there.
    pub fn launch(&self, member: Member) -> anyhow::Result<Launch> {
        let instance = member.instance();
        Ok(Launch {
            program: program_beside(member.program())?,
            arguments: vec![OsString::from("--instance"), instance.clone().into()],
            environment: self.environment(),
            listen: "127.0.0.1:0".to_owned(),
            log: self.dir.join(format!("{instance}.log")),
            name: instance,
        })
    }

    /// Makes topic and tables by the command line, as people would.
    ///
    /// # Errors
    /// What the command line said.
    pub fn prepare(&self, dualtrack: &Path) -> anyhow::Result<()> {
        for arguments in [["topic", "ensure"], ["store", "migrate"]] {
            let ran = Command::new(dualtrack)
                .args(arguments)
                .envs(self.environment())
                .stdin(Stdio::null())
                .output()
                .with_context(|| format!("cannot run {}", dualtrack.display()))?;
            let said = String::from_utf8_lossy(&ran.stderr);
            ensure!(ran.status.success(), "dualtrack {} ended with {}: {said}", arguments.join(" "), ran.status);
        }
        Ok(())
    }
}

/// The variable that sets this key, `section.key`.
pub fn variable(key: &str) -> String {
    format!("DUALTRACK_{}", key.replace('.', "__").to_ascii_uppercase())
}

/// The suite, running; by default nobody does.
#[derive(Default)]
pub struct Cluster {
    members: BTreeMap<Member, Served>,
}

impl Cluster {
    /// Starts every member; ready once each of them is.
    ///
    /// # Errors
    /// One of them does not start.
    pub async fn start(plan: &Plan) -> anyhow::Result<Self> {
        let coordinators = (1..=plan.coordinators).map(Member::Coordinator);
        let all = coordinators.chain([Member::TaskEngine, Member::AutoReplay]);
        let launches = all.map(|member| Ok((member, plan.launch(member)?))).collect::<anyhow::Result<Vec<_>>>()?;
        // Side by side: each waits for its engines by itself.
        let starting: Vec<_> = launches
            .into_iter()
            .map(|(member, launch)| (member, tokio::task::spawn_blocking(move || Served::launch(launch))))
            .collect();
        let mut members = BTreeMap::new();
        for (member, served) in starting {
            members.insert(member, served.await.context("a start was broken off")??);
        }
        let mut cluster = Self { members };
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Waits until every member is ready.
    ///
    /// # Errors
    /// One of them ended, or was not within a minute.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        for served in self.members.values_mut() {
            served.ready().await?;
        }
        Ok(())
    }

    /// Where the coordinators answer, of those that run.
    pub fn urls(&self) -> Vec<String> {
        let coordinators = self.members.iter().filter(|(member, _)| matches!(member, Member::Coordinator(_)));
        coordinators.map(|(_, served)| served.url.clone()).collect()
    }

    /// A member that runs.
    ///
    /// # Errors
    /// It does not.
    pub fn member(&mut self, member: Member) -> anyhow::Result<&mut Served> {
        self.members.get_mut(&member).with_context(|| format!("{} does not run", member.instance()))
    }

    /// Takes a member out, to be killed or stopped.
    ///
    /// # Errors
    /// It does not run.
    pub fn take(&mut self, member: Member) -> anyhow::Result<Served> {
        self.members.remove(&member).with_context(|| format!("{} does not run", member.instance()))
    }

    /// Starts a member that was taken out, at its old place, and waits until it is ready.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start_again(&mut self, member: Member, launch: Launch) -> anyhow::Result<()> {
        let served = tokio::task::spawn_blocking(move || Served::launch(launch)).await.context("broken off")??;
        self.members.entry(member).insert_entry(served).get_mut().ready().await
    }

    /// Takes in one that was started elsewhere, in the place of what was there.
    pub fn put(&mut self, member: Member, served: Served) {
        self.members.insert(member, served);
    }

    /// The ids of the processes that run.
    pub fn ids(&self) -> Vec<u32> {
        self.members.values().map(Served::id).collect()
    }

    /// Fails if a member ended by itself.
    ///
    /// # Errors
    /// One did.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        self.members.values_mut().try_for_each(Served::is_running)
    }

    /// Stops all of them, coordinators last; by member, how many ms that took.
    ///
    /// # Errors
    /// One of them did not end well.
    pub async fn stop(mut self) -> anyhow::Result<BTreeMap<Member, u64>> {
        let mut took = BTreeMap::new();
        for member in self.members.keys().rev().copied().collect::<Vec<_>>() {
            took.insert(member, self.take(member)?.stop().await?.0);
        }
        Ok(took)
    }
}
