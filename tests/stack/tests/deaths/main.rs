//! Coordinator, task engine and auto-replay die by SIGKILL at each fail point, on real engines and under
//! load, and are started again (faults.md rows 1 to 5, 7, 10, 11): nothing that was answered is lost,
//! everything goes on to its end, and the books add up.
//!
//! Only in builds with the feature `failpoints`; `DUALTRACK_KILL_AT=NAME:COUNT` arms the point.

use rustix::process::{Pid, Signal, kill_process};
use stack_control::{Launch, Member, Served};
use stack_tests::{Drill, Way, until};

const FIRST: Member = Member::Coordinator(1);

/// A point, at which of its evaluations the process dies, and whether it is reached by handing over.
struct Point(Member, &'static str, u64, bool);

const POINTS: [Point; 11] = [
    Point(FIRST, "owner::before_append", 20, false),
    Point(FIRST, "owner::after_append", 20, false),
    Point(FIRST, "owner::after_lock", 5, false),
    Point(FIRST, "owner::before_rows", 5, false),
    Point(FIRST, "owner::before_reply", 30, false),
    Point(FIRST, "owner::before_chunk", 2, true),
    Point(FIRST, "owner::before_manifest", 1, true),
    Point(Member::TaskEngine, "projection::before_append", 3, false),
    Point(Member::TaskEngine, "projection::after_append", 3, false),
    Point(Member::AutoReplay, "projection::before_append", 3, false),
    Point(Member::AutoReplay, "projection::after_append", 3, false),
];

/// Not a test: a worker in a process of its own, if this process was told to be one.
#[test]
fn a_worker_process() {
    stack_tests::work_if_told();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_program_may_die_at_each_of_its_points_and_nothing_is_lost() {
    let mut drill = Drill::start(4, Way::Direct, &[]).await;
    let load = drill.load();
    for point in POINTS {
        dies_at(&mut drill, &point).await;
        drill.answered(15).await;
    }
    let took = drill.finish(load).await;
    tell(&format!("{} deaths at fail points: finished {took} ms after the last one", POINTS.len()));
    drill.end().await;
}

async fn dies_at(drill: &mut Drill, Point(member, point, count, at_hand_over): &Point) {
    let (_, plain) = drill.cluster.take(*member).expect("it runs").stop().await.expect("a clean end");
    let mut armed = plain.clone();
    armed.environment.push(("DUALTRACK_KILL_AT".to_owned(), format!("{point}:{count}")));
    let mut dying = start(armed).await;
    if *at_hand_over {
        dying.ready().await.expect("it is ready");
        until("it owns its share", || async { (stack_tests::owned(&dying.url).await.len() >= 2).then_some(()) }).await;
        let pid = i32::try_from(dying.id()).ok().and_then(Pid::from_raw).expect("an id");
        kill_process(pid, Signal::TERM).expect("it runs");
    }
    let what = format!("{} dies at {point}, time {count}", member.instance());
    let dying = std::sync::Mutex::new(dying);
    let why = until(&what, || async { dying.lock().expect("one at a time").is_running().err() }).await;
    assert!(format!("{why:#}").contains("signal: 9"), "{what}: {why:#}");
    tell(&what);
    drill.cluster.start_again(*member, plain).await.expect("it is back");
}

async fn start(launch: Launch) -> Served {
    tokio::task::spawn_blocking(|| Served::launch(launch)).await.expect("no panic").expect("it starts")
}

#[expect(clippy::print_stderr, reason = "how far a run is, for whoever reads it with --nocapture")]
fn tell(text: &str) {
    eprintln!("{text}");
}
