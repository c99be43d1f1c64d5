//! Members come and go faster than the group settles (faults.md rows 9 and 28; there five of them for two
//! minutes, here two for some rounds).

use service_kit::{Clock as _, SystemClock};
use stack_control::{Member, Served};
use stack_tests::{Drill, Way};
use task_events::Kind;

use crate::{PARTITIONS, tell};

const ROUNDS: u16 = 8;

/// Each lives so long, ms, wherever its joining is by then.
const LIFE_MS: u64 = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_faster_than_the_group_settles() {
    let mut drill = Drill::start(PARTITIONS, Way::Direct, &[]).await;
    let load = drill.load();
    drill.answered(20).await;
    drill.journal.advance().await.expect("the log");
    let before = drill.journal.accepted(Kind::OwnershipClaimed).count();
    for round in 0..ROUNDS {
        let launch = drill.scene.plan.launch(Member::Coordinator(3 + round % 2)).expect("its program");
        let began = SystemClock.boot_ms();
        let served = tokio::task::spawn_blocking(|| Served::launch(launch)).await.expect("no panic");
        let served = served.expect("it starts");
        SystemClock.sleep_until(began + LIFE_MS).await;
        if round % 2 == 0 {
            served.kill().expect("it dies");
        } else {
            served.stop().await.expect("a clean end");
        }
    }
    drill.answered(40).await;
    let took = drill.finish(load).await;
    let claims = drill.journal.accepted(Kind::OwnershipClaimed).count() - before;
    assert!(claims >= usize::from(PARTITIONS), "partitions moved: {claims} claims");
    tell(&format!("a storm of rebalances: {claims} claims"), &drill, took);
    drill.end().await;
}
