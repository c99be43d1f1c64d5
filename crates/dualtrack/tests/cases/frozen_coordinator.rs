//! Case 11: two coordinators in one process, one of them stopped under load for twice the session
//! timeout (12 s instead of the case's 60: what matters is that it is superseded), then thawed with a
//! request in its hands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dualtrack::dev::Dev;
use futures::StreamExt as _;
use futures::future::join_all;
use parking_lot::Mutex;
use rest_client::contract::{CreateBatch, ItemOutcome};
use rest_client::{Client, Timeouts};
use service_kit::{Clock as _, SystemClock};
use task_core::Reason;
use task_events::{Kind, TaskId, TaskState};
use tokio::task::JoinHandle;
use worker_sdk::Worker;

use crate::book::{Book, check};
use crate::kit::{pause, request, settings, until};

const PARTITIONS: u16 = 4;
const CREATORS: usize = 16;
/// Pause of a creator between two tasks.
const CREATE_MS: u64 = 100;
/// Twice the session timeout of the embedded log's groups.
const FROZEN_MS: u64 = 12_000;
/// Batches that fill the inboxes of who is to be stopped, so that it has a create in its hands.
const FLOODS: usize = 2;
const PER_BATCH: u64 = 150;
/// If it had a poll in its hands all the same, it is stopped once more.
const ROUNDS: usize = 4;
/// Longer than it is frozen.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(3), answer: Duration::from_secs(30) };

type Runs = Arc<Mutex<BTreeMap<(TaskId, u32), usize>>>;

/// Creates tasks at both instances until it is told to stop; what was answered 201.
fn create(urls: &[String], over: &Arc<AtomicBool>) -> Vec<JoinHandle<Vec<TaskId>>> {
    let numbers = Arc::new(AtomicU64::new(0));
    let creator = |n: usize| {
        let client = Client::with_timeouts(&urls[n % urls.len()], TIMEOUTS).expect("a URL");
        let (over, numbers) = (over.clone(), numbers.clone());
        tokio::spawn(async move {
            let mut created = Vec::new();
            while !over.load(Ordering::SeqCst) {
                // What has no answer, or another one, was promised to nobody.
                let number = numbers.fetch_add(1, Ordering::SeqCst);
                created.extend(client.create(&request("t", number), None).await.ok().map(|c| c.task_id));
                pause(CREATE_MS).await;
            }
            created
        })
    };
    (0..CREATORS).map(creator).collect()
}

/// Batches at this instance, one after the other, until it is told to stop; what was created.
async fn flood(url: String, over: Arc<AtomicBool>, answers: Arc<AtomicUsize>) -> Vec<TaskId> {
    let client = Client::with_timeouts(&url, TIMEOUTS).expect("a URL");
    let batch = CreateBatch { tasks: (0..PER_BATCH).map(|n| request("t", n)).collect() };
    let mut created = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let Ok(answer) = client.create_batch(&batch, None).await else { continue };
        answers.fetch_add(1, Ordering::SeqCst);
        let items = answer.items.into_iter().filter(|item| item.outcome == ItemOutcome::Created);
        created.extend(items.map(|item| item.task_id.expect("its id").parse::<TaskId>().expect("an id")));
    }
    created
}

fn late_decisions(book: &Book) -> usize {
    let late = |line: &&crate::book::Line| {
        line.rejected == Some(Reason::StaleEpoch) && line.event.producer.instance == "coordinator-2"
    };
    book.lines.iter().filter(late).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_thawed_coordinator_decides_late_is_rejected_and_nothing_runs_twice_or_is_lost() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut settings = settings(dir.path(), PARTITIONS, 6_000);
    settings.dev.instances = 2;
    // Each on its one thread, so that whoever stops there stops all of the instance.
    settings.dev.worker_threads = 1;
    let mut dev = Dev::start(&settings).expect("it starts");
    dev.ready().await.expect("it is ready");
    let (urls, all) = (dev.urls(), usize::from(PARTITIONS));
    let owned = |n: usize| dev.instances()[n].surface().owned().len();
    until("each owns half", async || (owned(0) == all / 2 && owned(1) == all / 2).then_some(())).await;

    let runs = Runs::default();
    let noted = runs.clone();
    let worker = Worker::connect(&urls[0]).worker_id("a").slots(64).handler("t", move |context| {
        *noted.lock().entry((context.task_id(), context.exec_epoch().get())).or_default() += 1;
        async {
            pause(20).await;
            Ok(Bytes::from("1"))
        }
    });
    tokio::spawn(worker.build().expect("settings").run(std::future::pending()));
    let over = Arc::new(AtomicBool::new(false));
    let mut creators = create(&urls, &over);

    let mut late = 0;
    for _ in 0..ROUNDS {
        let (enough, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let floods = (0..FLOODS).map(|_| tokio::spawn(flood(urls[1].clone(), enough.clone(), answers.clone())));
        creators.extend(floods);
        until("batches are under way", async || (answers.load(Ordering::SeqCst) >= FLOODS).then_some(())).await;
        let freeze = dev.instances()[1].freeze();
        freeze.freeze_when_asked();
        until("it is frozen", async || freeze.is_frozen().then_some(())).await;
        enough.store(true, Ordering::SeqCst);
        let frozen_at = SystemClock.boot_ms();
        until("the other owns all", async || (owned(0) == all).then_some(())).await;
        SystemClock.sleep_until(frozen_at + FROZEN_MS).await;
        freeze.thaw();
        until("it owns half again", async || (owned(0) == all / 2 && owned(1) == all / 2).then_some(())).await;
        late = late_decisions(&Book::read(dev.log()).await);
        if late > 0 {
            break;
        }
    }
    assert!(late > 0, "nothing that it decided late is in the log, rejected");

    over.store(true, Ordering::SeqCst);
    let created: BTreeSet<TaskId> =
        join_all(creators).await.into_iter().flat_map(|created| created.expect("no panic")).collect();
    let client = Client::new(&urls[0]).expect("a URL");
    let ends = futures::stream::iter(created.iter().copied().map(|task| {
        let client = client.clone();
        async move {
            let view = client.get(task, Some(Duration::from_secs(60))).await.expect("told");
            let history = if view.status == TaskState::Success { None } else { Some(client.events(task).await) };
            assert_eq!(view.status, TaskState::Success, "{task}: {history:#?}");
        }
    }));
    ends.buffer_unordered(16).collect::<Vec<()>>().await;
    // Those as well that were created and whose creator does not know it.
    until("the end of all", async || Book::read(dev.log()).await.open.is_empty().then_some(())).await;
    dev.stop().await.expect("a clean end");

    let data = dir.path().join("data");
    let book = Book::of_folder(&data, PARTITIONS).await;
    assert!(created.is_subset(&book.tasks(Kind::TaskCompleted)));
    assert_eq!(book.tasks(Kind::TaskCompleted), book.tasks(Kind::TaskCreated));
    let twice: Vec<_> = runs.lock().iter().filter(|(_, times)| **times > 1).map(|(run, _)| *run).collect();
    assert_eq!(twice, [], "run twice in one epoch");
    check(&data, &["--complete"]);
}
