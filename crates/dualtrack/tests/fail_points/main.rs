//! `dualtrack dev` dies by SIGKILL at each of its fail points under load and is started again: nothing
//! that was answered is lost, everything goes on to its end, and the books add up.
//!
//! Only in builds with the feature `failpoints`; `DUALTRACK_KILL_AT=NAME:COUNT` arms the point.

#[path = "../cases/book.rs"]
#[allow(dead_code, reason = "shared by several targets, none of which needs all of it")]
mod book;
#[path = "../cases/kit.rs"]
#[allow(dead_code, reason = "shared by several targets, none of which needs all of it")]
mod kit;
#[path = "../crash/load.rs"]
#[allow(dead_code, reason = "shared by several targets, none of which needs all of it")]
mod load;

use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::Signal;

use kit::{DevProcess, flags, pause};
use load::{Load, free_address, say};

const LEASE_MS: u64 = 3_000;

/// Each point, and at which of its evaluations the process dies. Those of checkpoints are reached when
/// the process hands over.
const POINTS: [(&str, u64, bool); 9] = [
    ("owner::before_append", 40, false),
    ("owner::after_append", 40, false),
    ("owner::after_lock", 10, false),
    ("owner::before_rows", 5, false),
    ("owner::before_reply", 60, false),
    ("owner::before_chunk", 2, true),
    ("owner::before_manifest", 2, true),
    ("projection::before_append", 4, false),
    ("projection::after_append", 4, false),
];

async fn dies_at(point: &str, count: u64, at_hand_over: bool) {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let listen = free_address();
    let mut load = Load::start(&listen, 4, 20);
    let kill_at = [("DUALTRACK_KILL_AT", format!("{point}:{count}"))];
    let mut dev = DevProcess::spawn(&data, &listen, &flags(LEASE_MS), &kill_at);
    if at_hand_over {
        dev.ready();
        kit::until("some load", async || (load.answered().len() > 20).then_some(())).await;
        dev.signal(Signal::TERM);
    }
    dev.killed_itself(point).await;
    let mut dev = DevProcess::spawn(&data, &listen, &flags(LEASE_MS), &[]);
    dev.ready();
    // It also works afterwards, not only survives.
    pause(200).await;
    load.stop_creating().await;
    load.assert_all_is_well(&data, &listen, dev).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_each_fail_point_it_may_die_and_nothing_is_lost() {
    for (point, count, at_hand_over) in POINTS {
        say(&format!("{point}, time {count}"));
        dies_at(point, count, at_hand_over).await;
    }
}

#[test]
fn each_fail_point_of_the_sources_is_one_of_these() {
    let mut found = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    // Of the tests of the macro itself.
    found.remove("service_kit::guarded");
    assert_eq!(found, POINTS.iter().map(|(point, ..)| (*point).to_owned()).collect());
}

fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            // Sources of crates, not of tests.
            if !path.ends_with("tests") {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<String>();
            let names = code.split("fail_point!(\"").skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(names.map(str::to_owned));
        }
    }
}
