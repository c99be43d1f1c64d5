//! The embedded log under SIGKILL and full disks, in child processes: this test binary runs
//! itself again with `EVENT_LOG_CHILD` naming the part to play.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "child processes get their part by the environment and answer on stdout"
)]

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use event_log::{AppendOutcome, EmbeddedConfig, EmbeddedLog, EventLog, LogError, OutRecord, Tail};
use task_events::{Offset, PartitionId};

const PARTITIONS: u16 = 4;

fn config(dir: &Path) -> EmbeddedConfig {
    let mut config = EmbeddedConfig::new(dir, PARTITIONS);
    config.segment_bytes = 64 << 10;
    config
}

fn record(text: String) -> OutRecord {
    OutRecord { key: Bytes::from_static(b"7"), headers: vec![("kind", Bytes::from_static(b"T"))], value: text.into() }
}

/// Not a test of its own: the child's part. Without the variable it does nothing.
#[test]
fn child() {
    let Ok(part) = std::env::var("EVENT_LOG_CHILD") else { return };
    let (part, dir) = part.split_once(' ').expect("part and directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    match part {
        "append" => runtime.block_on(append_for_ever(Path::new(dir))),
        "fill" => runtime.block_on(fill(Path::new(dir))),
        other => panic!("no part {other}"),
    }
}

/// Appends in all partitions and says on stdout what was acknowledged, until it is killed.
async fn append_for_ever(dir: &Path) {
    let log = EmbeddedLog::open(EmbeddedConfig { segment_bytes: 8 << 10, ..config(dir) }).expect("log");
    let mut out = std::io::stdout();
    for round in 0.. {
        let text = |p: u16, i: u32| format!("{}.{round}.{p}.{i}", std::process::id());
        let batch = |p: u16| (0..5).map(|i| record(text(p, i))).collect::<Vec<_>>();
        let waits: Vec<_> = (0..PARTITIONS).map(|p| log.append(PartitionId(p), batch(p))).collect();
        for (p, wait) in (0..PARTITIONS).zip(waits) {
            assert_eq!(wait.await, AppendOutcome::Acknowledged);
            for i in 0..5 {
                writeln!(out, "ack {p} {}", text(p, i)).expect("stdout");
            }
        }
    }
}

