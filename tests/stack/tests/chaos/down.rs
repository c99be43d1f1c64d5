//! docs/guide/when-something-is-down.md, line by line: what it says still works is tried while the thing
//! is down, and so is what it says stops.

use std::time::Duration;

use event_log::fault_proxy::{Fault, FaultProxy};
use rest_client::{Client, ClientError, Timeouts};
use rest_contract::Code;
use serde_json::json;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::SnapshotStore as _;
use stack_control::Member;
use stack_tests::{Drill, Engine, LEASE_MS, Outcome, Way, elsewhere, lines, owned, sample, told, until};
use task_events::{Body, Kind, TaskId, TaskState};

use crate::{PARTITIONS, tell};

/// Nothing is waited for any longer by who asks here.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(1), answer: Duration::from_secs(20) };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_works_when_something_is_down_is_what_the_guide_says() {
    let mut drill = Drill::start(PARTITIONS, Way::Direct, &[("lock.on_unavailable", "pause")]).await;
    let closed = drill.create_long(1, 0).await.into_iter().next().expect("a task");
    ends(&drill, closed).await;
    the_store(&drill, closed).await;
    the_log(&drill, closed).await;
    the_lock_server(&drill).await;
    a_coordinator(&mut drill).await;
    the_network_of_upstream(&drill).await;
    the_other_two_services(&mut drill).await;
    all_workers(&mut drill, closed).await;
    let load = drill.load();
    drill.answered(10).await;
    let took = drill.finish(load).await;
    tell("each of them was down", &drill, took);
    drill.end().await;
}

fn client(url: &str) -> Client {
    Client::with_timeouts(url, TIMEOUTS).expect("a URL")
}

fn code<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> Code {
    let Err(ClientError::Problem(problem)) = answer else { panic!("a problem was expected, not {answer:?}") };
    problem.code
}

async fn ends(drill: &Drill, task: TaskId) {
    let view = drill.client(2).get(task, Some(Duration::from_secs(30))).await.expect("it is told");
    assert_eq!(view.status, TaskState::Success, "{task}");
}

/// Creates one whose payload lies elsewhere.
async fn create_elsewhere(drill: &Drill, client: &Client) -> TaskId {
    let op = drill.history.invoke(1, false).start;
    let created = client.create(&elsewhere(op), None).await;
    drill.history.created(op, Outcome::of(created.clone().map(|created| created.task_id)));
    created.expect("created").task_id
}

/// Creates one with its payload, which says this; what was answered.
async fn create(drill: &Drill, client: &Client, key: Option<&str>, ms: u64) -> Result<TaskId, ClientError> {
    let op = drill.history.invoke(1, key.is_some()).start;
    let answer = client.create(&told(op, &json!({ "ms": ms })), key).await.map(|created| created.task_id);
    drill.history.created(op, Outcome::of(answer.clone()));
    answer
}

async fn the_store(drill: &Drill, closed: TaskId) {
    let client = client(&drill.urls[1]);
    // A row that is owed is answered from the owner's memory, also while the store is away.
    until("no row is owed", || async { (drill.sum("partition_owed_bytes", None).await == 0).then_some(()) }).await;
    drill.stack.freeze(Engine::Cassandra);
    assert_eq!(code(create(drill, &client, None, 0).await), Code::StoreUnavailable, "inline creates");
    assert_eq!(code(create(drill, &client, Some("while-away"), 0).await), Code::StoreUnavailable, "keyed creates");
    assert_eq!(code(client.get(closed, None).await), Code::StoreUnavailable, "reads of closed tasks");
    let task = create_elsewhere(drill, &client).await;
    until("it is handed out and reported on", || async {
        let view = client.get(task, None).await.ok()?;
        matches!(view.status, TaskState::Executing | TaskState::Success).then_some(())
    })
    .await;
    drill.stack.thaw(Engine::Cassandra);
    ends(drill, task).await;
    ends(drill, create(drill, &client, Some("while-away"), 0).await.expect("created")).await;
}

async fn the_log(drill: &Drill, closed: TaskId) {
    let client = client(&drill.urls[1]);
    let running = create(drill, &client, None, LEASE_MS / 3).await.expect("created");
    // Its row as well says so, from which it is read when no coordinator can say any more that it is the owner.
    until("it runs", || async {
        let rows = drill.store.snapshots(vec![running]).await.ok()?;
        (rows[0].as_ref()?.core.state == TaskState::Executing).then_some(())
    })
    .await;
    drill.stack.freeze(Engine::Kafka);
    let out = |sink: &std::path::Path| {
        let ended = |(task, _, what): &(String, u32, String)| *task == running.to_string() && what == "out";
        lines(sink).iter().any(ended)
    };
    assert_eq!(client.get(running, None).await.expect("reads").status, TaskState::Executing);
    assert_eq!(client.get(closed, None).await.expect("reads").status, TaskState::Success);
    let answered = code(create(drill, &client, None, 0).await);
    let refused = matches!(answered, Code::OutcomeUnknown | Code::LogUnavailable | Code::OwnerUnavailable);
    assert!(refused, "creates: {answered:?}");
    for (task, state) in [(closed, TaskState::Success), (running, TaskState::Executing)] {
        let stale = || async { client.get(task, None).await.ok().filter(|view| view.stale) };
        assert_eq!(until("a read without an owner", stale).await.status, state);
    }
    let kept = client.result(closed).await.expect("reads");
    assert!(kept.stale && kept.result.is_some(), "{kept:?}");
    until("a handler that runs comes to its end", || async { out(&drill.sink()).then_some(()) }).await;
    drill.stack.thaw(Engine::Kafka);
    // Its result waited in the worker's outbox.
    ends(drill, running).await;
}

