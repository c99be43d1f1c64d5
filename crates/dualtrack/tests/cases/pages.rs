//! Case 18: pages of 7 over one batch of 1,000 tasks in 16 partitions, in both orders, while 200 of them
//! close, 50 are replayed and new ones come: each exactly once. Cursors outlive a restart and a change of
//! owners.

use std::collections::BTreeMap;

use dualtrack::dev::{Dev, Settings};
use rest_client::Client;
use rest_client::contract::{CancelRequest, Code, CreateBatch, ItemOutcome, ListOrder, ReplayRequest, TasksQuery};
use task_events::{ReplayFrom, TaskId, TaskState};

use crate::kit::{request, settings, until};

const TASKS: usize = 1_000;
/// Closed before the pages are read, and replayed while they are.
const REPLAYED: usize = 50;
/// Closed while the pages are read.
const CLOSED: usize = 200;

async fn start(settings: &Settings) -> (Dev, Vec<Client>) {
    let mut dev = Dev::start(settings).expect("it starts");
    dev.ready().await.expect("it is ready");
    let clients = dev.urls().iter().map(|url| Client::new(url).expect("a URL")).collect();
    (dev, clients)
}

async fn close(client: &Client, task: TaskId) {
    client.cancel(task, &CancelRequest::default()).await.expect("accepted");
}

async fn replay(client: &Client, task: TaskId) {
    let again =
        ReplayRequest { run_no: 1, from: ReplayFrom::Start, from_step: None, actor: None, reason: "again".into() };
    client.replay(task, &again).await.expect("replayed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_task_is_on_one_page_whatever_happens_meanwhile() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut settings = settings(dir.path(), 16, 6_000);
    settings.dev.instances = 2;
    let (dev, clients) = start(&settings).await;
    let batch = CreateBatch { tasks: (0..TASKS as u64).map(|n| request("t", n)).collect() };
    let made = clients[0].create_batch(&batch, None).await.expect("created");
    assert!(made.items.iter().all(|item| item.outcome == ItemOutcome::Created));
    let ids: Vec<TaskId> = made.items.iter().filter_map(|item| item.task_id.as_ref()?.parse().ok()).collect();
    assert_eq!(ids.len(), TASKS);
    // Spread over the list: what changes lies before and behind every page.
    let spread: Vec<TaskId> = (0..TASKS).map(|n| ids[n * 7 % TASKS]).collect();
    let (replayed, rest) = spread.split_at(REPLAYED);
    let closed = &rest[..CLOSED];
    for task in replayed {
        close(&clients[1], *task).await;
    }
    until("they are closed", async || {
        let closed = TasksQuery { states: vec![TaskState::Cancelled], limit: Some(1_000), ..query() };
        let page = clients[0].tasks(&closed).await.expect("a page");
        (page.tasks.len() == REPLAYED).then_some(())
    })
    .await;

    let (mut closing, mut replaying) = (closed.iter(), replayed.iter());
    for order in [ListOrder::Newest, ListOrder::Oldest] {
        let mut seen: BTreeMap<TaskId, u32> = BTreeMap::new();
        let mut query = TasksQuery { order, ..query() };
        for turn in 0.. {
            let page = clients[turn % 2].tasks(&query).await.expect("a page");
            assert!(page.tasks.len() <= 7 && page.page.unanswered.is_empty());
            let ids: Vec<_> = page.tasks.iter().map(|task| task.task_id).collect();
            let ordered = ids.is_sorted_by(|a, b| if order == ListOrder::Newest { a > b } else { a < b });
            assert!(ordered, "{ids:?}");
            ids.into_iter().for_each(|id| *seen.entry(id).or_default() += 1);
            let Some(next) = page.page.next_cursor else { break };
            query.cursor = Some(next);
            // In the first pass half of them, in the second what is left.
            if turn < CLOSED / 2 {
                close(&clients[turn % 2], *closing.next().expect("half of them a pass")).await;
            }
            if turn < REPLAYED / 2 {
                replay(&clients[turn % 2], *replaying.next().expect("half of them a pass")).await;
            }
            if turn % 10 == 0 {
                clients[turn % 2].create(&request("new", turn as u64), None).await.expect("created");
            }
        }
        let missing: Vec<_> = ids.iter().filter(|id| !seen.contains_key(id)).collect();
        assert!(missing.is_empty(), "{order:?}: never shown: {missing:?}");
        let twice: Vec<_> = seen.iter().filter(|(_, times)| **times != 1).collect();
        assert!(twice.is_empty(), "{order:?}: shown more than once: {twice:?}");
    }
    assert!(closing.next().is_none() && replaying.next().is_none(), "all of it happened");

    // The same page from its cursor, by other processes and other owners.
    let first = clients[0].tasks(&query()).await.expect("a page");
    let second = TasksQuery { cursor: first.page.next_cursor, ..query() };
    let shown = |page: rest_client::contract::TasksPage| page.tasks.iter().map(|task| task.task_id).collect::<Vec<_>>();
    let expected = shown(clients[1].tasks(&second).await.expect("a page"));
    dev.stop().await.expect("a clean end");
    settings.dev.instances = 1;
    let (dev, clients) = start(&settings).await;
    assert_eq!(shown(clients[0].tasks(&second).await.expect("a page")), expected);
    let mut edited = second.clone();
    edited.cursor = edited.cursor.map(|cursor| cursor.replacen(|c: char| c.is_ascii_lowercase(), "Q", 1));
    let foreign = TasksQuery { order: ListOrder::Oldest, ..second.clone() };
    for bad in [edited, foreign] {
        let why = clients[0].tasks(&bad).await.expect_err("refused");
        assert_eq!(why.problem().map(|why| (why.code, why.status)), Some((Code::InvalidCursor, 400)));
    }
    dev.stop().await.expect("a clean end");
}

fn query() -> TasksQuery {
    TasksQuery { limit: Some(7), ..TasksQuery::default() }
}