fn spawn(part: &str, dir: &Path, before: &str) -> Child {
    let this = std::env::current_exe().expect("own path");
    let script = format!("{before} exec \"$0\" child --exact --nocapture");
    Command::new("bash")
        .args(["-c", &script])
        .arg(this)
        .env("EVENT_LOG_CHILD", format!("{part} {}", dir.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("child")
}

/// Runs the appending child until it acknowledged this many records, kills it, and returns them.
fn run_and_kill(dir: &Path, count: usize) -> Vec<(u16, String)> {
    let mut child = spawn("append", dir, "");
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut acknowledged = Vec::new();
    let mut killed = false;
    for line in lines {
        let line = line.expect("line");
        let mut words = line.split(' ');
        if let (Some("ack"), Some(p), Some(text)) = (words.next(), words.next(), words.next()) {
            acknowledged.push((p.parse().expect("partition"), text.to_owned()));
        }
        if acknowledged.len() >= count && !killed {
            child.kill().expect("kill");
            killed = true;
            // What it still said before it died was acknowledged too: read to the end.
        }
    }
    assert!(killed, "the child ended by itself: {:?}", child.wait());
    child.wait().expect("end");
    acknowledged
}

async fn contents(log: &EmbeddedLog) -> BTreeMap<u16, Vec<String>> {
    let mut out = BTreeMap::new();
    for p in 0..PARTITIONS {
        let end = log.range(PartitionId(p)).await.expect("range").end;
        let mut tail = log.tail(PartitionId(p), Offset(0)).await.expect("tail");
        let texts: &mut Vec<String> = out.entry(p).or_default();
        while (texts.len() as u64) < end.0 {
            for record in tail.next().await.expect("records") {
                assert_eq!(record.offset, Offset(texts.len() as u64));
                texts.push(String::from_utf8(record.value.expect("value").to_vec()).expect("text"));
            }
        }
    }
    out
}

/// Cuts the newest segment 5 bytes before its last byte that isn't zero: into its last mark, or into records that
/// nobody was told of. Killed in between two segments, the newest one holds no entry yet; its header is synced
/// before anything else happens, so nothing of that file is lost either.
fn cut_newest(dir: &Path) {
    let segments = std::fs::read_dir(dir.join("segments")).expect("directory").map(|e| e.expect("entry").path());
    let newest = segments.filter(|path| path.extension().is_some_and(|e| e == "seg")).max().expect("segment");
    let bytes = std::fs::read(&newest).expect("file");
    let header = bytes.get(12..16).map_or(0, |len| u32::from_le_bytes(len.try_into().expect("4 bytes"))) as usize;
    let Some(last) = bytes.iter().rposition(|&byte| byte != 0).filter(|&last| last >= header) else { return };
    OpenOptions::new().write(true).open(&newest).expect("file").set_len(last as u64 - 5).expect("cut");
}

#[tokio::test]
async fn killed_cut_and_killed_again_keeps_everything_acknowledged() {
    for round in 0..3 {
        let dir = tempfile::tempdir().expect("dir");
        let mut acknowledged = run_and_kill(dir.path(), 300 + 700 * round);
        cut_newest(dir.path());
        acknowledged.extend(run_and_kill(dir.path(), 100));
        acknowledged.extend(run_and_kill(dir.path(), 100));

        let log = EmbeddedLog::open(config(dir.path())).expect("log");
        let found = contents(&log).await;
        let mut next = BTreeMap::from([(0, 0), (1, 0), (2, 0), (3, 0)]);
        for (p, text) in &acknowledged {
            // In the order of acknowledgement; what was never acknowledged may stand in between.
            let from: &mut usize = next.get_mut(p).expect("partition");
            let at = found[p][*from..].iter().position(|found| found == text);
            *from += 1 + at.unwrap_or_else(|| panic!("{text} was acknowledged and is not in partition {p}"));
        }
        // Several segments, so rolling was killed through as well.
        assert!(std::fs::read_dir(dir.path().join("segments")).expect("directory").count() > 2);
    }
}

/// Fills a disk that is full after 40 blocks and goes on reading.
async fn fill(dir: &Path) {
    let log = EmbeddedLog::open(config(dir)).expect("log");
    let mut written = 0;
    let reason = loop {
        match log.append(PartitionId(0), vec![record(format!("{written:0>900}"))]).await {
            AppendOutcome::Acknowledged => written += 1,
            AppendOutcome::NotSent(reason) => break reason,
            AppendOutcome::Unknown(reason) => panic!("undone for sure, so not unknown: {reason}"),
        }
    };
    assert!(written > 5, "{written}: {reason}");
    assert!(reason.contains("File too large"), "{reason}");
    // A smaller one still fits, or is refused just as clearly; nothing is torn either way.
    let small = log.append(PartitionId(0), vec![record("small".into())]).await;
    written += usize::from(small == AppendOutcome::Acknowledged);
    assert_eq!(log.failure(), None, "space may come back");
    assert_eq!(contents(&log).await[&0].len(), written);
    println!("full after {written}");
}

#[tokio::test]
async fn a_full_disk_is_not_sent_and_tears_nothing() {
    let dir = tempfile::tempdir().expect("dir");
    // 40 KiB per file: less than a segment, so the write hits the limit, not the roll.
    let child = spawn("fill", dir.path(), "trap '' XFSZ; ulimit -f 40;");
    let output = child.wait_with_output().expect("child");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let written: usize = said
        .split("full after ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .and_then(|n| n.parse().ok())
        .expect("count");
    let log = EmbeddedLog::open(config(dir.path())).expect("log");
    assert_eq!(contents(&log).await[&0].len(), written);
    assert_eq!(log.append(PartitionId(0), vec![record("again".into())]).await, AppendOutcome::Acknowledged);
}

#[tokio::test]
async fn one_process_per_directory_and_one_identity_per_log() {
    let dir = tempfile::tempdir().expect("dir");
    let log = EmbeddedLog::open(config(dir.path())).expect("log");
    let refused = |config: EmbeddedConfig, part: &str| match EmbeddedLog::open(config).map(|_| ()) {
        Err(LogError::Refused(text)) => assert!(text.contains(part), "{text}"),
        other => panic!("{part}: {other:?}"),
    };
    refused(config(dir.path()), &format!("in use by another process (pid {})", std::process::id()));
    let id = log.log_id();
    log.close();
    assert!(matches!(log.append(PartitionId(0), vec![record("x".into())]).await, AppendOutcome::NotSent(_)));
    refused(EmbeddedConfig { partitions: PARTITIONS + 1, ..config(dir.path()) }, "has 4 partitions, configured are 5");
    let other = uuid::Uuid::from_u128(1);
    refused(EmbeddedConfig { expected_log_id: Some(other), ..config(dir.path()) }, &id.to_string());
    let log = EmbeddedLog::open(EmbeddedConfig { expected_log_id: Some(id), ..config(dir.path()) }).expect("log");
    log.close();
    let meta = dir.path().join("log.meta");
    OpenOptions::new().write(true).open(&meta).expect("file").write_all_at(b"X", 30).expect("flip");
    refused(config(dir.path()), "log.meta is damaged");
    std::fs::remove_file(&meta).expect("remove");
    refused(config(dir.path()), "log.meta is missing");
}
