//! Case 6: a worker process stopped for twice its lease and let go on, with several tasks at a time
//! and the real server. Lines come every 100 ms instead of every second.

use std::collections::BTreeMap;
use std::path::Path;

use rest_client::Client;
use rustix::process::Signal;
use service_kit::{Clock as _, SystemClock};

use crate::kit::{DevProcess, WorkerProcess, flags, request, until};

const LEASE_MS: u64 = 3_000;
const TASKS: usize = 6;

/// Epochs by task, in the order of their lines.
fn lines(path: &Path) -> BTreeMap<String, Vec<u32>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    // The last one may be on its way.
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let (task, epoch) = line.trim_end().split_once(' ').expect("a whole line");
        found.entry(task.to_owned()).or_default().push(epoch.parse().expect("an epoch"));
    }
    found
}

async fn each_has(path: &Path, epoch: u32, count: usize) {
    until("lines of each task", async || {
        let found = lines(path);
        let enough = |epochs: &Vec<u32>| epochs.iter().filter(|e| **e >= epoch).count() >= count;
        (found.len() == TASKS && found.values().all(enough)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thawed_worker_writes_no_line_after_the_first_of_its_successor() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("lines");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(LEASE_MS), &[]);
    let url = dev.ready();
    let frozen = WorkerProcess::start(&url, "a", 16, "lines", &path);
    let client = Client::new(&url).expect("a URL");
    for n in 0..TASKS {
        client.create(&request("t", n as u64), None).await.expect("created");
    }
    each_has(&path, 1, 3).await;
    frozen.signal(Signal::STOP);
    let stopped_at = SystemClock.boot_ms();
    let _next = WorkerProcess::start(&url, "b", 16, "lines", &path);
    each_has(&path, 2, 1).await;
    SystemClock.sleep_until(stopped_at + 2 * LEASE_MS).await;
    let before = lines(&path).values().map(Vec::len).max().expect("lines");
    frozen.signal(Signal::CONT);
    // As many again: time enough for each handler of the thawed one to try.
    each_has(&path, 2, before).await;
    for (task, epochs) in lines(&path) {
        assert!(epochs.is_sorted(), "{task}: {epochs:?}");
    }
}
