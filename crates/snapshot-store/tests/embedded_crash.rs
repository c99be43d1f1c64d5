//! The embedded store under SIGKILL, in a child process: this test binary runs itself again with
//! `SNAPSHOT_STORE_CHILD` naming the directory.

#![expect(clippy::disallowed_methods, reason = "the child process gets its directory by the environment")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use snapshot_store::conformance::listings::{found, named, of_key};
use snapshot_store::conformance::{NOW_MS, PARTITION, RESULT, marked_row, new_row, read, snapshot_write, task};
use snapshot_store::{EmbeddedConfig, EmbeddedStore, PayloadItem, SnapshotStore};
use task_events::{Offset, TaskId};

const TASKS: u16 = 40;

fn open(dir: &Path) -> EmbeddedStore {
    EmbeddedStore::open(EmbeddedConfig::new(dir, || NOW_MS)).expect("store")
}

/// Not a test of its own: the child's part. Without the variable it does nothing.
#[test]
fn child() {
    let Ok(dir) = std::env::var("SNAPSHOT_STORE_CHILD") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(write_for_ever(Path::new(&dir)));
}

/// Goes on where the store is, says on stdout what was acknowledged, until it is killed.
async fn write_for_ever(dir: &Path) {
    let store = open(dir);
    let mut out = std::io::stdout();
    let first = store.acked(PARTITION).await.expect("read").0 as u32;
    for round in first + 1.. {
        let mut rows: Vec<_> =
            (0..TASKS).map(|n| snapshot_write(round.into(), marked_row(task(PARTITION, n), round))).collect();
        let name = round.to_string();
        let listed = named(new_row(of_round(round)), Some(&name), "c", Some(&name));
        rows.push(snapshot_write(round.into(), listed));
        let written = store.write(PARTITION, rows);
        let text = format!("{round} ").repeat(300);
        let payload = |item| (task(PARTITION, (round % 40) as u16), item, text.clone().into());
        let payloads = store.put_payloads([RESULT, PayloadItem::ErrorText].map(payload).to_vec());
        written.await.expect("written");
        payloads.await.expect("stored");
        store.put_acked(PARTITION, Offset(round.into())).await.expect("stored");
        writeln!(out, "ack {round}").expect("stdout");
    }
}

/// A task of one round alone.
fn of_round(round: u32) -> TaskId {
    TaskId::from_parts(96_000_000_000 + i64::from(round), PARTITION, 0).expect("an id")
}

/// Runs the child until it acknowledged this many rounds, kills it, and returns the last one.
fn run_and_kill(dir: &Path, count: usize) -> u32 {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["child", "--exact", "--nocapture"])
        .env("SNAPSHOT_STORE_CHILD", dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("child");
    let mut acknowledged = Vec::new();
    let mut killed = false;
    for line in BufReader::new(child.stdout.take().expect("stdout")).lines() {
        if let Some(round) = line.expect("line").strip_prefix("ack ") {
            acknowledged.push(round.parse().expect("a round"));
        }
        if acknowledged.len() >= count && !killed {
            child.kill().expect("kill");
            killed = true;
            // What it still said before it died was acknowledged too: read to the end.
        }
    }
    assert!(killed, "the child ended by itself: {:?}", child.wait());
    child.wait().expect("end");
    *acknowledged.last().expect("a round")
}

#[tokio::test]
async fn killed_again_and_again_it_keeps_everything_acknowledged() {
    let dir = tempfile::tempdir().expect("dir");
    let mut before = 0;
    for count in [5, 40, 90] {
        let last = run_and_kill(dir.path(), count);
        assert!(last >= before + count as u32, "it went on where it was");
        let store = open(dir.path());
        let acked = store.acked(PARTITION).await.expect("read").0 as u32;
        assert!(acked == last || acked == last + 1, "{last} was acknowledged, {acked} is there");
        let rows = store.snapshots((0..TASKS).map(|n| task(PARTITION, n)).collect()).await.expect("read");
        let marks: BTreeMap<u32, usize> = rows.iter().flatten().fold(BTreeMap::new(), |mut marks, row| {
            *marks.entry(row.row.memory_usage_percent).or_default() += 1;
            marks
        });
        // One write is one commit: all of a round's rows or none.
        let (mark, rows) = marks.first_key_value().expect("rows");
        assert!(marks.len() == 1 && *rows == usize::from(TASKS), "{marks:?}");
        assert!(*mark == acked || *mark == acked + 1, "{acked} was acknowledged, rows are of {mark}");
        for round in 1..=acked + 2 {
            let name = round.to_string();
            let row = read(&store, of_round(round)).await.map(|row| row.core.id);
            assert_eq!(row.is_some(), round <= *mark, "round {round} of {mark}");
            assert_eq!(found(&store, &name, 9).await, Vec::from_iter(row), "a row and its trace, or neither");
            assert_eq!(of_key(&store, "c", &name, 9).await, Vec::from_iter(row), "a row and its key, or neither");
        }
        let items = [RESULT, PayloadItem::ErrorText].map(|item| (task(PARTITION, (last % 40) as u16), item));
        let texts = store.payloads(items.to_vec()).await.expect("read");
        assert_eq!(texts, [(); 2].map(|()| Some(format!("{last} ").repeat(300).into())));
        store.close();
        before = last;
    }
}
