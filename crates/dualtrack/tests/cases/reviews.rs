//! What failed for good waits for somebody's decision, and leaves the list with it or with a replay.

use dualtrack::dev::Dev;
use rest_client::contract::{Code, ReplayRequest, ReviewRequest, TaskView, TasksQuery};
use rest_client::{Client, ClientError};
use task_events::{ReplayFrom, ReviewOutcome, TaskId, TaskState};
use worker_sdk::{Context, HandlerError, Worker};

use crate::kit::{request, settings, until};

async fn fail(_: Context) -> Result<bytes::Bytes, HandlerError> {
    Err(HandlerError::permanent("DISK_FULL", "no space left"))
}

async fn waiting(client: &Client, code: &str) -> Vec<TaskId> {
    let query = TasksQuery { code: Some(code.into()), ..TasksQuery::default() };
    let page = client.review(&query).await.expect("a page");
    assert!(page.items.iter().all(|item| item.task.status == TaskState::FailedPermanently));
    page.items.iter().map(|item| item.task.task_id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_wait_for_review_until_they_are_decided_or_replayed() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = Dev::start(&settings(dir.path(), 4, 6_000)).expect("it starts");
    dev.ready().await.expect("it is ready");
    let url = dev.urls().remove(0);
    let client = Client::new(&url).expect("a URL");
    let worker = Worker::connect(&url).worker_id("w").slots(4).handler("t", fail).build().expect("settings");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let works = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(client.create(&request("t", n), None).await.expect("created").task_id);
    }
    ids.reverse();
    until("all of them wait", async || (waiting(&client, "DISK_FULL").await == ids).then_some(())).await;
    assert!(waiting(&client, "OTHER").await.is_empty());
    let decide = |run_no| ReviewRequest {
        run_no,
        outcome: ReviewOutcome::Abandoned,
        instead_of: None,
        actor: Some("me".into()),
        note: "old disk".into(),
    };
    assert!(client.decide(ids[0], &decide(2)).await.is_err(), "another run");
    client.decide(ids[0], &decide(1)).await.expect("decided");
    // It is not turned round by somebody who has not seen it.
    let other = |instead_of| ReviewRequest { outcome: ReviewOutcome::Accepted, instead_of, ..decide(1) };
    let Err(ClientError::Problem(refused)) = client.decide(ids[0], &other(None)).await else { panic!("it is refused") };
    assert_eq!(
        (refused.code, refused.status, refused.field.as_deref()),
        (Code::StateConflict, 409, Some("/instead_of"))
    );
    client.decide(ids[0], &other(Some(ReviewOutcome::Abandoned))).await.expect("taken back");
    assert_eq!(waiting(&client, "DISK_FULL").await, ids[1..]);
    stop.send(()).expect("it works");
    works.await.expect("no panic").expect("a clean end");
    let again = ReplayRequest { run_no: 1, from: ReplayFrom::Start, from_step: None, actor: None, reason: "".into() };
    client.replay(ids[1], &again).await.expect("replayed");
    assert_eq!(waiting(&client, "DISK_FULL").await, ids[2..]);
    // The code's list has what ended with it, reviewed or not, and not what is open again.
    let failed = TasksQuery {
        states: vec![TaskState::FailedPermanently],
        code: Some("DISK_FULL".into()),
        ..TasksQuery::default()
    };
    let page = client.tasks(&failed).await.expect("a page");
    let found: Vec<_> = page.tasks.iter().map(|task| task.task_id).collect();
    assert_eq!(found, [ids[0], ids[2]]);
    let view: TaskView = client.get(ids[0], None).await.expect("a task");
    assert_eq!((view.status, view.version > 0), (TaskState::FailedPermanently, true));
    dev.stop().await.expect("a clean end");
    // And it is so from the store alone.
    let mut dev = Dev::start(&settings(dir.path(), 4, 6_000)).expect("it starts");
    dev.ready().await.expect("it is ready");
    let client = Client::new(&dev.urls().remove(0)).expect("a URL");
    assert_eq!(waiting(&client, "DISK_FULL").await, ids[2..]);
    dev.stop().await.expect("a clean end");
}
