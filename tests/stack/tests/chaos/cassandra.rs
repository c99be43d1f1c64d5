//! The snapshot track loses answers, and is gone until rows fill what may be owed; a coordinator dies
//! meanwhile (faults.md rows 35 and 36).

use event_log::fault_proxy::Fault;
use rest_client::ClientError;
use rest_contract::Code;
use stack_control::Member;
use stack_tests::{Drill, Engine, Outcome, Way, elsewhere, until};

use crate::{PARTITIONS, tell};

const AWAY: &str = "store_unavailable";

/// Rows that may be owed in a partition, bytes: creates are refused at half of it. Some dozens of tasks.
const OWED_BYTES: &str = "65536";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_cassandra_no_row_is_lost() {
    let mut drill = Drill::start(PARTITIONS, Way::Proxied, &[("coordinator.owed_bytes", OWED_BYTES)]).await;
    answers_lost(&mut drill).await;
    gone(&mut drill).await;
    drill.end().await;
}

// Written, and nobody is told: written again, with the same content at the same timestamp.
async fn answers_lost(drill: &mut Drill) {
    let load = drill.load();
    drill.answered(30).await;
    let before = drill.alarms(AWAY).await;
    let proxy = drill.stack.proxy(Engine::Cassandra);
    let swallowed = proxy.swallowed();
    proxy.set(Fault::DropResponses);
    drill.felt(AWAY, before).await;
    assert!(proxy.swallowed() > swallowed, "nothing was lost");
    proxy.set(Fault::None);
    drill.answered(30).await;
    let took = drill.finish(load).await;
    tell("answers of Cassandra lost", drill, took);
}

async fn gone(drill: &mut Drill) {
    let load = drill.load();
    drill.answered(30).await;
    let before = drill.alarms(AWAY).await;
    drill.stack.kill(Engine::Cassandra).await;
    drill.felt(AWAY, before).await;
    // Tasks whose payload lies elsewhere need no store, until half of what may be owed is.
    full(drill, 2).await;
    let half: u64 = OWED_BYTES.parse::<u64>().expect("a number") / 2;
    assert!(drill.sum("partition_owed_bytes", None).await >= half, "rows are owed");
    let again = drill.cluster.take(Member::Coordinator(1)).expect("it runs").kill().expect("it dies");
    // Whoever has no checkpoint of its own waits for the store.
    let stack = drill.stack;
    tokio::task::spawn_blocking(move || stack.restart(Engine::Cassandra)).await.expect("it is back");
    drill.cluster.start_again(Member::Coordinator(1), again).await.expect("it is back");
    drill.answered(30).await;
    let took = drill.finish(load).await;
    tell("Cassandra gone, a coordinator killed meanwhile", drill, took);
}

// Creates at this coordinator until it refuses more, because of what it owes.
async fn full(drill: &Drill, number: usize) {
    let client = drill.client(number);
    let drill = &drill;
    until("half of what may be owed is owed", || {
        let client = client.clone();
        async move {
            let op = drill.history.invoke(1, false).start;
            let answer = client.create(&elsewhere(op), None).await;
            let full = |why: &ClientError| why.problem().is_some_and(|problem| problem.code == Code::StoreBehind);
            let is_full = answer.as_ref().is_err_and(full);
            drill.history.created(op, Outcome::of(answer.map(|created| created.task_id)));
            is_full.then_some(())
        }
    })
    .await;
}
