//! A cluster under load that a test does something to: started, disturbed, healed, judged.

use std::path::PathBuf;
use std::sync::Arc;

use rest_client::Client;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::{CassandraConfig, CassandraStore};
use stack_control::{Cluster, Process};

use crate::engines::{Engine, Stack};
use crate::history::History;
use crate::journal::Journal;
use crate::load::Load;
use crate::worker::WorkerPlan;
use crate::world::{Scene, until};
use crate::{judge, sample};

/// Everything is to be finished so soon after the last fault, ms.
pub const HEALED_MS: u64 = 60_000;

/// Lease of attempts in drills, ms: short, so that what is lost is lost soon.
pub const LEASE_MS: u64 = 6_000;

/// Settings of every drill: short leases, a crash is noticed after 3 s, an append without an answer is
/// unknown after 5 s.
pub const SETTINGS: [(&str, &str); 11] = [
    ("coordinator.lease_ms", "6000"),
    ("coordinator.lease_max_ms", "6000"),
    ("coordinator.heartbeat_ms", "2000"),
    ("coordinator.proof_ms", "1000"),
    ("coordinator.renew_ms", "500"),
    ("coordinator.lease_margin_ms", "1000"),
    ("coordinator.cancel_grace_ms", "5000"),
    ("lock.ttl_ms", "6000"),
    ("task_engine.backoff_base_ms", "50"),
    ("log.session_timeout_ms", "3000"),
    ("log.delivery_timeout_ms", "5000"),
];

/// How the programs reach the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As they are.
    Direct,
    /// Through the fault proxies.
    Proxied,
}

/// A drill.
pub struct Drill {
    /// Its topic, keyspace and folder, alone on the engines.
    pub scene: Scene,
    /// The engines.
    pub stack: &'static Stack,
    /// The programs.
    pub cluster: Cluster,
    /// Where the coordinators answer, also while they do not run.
    pub urls: Vec<String>,
    /// What clients were told.
    pub history: Arc<History>,
    /// The log.
    pub journal: Journal,
    /// Two of them, from the start; killed with the drill.
    pub workers: Vec<Process>,
    /// The rows.
    pub store: CassandraStore,
}

impl Drill {
    /// Two coordinators, engine, replayer and two workers.
    ///
    /// # Panics
    /// Something does not start.
    pub async fn start(partitions: u16, way: Way, more: &[(&str, &str)]) -> Self {
        let mut drill = Self::without_workers(partitions, way, more).await;
        drill.workers = ["worker-1", "worker-2"].map(|id| drill.worker(id).start()).into();
        drill
    }

    /// The same, and nobody works.
    ///
    /// # Panics
    /// Something does not start.
    pub async fn without_workers(partitions: u16, way: Way, more: &[(&str, &str)]) -> Self {
        let settings: Vec<_> = SETTINGS.iter().chain(more).copied().collect();
        let mut scene = Scene::new(partitions, 2, &settings).await;
        let stack = Stack::shared();
        tokio::task::spawn_blocking(move || stack.heal()).await.expect("the engines are as they were");
        match way {
            Way::Direct => {}
            Way::Proxied => scene.plan.engines = stack.proxied_engines(),
        }
        let cluster = scene.start().await;
        let bootstrap = stack.told(Engine::Kafka, "bootstrap");
        let journal = Journal::open(&bootstrap, &scene.plan.topic, partitions).await;
        let contact = [stack.told(Engine::Cassandra, "address")];
        let dc = stack.told(Engine::Cassandra, "local_dc");
        let config = CassandraConfig::new(contact, &scene.plan.keyspace, dc, || SystemClock.wall_ms());
        let store = CassandraStore::connect(config).await.expect("the keyspace");
        let urls = cluster.urls();
        let history = Arc::new(History::default());
        Self { scene, stack, cluster, urls, history, journal, workers: Vec::new(), store }
    }