async fn the_lock_server(drill: &Drill) {
    let (client, label) = (client(&drill.urls[0]), Some("alarm=\"lock_unavailable\""));
    let alarms = || async { sample(&drill.urls[0], "alarms_total", label).await.expect("an answer") };
    let (before, shares) = (alarms().await, owned(&drill.urls[0]).await.len() as u64);
    // Each owner looks at it while it has a live attempt, and says once that it is away.
    let running = drill.create_long(20, 5_000).await;
    for task in &running {
        until("it runs", || async {
            (client.get(*task, None).await.ok()?.status == TaskState::Executing).then_some(())
        })
        .await;
    }
    drill.stack.kill(Engine::Redis).await;
    until("each owner knows", || async { (alarms().await >= before + shares).then_some(()) }).await;
    // `pause`: created, read, reported on as ever; nothing is handed out.
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(create(drill, &client, None, 0).await.expect("created"));
    }
    for task in &running {
        ends(drill, *task).await;
    }
    for task in &waiting {
        assert_eq!(client.get(*task, None).await.expect("reads").status, TaskState::Created, "{task} is handed out");
    }
    let stack = drill.stack;
    tokio::task::spawn_blocking(move || stack.restart(Engine::Redis)).await.expect("it is back");
    for task in waiting {
        ends(drill, task).await;
    }
}

async fn a_coordinator(drill: &mut Drill) {
    let client = client(&drill.urls[1]);
    until("the other one owns some", || async { (!owned(&drill.urls[1]).await.is_empty()).then_some(()) }).await;
    drill.cluster.member(Member::Coordinator(1)).expect("it runs").freeze().expect("it stands still");
    // Placed in a partition of who is asked.
    let began = SystemClock.boot_ms();
    let task = create(drill, &client, None, 0).await.expect("unkeyed creates");
    let took = SystemClock.boot_ms() - began;
    assert!(took < 3_000, "other partitions go on, they wait for no session timeout: {took} ms");
    ends(drill, task).await;
    drill.cluster.member(Member::Coordinator(1)).expect("it runs").thaw().expect("it goes on");
}

async fn the_network_of_upstream(drill: &Drill) {
    let proxy = FaultProxy::start().expect("a proxy");
    proxy.forward_to(drill.urls[1].trim_start_matches("http://").parse().expect("an address"));
    proxy.set(Fault::DropResponses);
    let timeouts = Timeouts { connect: Duration::from_secs(1), answer: Duration::from_secs(3) };
    let cut_off = Client::with_timeouts(&format!("http://127.0.0.1:{}", proxy.port()), timeouts).expect("a URL");
    let op = drill.history.invoke(1, true).start;
    let request = told(op, &json!({ "ms": 0 }));
    let lost = cut_off.create(&request, Some("lost")).await;
    assert!(matches!(lost, Err(ClientError::UnknownOutcome { .. })), "{lost:?}");
    let found = client(&drill.urls[0]).create(&request, Some("lost")).await.expect("the same key");
    assert!(found.duplicate, "the answer was lost, not the task");
    drill.history.created(op, Outcome::Ok(found.task_id));
    ends(drill, found.task_id).await;
}

// Overdue after 30 s each, so both are down at once: auto-replay first, then the engine.
async fn the_other_two_services(drill: &mut Drill) {
    let mut waiting = Vec::new();
    let mut down = Vec::new();
    for (member, state) in [(Member::AutoReplay, TaskState::RetryApproved), (Member::TaskEngine, TaskState::Failed)] {
        let (_, again) = drill.cluster.take(member).expect("it runs").stop().await.expect("a clean end");
        let op = drill.history.invoke(1, false).start;
        let failing = told(op, &json!({ "ms": 0, "fails": true }));
        let task = drill.client(1).create(&failing, None).await.expect("created").task_id;
        drill.history.created(op, Outcome::Ok(task));
        drill.all_in(&[task].into(), state).await;
        let first = create(drill, &client(&drill.urls[0]), None, 0).await.expect("first attempts");
        ends(drill, first).await;
        waiting.push((task, member));
        down.push((member, again));
    }
    for (task, member) in waiting {
        let by = member.instance().trim_end_matches("-1").to_owned();
        let journal = tokio::sync::Mutex::new(&mut drill.journal);
        until(&format!("TaskOverdue names {by}"), || async {
            let mut journal = journal.lock().await;
            journal.advance().await.ok()?;
            let overdue = |event: &task_events::Event| {
                let Body::TaskOverdue(overdue) = &event.body else { return false };
                event.task_id == Some(task) && overdue.waiting_for == by
            };
            journal.accepted(Kind::TaskOverdue).any(overdue).then_some(())
        })
        .await;
    }
    for (member, again) in down {
        drill.cluster.start_again(member, again).await.expect("it is back");
    }
}

async fn all_workers(drill: &mut Drill, closed: TaskId) {
    for worker in drill.workers.drain(..) {
        worker.kill().expect("it dies");
    }
    let client = client(&drill.urls[0]);
    let task = create(drill, &client, None, 0).await.expect("creates");
    assert_eq!(client.get(task, None).await.expect("reads").status, TaskState::Created);
    assert_eq!(client.get(closed, None).await.expect("reads").status, TaskState::Success);
    client.cancel(task, &Default::default()).await.expect("cancels");
    drill.history.cancel(task, Some(Outcome::Ok(())));
    let view = client.get(task, Some(Duration::from_secs(10))).await.expect("reads");
    assert_eq!(view.status, TaskState::Cancelled);
    drill.workers = vec![drill.worker("worker-3").start()];
}
