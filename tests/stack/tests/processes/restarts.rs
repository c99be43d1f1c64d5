//! Coordinators that die and that are restarted, under load.

use service_kit::{Clock as _, SystemClock};
use stack_control::Member;
use stack_tests::{PATIENCE_MS, Scene, owned, until};

use crate::load::{Creating, Working, all_succeed};

const PARTITIONS: u16 = 8;

/// How soon after a crash somebody else owns the partitions (design.md §11): session timeout 6 s + 4 s.
const CRASH_MS: u64 = 10_000;

/// How soon after a clean stop (design.md §11).
const CLEAN_MS: u64 = 1_000;

async fn owns_all(url: &str) -> u64 {
    until("one owns all partitions", || async { (owned(url).await.len() == usize::from(PARTITIONS)).then_some(()) })
        .await;
    SystemClock.boot_ms()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_coordinator_is_replaced_within_ten_seconds_and_nothing_is_lost() {
    let scene = Scene::new(PARTITIONS, 2, &[]).await;
    let mut cluster = scene.start().await;
    let urls = cluster.urls();
    let worker = Working::start(&urls, &scene.plan.dir.join("outbox"));
    let creating = Creating::start(&cluster);
    until("the second one owns some", || async { (!owned(&urls[1]).await.is_empty()).then_some(()) }).await;

    let died = SystemClock.boot_ms();
    let again = cluster.take(Member::Coordinator(1)).expect("it runs").kill().expect("it dies");
    let took = owns_all(&urls[1]).await - died;
    assert!(took <= CRASH_MS, "taken over after {took} ms");
    cluster.start_again(Member::Coordinator(1), again).await.expect("it comes back");

    creating.until(20).await;
    let told = creating.stop().await;
    // Nobody answers for a partition without owner: 503 or 504 within the time of the take-over are no
    // lost creates. What was answered 201 must be there, and end well.
    all_succeed(&urls[1], told.created.values().copied()).await;
    worker.stop().await;
    cluster.stop().await.expect("a clean end");
    tell(&format!("crash: taken over after {took} ms; slowest create {} ms", told.slowest_ms));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_under_load_fails_no_create() {
    let scene = Scene::new(PARTITIONS, 2, &[]).await;
    let mut cluster = scene.start().await;
    let urls = cluster.urls();
    let worker = Working::start(&urls, &scene.plan.dir.join("outbox"));
    let creating = Creating::start(&cluster);
    for number in [1, 2] {
        let member = Member::Coordinator(number);
        let (took, again) = cluster.take(member).expect("it runs").stop().await.expect("a clean end");
        assert!(took < 15_000, "{member:?} ended after {took} ms");
        cluster.start_again(member, again).await.expect("it comes back");
        let own = &urls[usize::from(number - 1)];
        until("it owns partitions again", || async { (!owned(own).await.is_empty()).then_some(()) }).await;
    }
    creating.until(50).await;
    let told = creating.stop().await;
    assert!(
        told.refused.is_empty(),
        "{} of {} creates failed: {:?}",
        told.refused.len(),
        told.created.len(),
        told.refused
    );
    all_succeed(&urls[0], told.created.values().copied()).await;
    worker.stop().await;
    cluster.stop().await.expect("a clean end");
    let figures = (told.created.len(), told.settled_elsewhere, told.slowest_ms);
    tell(&format!("rolling restart: (creates, settled elsewhere, slowest ms) = {figures:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_stop_hands_over_within_a_second() {
    let scene = Scene::new(PARTITIONS, 2, &[]).await;
    let mut cluster = scene.start().await;
    let urls = cluster.urls();
    until("both own some", || async {
        let shares = (owned(&urls[0]).await.len(), owned(&urls[1]).await.len());
        (shares.0 > 0 && shares.1 > 0).then_some(())
    })
    .await;
    let leaving = cluster.take(Member::Coordinator(1)).expect("it runs");
    let asked = SystemClock.boot_ms();
    let (stopped, owned_all) = tokio::join!(leaving.stop(), owns_all(&urls[1]));
    stopped.expect("a clean end");
    let took = owned_all - asked;
    assert!(took <= CLEAN_MS, "handed over after {took} ms (patience {PATIENCE_MS})");
    cluster.stop().await.expect("a clean end");
    tell(&format!("clean stop: handed over after {took} ms"));
}

#[expect(clippy::print_stderr, reason = "figures of a run, for whoever reads it with --nocapture")]
fn tell(text: &str) {
    eprintln!("{text}");
}
