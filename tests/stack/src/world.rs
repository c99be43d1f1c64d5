//! A cluster of its own for a test, and how its state is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};

use rest_client::Client;
use stack_control::{Cluster, Plan, program_beside};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use crate::Stack;

/// Longest wait for anything; only a defect reaches it.
pub const PATIENCE_MS: u64 = 90_000;

// One cluster at a time: what is measured is not measured beside others.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// What a test has for itself: a topic, a keyspace, a folder; and the engines, alone.
pub struct Scene {
    /// How its cluster is started.
    pub plan: Plan,
    /// Folder of what its processes say; kept if the test fails.
    dir: Option<TempDir>,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    /// A scene on the engines of this test process. Topic and tables are not made yet.
    ///
    /// # Panics
    /// There are no engines, or no folder.
    pub async fn new(partitions: u16, coordinators: u16, more: &[(&str, &str)]) -> Self {
        let stack = tokio::task::spawn_blocking(Stack::shared).await.expect("the engines");
        Self::on(stack, partitions, coordinators, more).await
    }

    /// A scene on these engines.
    ///
    /// # Panics
    /// There is no folder.
    pub async fn on(stack: &Stack, partitions: u16, coordinators: u16, more: &[(&str, &str)]) -> Self {
        static SCENES: AtomicU32 = AtomicU32::new(0);
        let alone = ONE_AT_A_TIME.lock().await;
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        let dir = tempfile::tempdir().expect("a folder");
        let more: BTreeMap<_, _> = more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let plan = Plan {
            engines: stack.engines(),
            topic: format!("scene-{number}"),
            keyspace: format!("scene_{number}"),
            partitions,
            coordinators,
            more,
            dir: dir.path().to_owned(),
        };
        Self { plan, dir: Some(dir), _alone: alone }
    }

    /// Makes topic and tables.
    ///
    /// # Panics
    /// What the command line said.
    pub async fn prepare(&self) {
        let (plan, program) = (self.plan.clone(), program_beside("dualtrack").expect("the command line"));
        let prepared = tokio::task::spawn_blocking(move || plan.prepare(&program)).await.expect("no panic");
        prepared.unwrap_or_else(|why| panic!("{why:#}"));
    }

    /// Makes topic and tables, and starts every member.
    ///
    /// # Panics
    /// One of them does not start.
    pub async fn start(&self) -> Cluster {
        self.prepare().await;
        Cluster::start(&self.plan).await.unwrap_or_else(|why| panic!("{why:#}"))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // What the processes said explains a failure.
        if std::thread::panicking()
            && let Some(dir) = self.dir.take()
        {
            let _ = dir.keep();
        }
    }
}

/// Looks again and again until there is what is looked for.
///
/// # Panics
/// It never came.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let found = stack_control::until(what, PATIENCE_MS, || {
        let looked = look();
        async move { Ok(looked.await) }
    });
    found.await.unwrap_or_else(|why| panic!("{why:#}"))
}

/// Partitions that an instance owns, by its own word; none if it does not answer.
pub async fn owned(url: &str) -> BTreeSet<u16> {
    let client = Client::new(url).expect("a URL");
    let Ok(ready) = client.ready().await else { return BTreeSet::new() };
    let partitions = ready.body["partitions"].as_object().into_iter().flatten();
    partitions.filter(|(_, at)| at["owning"] == true).filter_map(|(partition, _)| partition.parse().ok()).collect()
}

/// Sum of a metric over its labels; 0 if it was never counted.
///
/// # Panics
/// The instance does not answer.
pub async fn metric(url: &str, name: &str) -> u64 {
    sample(url, name, None).await.unwrap_or_else(|| panic!("{url} does not answer"))
}

/// Sum of a metric over those of its samples that have this label (`name="value"`); `None` if the instance
/// does not answer.
pub async fn sample(url: &str, name: &str, label: Option<&str>) -> Option<u64> {
    let text = reqwest::get(format!("{url}/metrics")).await.ok()?.text().await.ok()?;
    let of = |line: &str| {
        let (sample, value) = line.rsplit_once(' ')?;
        let mut parts = sample.splitn(2, '{');
        let found = parts.next()? == format!("dualtrack_{name}");
        let labels = parts.next().unwrap_or_default();
        (found && label.is_none_or(|label| labels.contains(label))).then(|| value.parse::<u64>().ok()).flatten()
    };
    Some(text.lines().filter(|line| !line.starts_with('#')).filter_map(of).sum())
}
