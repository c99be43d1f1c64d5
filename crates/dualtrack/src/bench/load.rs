//! Closed loop: standard tasks by the batch endpoint, never more than so many open at a time.
//!
//! How many are done is told by the server's own count of open tasks: what was answered with 201 and
//! is not open any more has ended. Asking for each task would measure the asking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rest_client::Client;
use rest_contract::{BatchItem, CreateBatch, CreateRequest, ItemOutcome};
use task_events::{TaskId, Text};
use tokio::task::JoinSet;

use super::clock::{boot_us, pause};
use super::probe::{Scrape, scrape};
use super::standard;

/// One of so many fails once.
const FAILS_ONE_OF: u64 = 10;
/// Values of the label.
const LABELS: u64 = 1_000;
/// Requests under way at a time.
const SENDERS: usize = 4;
/// Pause when there is no room, or after a refusal, ms.
const PAUSE_MS: u64 = 5;

/// What is to be created.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Tasks open at a time at most.
    pub open: u64,
    /// Tasks in one request.
    pub batch: u64,
    /// Tasks in all.
    pub total: u64,
    /// One of ten fails once.
    pub failing: bool,
    /// Each has a label, one of a thousand the same.
    pub labelled: bool,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Created, or under way.
    taken: AtomicU64,
    created: AtomicU64,
    done: AtomicU64,
    refused: AtomicU64,
    unknown: AtomicU64,
    ids: Mutex<Vec<TaskId>>,
    same_partition_as: Option<Text>,
}

/// A load that is running. Dropping it stops it.
pub struct Load {
    shared: Arc<Shared>,
    senders: JoinSet<()>,
}

/// How far a load is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// When, boot clock, µs.
    pub at_us: u64,
    /// Answered with 201, and not open any more.
    pub done: u64,
    /// The server's numbers.
    pub server: Scrape,
}

impl Load {
    /// Starts it; with `beside`, all tasks are put into that task's partition.
    pub fn start(client: &Client, plan: Plan, beside: Option<TaskId>) -> Self {
        let same_partition_as = beside.map(|task| task.to_string().into());
        let shared = Arc::new(Shared { same_partition_as, ..Shared::default() });
        let mut senders = JoinSet::new();
        for n in 0..SENDERS {
            senders.spawn(shared.clone().send(client.clone(), plan, format!("creator-{n}").into()));
        }
        Self { shared, senders }
    }

    /// Looks how far it is.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn look(&self, address: &str) -> anyhow::Result<Seen> {
        // Before the question: what is counted here is open or done in the answer.
        let created = self.shared.created.load(Ordering::SeqCst);
        let server = scrape(address).await?;
        let done = created.saturating_sub(server.open);
        let done = self.shared.done.fetch_max(done, Ordering::SeqCst).max(done);
        Ok(Seen { at_us: boot_us(), done, server })
    }

    /// Whether all of the plan is created.
    pub fn is_complete(&mut self) -> bool {
        while self.senders.try_join_next().is_some() {}
        self.senders.is_empty()
    }

    /// Ends it at once; the tasks that were answered with 201.
    pub fn stop(mut self) -> Vec<TaskId> {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.senders.abort_all();
        std::mem::take(&mut *self.shared.ids.lock())
    }

    /// Creates that were refused, and those whose outcome is not known.
    pub fn not_created(&self) -> (u64, u64) {
        (self.shared.refused.load(Ordering::SeqCst), self.shared.unknown.load(Ordering::SeqCst))
    }
}

impl Shared {
    async fn send(self: Arc<Self>, client: Client, plan: Plan, creator: Text) {
        while !self.stop.load(Ordering::SeqCst) {
            let taken = self.taken.fetch_add(plan.batch, Ordering::SeqCst);
            if taken >= plan.total {
                self.give_back(plan.batch);
                // What another sender has under way may yet be refused.
                if self.created.load(Ordering::SeqCst) >= plan.total {
                    return;
                }
                pause(PAUSE_MS).await;
                continue;
            }
            if taken + plan.batch > self.done.load(Ordering::SeqCst) + plan.open {
                self.give_back(plan.batch);
                pause(PAUSE_MS).await;
                continue;
            }
            let tasks = (0..plan.batch).filter_map(|n| self.request(taken + n, plan, &creator)).collect();
            match client.create_batch(&CreateBatch { tasks }, None).await {
                Ok(answer) => self.settle(&answer.items, plan.batch).await,
                Err(_) => {
                    self.unknown.fetch_add(plan.batch, Ordering::SeqCst);
                    self.give_back(plan.batch);
                    pause(PAUSE_MS).await;
                }
            }
        }
    }

    fn request(&self, number: u64, plan: Plan, creator: &Text) -> Option<CreateRequest> {
        let fails_once = plan.failing && number.is_multiple_of(FAILS_ONE_OF);
        let request = standard::request(boot_us(), fails_once, creator).ok()?;
        let label = plan.labelled.then(|| ("of".into(), (number % LABELS).to_string().into()));
        let same_partition_as = self.same_partition_as.clone();
        Some(CreateRequest { same_partition_as, labels: label.into_iter().collect(), ..request })
    }

    async fn settle(&self, items: &[BatchItem], sent: u64) {
        let created = items.iter().filter(|item| item.outcome == ItemOutcome::Created);
        let ids: Vec<TaskId> = created.filter_map(|item| item.task_id.as_deref()?.parse().ok()).collect();
        let created = ids.len() as u64;
        let unknown = items.iter().filter(|item| item.outcome == ItemOutcome::Unknown).count() as u64;
        self.ids.lock().extend(ids);
        self.created.fetch_add(created, Ordering::SeqCst);
        self.unknown.fetch_add(unknown, Ordering::SeqCst);
        self.refused.fetch_add(sent.saturating_sub(created + unknown), Ordering::SeqCst);
        if created < sent {
            self.give_back(sent - created);
            pause(PAUSE_MS).await;
        }
    }

    fn give_back(&self, tasks: u64) {
        self.taken.fetch_sub(tasks, Ordering::SeqCst);
    }
}
