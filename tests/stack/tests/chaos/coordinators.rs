//! A coordinator dies, stands still and goes on, stands still while it should hand over (faults.md rows 4
//! to 6, 8; case 11 from the field: there the stop takes 60 s, here as long as its successor needs and
//! twice the session timeout).

use std::time::Duration;

use event_log::fault_proxy::Fault;
use futures::future::join_all;
use rest_client::{Client, Timeouts};
use service_kit::{Clock as _, SystemClock};
use stack_control::{Member, Served, variable};
use stack_tests::{Drill, Engine, Journal, Outcome, Way, elsewhere, owned, sample, until};
use task_core::Reason;

use crate::{PARTITIONS, tell};

/// Twice the session timeout of a drill.
const FROZEN_MS: u64 = 6_000;

/// Creates that a coordinator decides before it stands still, and that come late.
const IN_HAND: u64 = 40;

const FIRST: Member = Member::Coordinator(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coordinators_die_and_stand_still_and_nothing_is_lost_or_runs_twice() {
    let mut drill = Drill::start(PARTITIONS, Way::Direct, &[]).await;
    killed(&mut drill).await;
    frozen(&mut drill).await;
    frozen_in_a_hand_over(&mut drill).await;
    drill.end().await;
}

async fn owns_all(url: &str) {
    until("it owns all partitions", || async { (owned(url).await.len() == usize::from(PARTITIONS)).then_some(()) })
        .await;
}

async fn each_owns_some(drill: &Drill) {
    until("each owns some partitions", || async {
        let shares = (owned(&drill.urls[0]).await.len(), owned(&drill.urls[1]).await.len());
        (shares.0 > 0 && shares.1 > 0).then_some(())
    })
    .await;
}

async fn killed(drill: &mut Drill) {
    each_owns_some(drill).await;
    let load = drill.load();
    drill.answered(40).await;
    let again = drill.cluster.take(FIRST).expect("it runs").kill().expect("it dies");
    owns_all(&drill.urls[1]).await;
    drill.answered(40).await;
    drill.cluster.start_again(FIRST, again).await.expect("it is back");
    let took = drill.finish(load).await;
    tell("a coordinator killed", drill, took);
}

// Its decisions that the fence rejected.
fn late(journal: &Journal) -> usize {
    let late = journal.rejected(Reason::StaleEpoch);
    late.filter(|event| event.producer.instance == FIRST.instance()).count()
}

// Its way to Kafka is its own, and can be held up alone.
async fn behind_a_proxy(drill: &mut Drill) {
    let (_, mut again) = drill.cluster.take(FIRST).expect("it runs").stop().await.expect("a clean end");
    let way = drill.stack.proxied_engines().0;
    let bootstrap = variable("log.bootstrap");
    let (_, address) = again.environment.iter_mut().find(|(name, _)| *name == bootstrap).expect("it is set");
    address.clone_from(&way[&bootstrap]);
    drill.cluster.start_again(FIRST, again).await.expect("it is back");
}

async fn frozen(drill: &mut Drill) {
    behind_a_proxy(drill).await;
    let load = drill.load();
    let before = late(&drill.journal);
    let zombies = drill.sum("zombie_rejected_total", None).await;
    each_owns_some(drill).await;
    drill.answered(20).await;
    // What it decides from now on is under way until somebody else has decided long since.
    let proxy = drill.stack.proxy(Engine::Kafka);
    proxy.set(Fault::Hold);
    let timeouts = Timeouts { connect: Duration::from_secs(3), answer: Duration::from_secs(40) };
    let client = Client::with_timeouts(&drill.urls[0], timeouts).expect("a URL");
    let asked = drill.history.invoke(IN_HAND, false).map(|op| {
        let (client, history) = (client.clone(), drill.history.clone());
        tokio::spawn(async move {
            // It needs no store.
            let answer = client.create(&elsewhere(op), None).await;
            history.created(op, Outcome::of(answer.map(|created| created.task_id)));
        })
    });
    let asked: Vec<_> = asked.collect();
    until("it decided", || async { (sample(&drill.urls[0], "partition_in_flight", None).await? > 0).then_some(()) })
        .await;
    drill.cluster.member(FIRST).expect("it runs").freeze().expect("it stands still");
    let frozen_at = SystemClock.boot_ms();
    owns_all(&drill.urls[1]).await;
    SystemClock.sleep_until(frozen_at + FROZEN_MS).await;
    proxy.set(Fault::None);
    drill.cluster.member(FIRST).expect("it runs").thaw().expect("it goes on");
    let journal = tokio::sync::Mutex::new(&mut drill.journal);
    until("what comes late from it is in the log, rejected", || async {
        let mut journal = journal.lock().await;
        journal.advance().await.ok()?;
        (late(&journal) > before).then_some(())
    })
    .await;
    join_all(asked).await.into_iter().for_each(|asked| asked.expect("no panic"));
    until("the fence counts them", || async {
        (drill.sum("zombie_rejected_total", None).await > zombies).then_some(())
    })
    .await;
    let took = drill.finish(load).await;
    tell(&format!("a coordinator frozen: {} late decisions rejected", late(&drill.journal)), drill, took);
}

// Somebody joins, and who must give partitions away for that stands still instead.
async fn frozen_in_a_hand_over(drill: &mut Drill) {
    let load = drill.load();
    let second = Member::Coordinator(2);
    let (_, again) = drill.cluster.take(second).expect("it runs").stop().await.expect("a clean end");
    owns_all(&drill.urls[0]).await;
    let joining = tokio::task::spawn_blocking(|| Served::launch(again)).await.expect("no panic").expect("it starts");
    drill.cluster.member(FIRST).expect("it runs").freeze().expect("it stands still");
    owns_all(&joining.url).await;
    drill.cluster.member(FIRST).expect("it runs").thaw().expect("it goes on");
    drill.cluster.put(second, joining);
    each_owns_some(drill).await;
    let took = drill.finish(load).await;
    tell("a coordinator frozen in a hand-over", drill, took);
}