    /// How a worker of this name is started.
    pub fn worker(&self, id: &str) -> WorkerPlan {
        let outbox = self.scene.plan.dir.join(format!("outbox-{id}"));
        WorkerPlan { urls: self.urls.clone(), id: id.to_owned(), slots: 16, sink: self.sink(), outbox }
    }

    /// The fenced sink of all workers.
    pub fn sink(&self) -> PathBuf {
        self.scene.plan.dir.join("sink")
    }

    /// Clients start.
    pub fn load(&self) -> Load {
        Load::start(&self.urls, &self.history)
    }

    /// A client of a coordinator, by its number from 1.
    ///
    /// # Panics
    /// There is none.
    pub fn client(&self, number: usize) -> Client {
        Client::new(&self.urls[number - 1]).expect("a URL")
    }

    /// Waits until so many more creates were answered.
    ///
    /// # Panics
    /// They never were.
    pub async fn answered(&self, more: usize) {
        let before = self.history.told().counts()[0];
        until("creates are answered", || async { (self.history.told().counts()[0] >= before + more).then_some(()) })
            .await;
    }

    /// How often an alarm went off, over the coordinators that answer.
    pub async fn alarms(&self, alarm: &str) -> u64 {
        self.sum("alarms_total", Some(&format!("alarm=\"{alarm}\""))).await
    }

    /// A metric, over the coordinators that answer.
    pub async fn sum(&self, name: &str, label: Option<&str>) -> u64 {
        let mut sum = 0;
        for url in &self.urls {
            sum += sample(url, name, label).await.unwrap_or(0);
        }
        sum
    }

    /// Waits until an alarm went off more often than before: the fault was felt.
    ///
    /// # Panics
    /// It never did.
    pub async fn felt(&self, alarm: &str, before: u64) {
        until(&format!("alarm {alarm}"), || async { (self.alarms(alarm).await > before).then_some(()) }).await;
    }

    /// Call it when the last fault is over: no more creates; waits until everything is finished, at most
    /// [`HEALED_MS`], and holds all against the log. How long that took, ms.
    ///
    /// # Panics
    /// Something is not as it must be.
    pub async fn finish(&mut self, load: Load) -> u64 {
        let healed = SystemClock.boot_ms();
        load.stop().await;
        let left = HEALED_MS.saturating_sub(SystemClock.boot_ms() - healed);
        assert!(left > 0, "keys are not settled {HEALED_MS} ms after healing");
        self.all_finished(left).await;
        let took = SystemClock.boot_ms() - healed;
        let told = self.history.told();
        judge::creates(&told, &self.journal);
        judge::commands(&told, &self.journal);
        judge::ends(&told, &self.journal);
        judge::handlers(&self.sink());
        took
    }

    /// Waits until no task is open and every row tells its end.
    ///
    /// # Panics
    /// Not within so many ms.
    pub async fn all_finished(&mut self, within_ms: u64) {
        let limit = SystemClock.boot_ms() + within_ms;
        loop {
            // An error says that the log is still away.
            let read = self.journal.advance().await;
            let open = self.journal.open_tasks();
            let wrong = if read.is_ok() && open.is_empty() {
                judge::wrong_row(&self.journal, &self.store).await
            } else {
                Some(format!("{} tasks are open ({read:?}), such as {:?}", open.len(), open.values().next()))
            };
            let Some(wrong) = wrong else { return };
            assert!(SystemClock.boot_ms() < limit, "not finished after {within_ms} ms: {wrong}");
            SystemClock.sleep_until(SystemClock.boot_ms() + stack_control::LOOK_MS * 5).await;
        }
    }

    /// Ends everything politely; the checker judges the whole log.
    ///
    /// # Panics
    /// Somebody does not end well, or the checker is not content.
    pub async fn end(mut self) {
        drop(std::mem::take(&mut self.workers));
        self.cluster.stop().await.expect("a clean end");
        self.journal.advance().await.expect("the log");
        assert_eq!(self.journal.quarantined, 0, "malformed records");
        self.journal.check(&self.scene.plan.dir, &["--complete"]);
        self.journal.close().await;
    }
}
