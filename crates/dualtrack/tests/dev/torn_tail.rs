//! Case 17: a torn tail, twice, through the whole process; and damage that is no torn tail.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use rest_client::Client;
use rest_client::contract::CreateRequest;
use task_events::TaskId;

use crate::kit::Dev;

/// Creates so many tasks over HTTP, some at a time; those that were answered 201.
async fn create(url: &str, count: usize) -> Vec<TaskId> {
    let client = Client::new(url).expect("a URL");
    let creates = (0..count).map(|n| {
        let client = client.clone();
        async move {
            let payload = serde_json::value::to_raw_value(&n).expect("JSON");
            let request = CreateRequest { task_type: "t".into(), payload: Some(payload), ..Default::default() };
            client.create(&request, None).await.expect("created").task_id
        }
    });
    futures::stream::iter(creates).buffer_unordered(64).collect().await
}

async fn missing(url: &str, tasks: &[TaskId]) -> Vec<TaskId> {
    let client = Client::new(url).expect("a URL");
    let mut missing = Vec::new();
    for task in tasks {
        match client.get(*task, None).await {
            Ok(_) => {}
            Err(error) if error.problem().is_some_and(|p| p.status == 404) => missing.push(*task),
            Err(error) => panic!("{task}: {error}"),
        }
    }
    missing
}

fn newest_segment(data: &Path) -> PathBuf {
    let entries = std::fs::read_dir(data.join("log/segments")).expect("segments");
    let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "seg"));
    files.sort();
    files.pop().expect("a segment")
}

fn last_byte(file: &Path) -> u64 {
    let bytes = std::fs::read(file).expect("readable");
    bytes.iter().rposition(|b| *b != 0).expect("a byte") as u64
}

#[test]
fn what_was_answered_and_not_cut_is_there_after_two_torn_tails_and_damage_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let dev = Dev::start(&data, &["--partitions", "4"]);
    let first = runtime.block_on(create(&dev.url, 1_000));
    dev.kill();
    let segment = newest_segment(&data);
    let cut = last_byte(&segment) - 5;
    std::fs::OpenOptions::new().write(true).open(&segment).expect("open").set_len(cut).expect("cut");

    let dev = Dev::start(&data, &["--partitions", "4"]);
    let log = dev.log();
    assert!(log.contains("torn tail repaired") && log.contains(&segment.display().to_string()), "{log}");
    assert!(log.contains("position="), "{log}");
    // What the cut took is at most the last commit; everything else is there.
    let lost = runtime.block_on(missing(&dev.url, &first));
    assert!(lost.len() <= 64, "{} of 1000 are gone", lost.len());
    let second = runtime.block_on(create(&dev.url, 100));
    dev.kill();

    let dev = Dev::start(&data, &["--partitions", "4"]);
    assert_eq!(runtime.block_on(missing(&dev.url, &second)), []);
    assert_eq!(runtime.block_on(missing(&dev.url, &first)), lost, "no more than the cut took, and for good");
    dev.kill();

    let segment = newest_segment(&data);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&segment).expect("open");
    let middle = last_byte(&segment) / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).expect("a byte");
    file.write_all_at(&[byte[0] ^ 0x10], middle).expect("written");
    let refused = Dev::try_start(&data, &["--partitions", "4"]).err().expect("refused");
    assert!(refused.contains(&segment.display().to_string()) && refused.contains("offset"), "{refused}");
}
