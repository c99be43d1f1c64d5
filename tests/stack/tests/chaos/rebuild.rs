//! Everything that can be derived is lost: rows, checkpoints, locks. `dualtrack store rebuild` derives the
//! rows from the log; each is what it was, of closed tasks as well, and open tasks go on.

use std::collections::BTreeMap;
use std::process::Command;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use stack_control::{Cluster, program_beside};
use stack_tests::{Drill, Engine, Way};

use crate::{PARTITIONS, tell};

/// Tables of rows. Not payloads and secrets: those are primary data.
const ROWS: [&str; 8] = [
    "task_state_snapshots",
    "task_history",
    "tasks_by_time",
    "failures_by_code",
    "review_queue",
    "tasks_by_trace",
    "tasks_by_business_key",
    "idempotency_keys",
];

/// What is derived besides, and need not be the same afterwards.
const OTHERS: [&str; 4] = ["list_spans", "acked_offsets", "partition_checkpoints", "checkpoint_chunks"];

/// Tasks that nobody works on when the rows are lost.
const OPEN: u64 = 30;

async fn rows(session: &Session, query: &str) -> Vec<String> {
    let found = session.query_unpaged(query, ()).await.unwrap_or_else(|why| panic!("{query}: {why}"));
    let found = found.into_rows_result().expect("rows");
    let mut rows: Vec<String> = found.rows::<(String,)>().expect("texts").map(|row| row.expect("a row").0).collect();
    rows.sort();
    rows
}

/// Every row of every table, as text; those of tasks with their timestamps.
async fn all(session: &Session) -> BTreeMap<&'static str, Vec<String>> {
    let mut all = BTreeMap::new();
    for table in ROWS {
        all.insert(table, rows(session, &format!("SELECT JSON * FROM {table}")).await);
    }
    let stamps = "SELECT JSON task_id, WRITETIME(rest) AS written FROM task_state_snapshots";
    all.insert("timestamps", rows(session, stamps).await);
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_lost_are_rebuilt_as_they_were_and_open_tasks_go_on() {
    let mut drill = Drill::start(PARTITIONS, Way::Direct, &[]).await;
    let load = drill.load();
    drill.answered(150).await;
    drill.finish(load).await;
    for worker in drill.workers.drain(..) {
        worker.kill().expect("it dies");
    }
    drill.create_long(OPEN, 0).await;
    std::mem::take(&mut drill.cluster).stop().await.expect("a clean end");
    drill.journal.advance().await.expect("the log");
    assert_eq!(drill.journal.open_tasks().len() as u64, OPEN);

    let address = drill.stack.told(Engine::Cassandra, "address");
    let session = SessionBuilder::new().known_node(address).build().await.expect("a session");
    session.use_keyspace(&drill.scene.plan.keyspace, false).await.expect("the keyspace");
    let before = all(&session).await;
    assert!(before["task_state_snapshots"].len() > 150 && before["idempotency_keys"].len() > 20);
    for table in ROWS.iter().chain(&OTHERS) {
        session.query_unpaged(format!("TRUNCATE {table}"), ()).await.expect("emptied");
    }
    drill.stack.redis(&["FLUSHALL"]);
    assert!(all(&session).await.values().all(Vec::is_empty), "nothing is left");

    let mut command = Command::new(program_beside("dualtrack").expect("the command line"));
    command.args(["store", "rebuild"]).envs(drill.scene.plan.environment());
    let ran = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("it starts");
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(ran.status.success(), "{said}");
    for (table, rows) in all(&session).await {
        assert_eq!(rows.len(), before[table].len(), "{table}");
        for (is, was) in rows.iter().zip(&before[table]) {
            assert_eq!(is, was, "{table}");
        }
    }

    drill.cluster = Cluster::start(&drill.scene.plan).await.expect("everything starts");
    drill.urls = drill.cluster.urls();
    drill.workers = vec![drill.worker("worker-1").start()];
    let load = drill.load();
    drill.answered(20).await;
    let took = drill.finish(load).await;
    tell("rows lost and rebuilt", &drill, took);
    drill.end().await;
}
