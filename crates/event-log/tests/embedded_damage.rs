//! Torn tails and damage of the embedded log (case 17 at log level): every cut and every flipped
//! byte of a small log is either repaired at the end or refused with file and offset, and nothing
//! acknowledged ever vanishes without a word.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use event_log::{AppendOutcome, EmbeddedConfig, EmbeddedLog, EventLog, LogError, OutRecord, RawRecord, Tail};
use task_events::{Offset, PartitionId};

const PARTITIONS: u16 = 2;

fn config(dir: &Path) -> EmbeddedConfig {
    let mut config = EmbeddedConfig::new(dir, PARTITIONS);
    config.segment_bytes = 1 << 20;
    config
}

fn record(text: &str) -> OutRecord {
    OutRecord {
        key: Bytes::from_static(b"7"),
        headers: vec![("kind", Bytes::from_static(b"T"))],
        value: Bytes::copy_from_slice(text.as_bytes()),
    }
}

async fn append(log: &EmbeddedLog, partition: u16, texts: &[String]) {
    let batch = texts.iter().map(|text| record(text)).collect();
    assert_eq!(log.append(PartitionId(partition), batch).await, AppendOutcome::Acknowledged);
}

/// Values of a partition from its start to its visible end.
async fn values(log: &EmbeddedLog, partition: u16) -> Result<Vec<String>, LogError> {
    let partition = PartitionId(partition);
    let range = log.range(partition).await?;
    let mut tail = log.tail(partition, range.start).await?;
    let mut out = Vec::new();
    while (out.len() as u64) < range.end.0 - range.start.0 {
        let text = |r: &RawRecord| String::from_utf8_lossy(r.value.as_deref().unwrap_or_default()).into_owned();
        out.extend(tail.next().await?.iter().map(text));
    }
    Ok(out)
}

/// A closed log with a few small commits in both partitions; its newest file.
async fn small_log(dir: &Path) -> (PathBuf, [Vec<String>; 2]) {
    let log = EmbeddedLog::open(config(dir)).expect("log");
    let mut expected = [Vec::new(), Vec::new()];
    for i in 0..6 {
        let texts: Vec<String> = (0..=i % 3).map(|j| format!("value {i}.{j}")).collect();
        append(&log, i % 2, &texts).await;
        expected[usize::from(i % 2)].extend(texts);
    }
    (log.newest_segment(), expected)
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("directory");
    for entry in fs::read_dir(from).expect("directory").map(|entry| entry.expect("entry").path()) {
        let target = to.join(entry.file_name().expect("name"));
        if entry.is_dir() { copy_dir(&entry, &target) } else { fs::copy(&entry, &target).map(drop).expect("copy") }
    }
}

/// The same file in a copy of the directory.
fn same_in(copy: &Path, original: &Path, file: &Path) -> PathBuf {
    copy.join(file.strip_prefix(original).expect("inside"))
}

#[tokio::test]
async fn every_cut_of_the_newest_file_leaves_whole_entries_and_a_working_log() {
    let (original, work) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    let (file, expected) = small_log(original.path()).await;
    let len = fs::metadata(&file).expect("file").len();
    let mut kept = Vec::new();
    for cut in (0..=len).rev() {
        let dir = work.path().join(cut.to_string());
        copy_dir(original.path(), &dir);
        let target = same_in(&dir, original.path(), &file);
        OpenOptions::new().write(true).open(&target).expect("file").set_len(cut).expect("cut");
        let log = match EmbeddedLog::open(config(&dir)) {
            Ok(log) => log,
            // Less than the header of the only segment is no log at all: refused, never "empty".
            Err(LogError::Damaged { file, .. }) => {
                assert!(cut < 76 && file == target.display().to_string(), "refused at {cut}");
                continue;
            }
            Err(error) => panic!("cut at {cut}: {error}"),
        };
        // Appends after the repair, and all of it once more after a second start.
        let before = [values(&log, 0).await.expect("values"), values(&log, 1).await.expect("values")];
        append(&log, 0, &["new".into()]).await;
        drop(log);
        let log = EmbeddedLog::open(config(&dir)).expect("second start");
        let mut after = [values(&log, 0).await.expect("values"), values(&log, 1).await.expect("values")];
        assert_eq!(after[0].pop().as_deref(), Some("new"));
        assert_eq!(before, after, "cut at {cut}");
        for p in 0..2 {
            assert!(expected[p].starts_with(&after[p]), "cut at {cut}: {after:?}");
        }
        kept.push(after[0].len() + after[1].len());
        fs::remove_dir_all(&dir).expect("cleanup");
    }
    let all = expected[0].len() + expected[1].len();
    // The last entry is a mark: cutting only that costs no record, and each byte less never adds one.
    assert_eq!((kept[0], kept[5], kept.last().copied()), (all, all, Some(0)));
    assert!(kept.is_sorted_by(|a, b| a >= b));
}

#[tokio::test]
async fn every_flipped_byte_is_refused_with_file_and_offset() {
    let (original, work) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    let (file, _) = small_log(original.path()).await;
    let bytes = fs::read(&file).expect("file");
    let dir = work.path().join("copy");
    copy_dir(original.path(), &dir);
    let target = same_in(&dir, original.path(), &file);
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff, bytes[at]] {
            if flip == 0 {
                continue;
            }
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            fs::write(&target, &damaged).expect("write");
            let Err(LogError::Damaged { file, position, offset, reason }) = EmbeddedLog::open(config(&dir)) else {
                panic!("byte {at} ^ {flip:#x}: not refused");
            };
            assert_eq!(file, target.display().to_string());
            assert!(position <= at as u64, "{reason}");
            assert!(offset < Offset(8), "{reason}");
            // Refused means untouched.
            assert_eq!(fs::read(&target).expect("read"), damaged, "byte {at}");
        }
    }
}

#[tokio::test]
async fn the_damaged_record_is_named() {
    let dir = tempfile::tempdir().expect("dir");
    let (file, expected) = small_log(dir.path()).await;
    let bytes = fs::read(&file).expect("file");
    for (partition, texts) in expected.iter().enumerate() {
        for (offset, text) in texts.iter().enumerate() {
            let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("value");
            // The value, and the length field of its header 40 bytes and the key and headers before.
            let header = bytes[..at].windows(2).rposition(|w| w == [0xD7, 0xE1]).expect("header");
            for (at, what) in [(at, "value"), (header + 4, "length"), (header + 12, "offset")] {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x40;
                fs::write(&file, &damaged).expect("write");
                match EmbeddedLog::open(config(dir.path())).map(|_| ()) {
                    Err(LogError::Damaged { offset: named, reason, position, .. }) => {
                        assert_eq!(
                            (named, position),
                            (Offset(offset as u64), header as u64),
                            "{what} of {text}: {reason}"
                        );
                        assert!(reason.contains(&format!("partition {partition}")), "{what} of {text}: {reason}");
                    }
                    other => panic!("{what} of {text}: {other:?}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn zeros_behind_the_last_entry_are_a_torn_tail() {
    let dir = tempfile::tempdir().expect("dir");
    let (file, expected) = small_log(dir.path()).await;
    let len = fs::metadata(&file).expect("file").len();
    for zeros in [1, 39, 40, 4096, 1 << 20] {
        OpenOptions::new().write(true).open(&file).expect("file").set_len(len + zeros).expect("grow");
        let log = EmbeddedLog::open(config(dir.path())).expect("log");
        assert_eq!(values(&log, 0).await.as_ref(), Ok(&expected[0]));
        drop(log);
        assert_eq!(fs::metadata(&file).expect("file").len(), len, "{zeros} zeros");
    }
}

#[tokio::test]
async fn a_sector_that_was_never_written_in_the_last_batch_is_a_torn_tail_but_not_before_a_mark() {
    let dir = tempfile::tempdir().expect("dir");
    let log = EmbeddedLog::open(config(dir.path())).expect("log");
    let big = "x".repeat(3000);
    append(&log, 0, &["first".into()]).await;
    append(&log, 0, &[big.clone(), big.clone(), big.clone()]).await;
    let file = log.newest_segment();
    drop(log);
    let whole = fs::read(&file).expect("file");
    let second = whole.windows(1000).position(|window| window.iter().all(|&b| b == b'x')).expect("value") + 3000;
    let hole = (second / 512 + 2) * 512;

    // With the mark behind it the batch was synced: a hole is damage.
    let mut damaged = whole.clone();
    damaged[hole..hole + 512].fill(0);
    fs::write(&file, &damaged).expect("write");
    let refused = EmbeddedLog::open(config(dir.path())).map(|_| ());
    assert!(matches!(refused, Err(LogError::Damaged { offset: Offset(2), .. })), "{refused:?}");

    // Without it the batch was never acknowledged: cut before the hole, although later entries are whole.
    fs::write(&file, &damaged[..damaged.len() - 41]).expect("write");
    let log = EmbeddedLog::open(config(dir.path())).expect("log");
    assert_eq!(values(&log, 0).await, Ok(vec!["first".into(), big]));
}

/// What a new segment's file may hold when the roll to it was cut off: anything up to the length of its header.
#[tokio::test]
async fn a_segment_that_was_never_finished_is_removed_but_none_that_may_have_held_a_record() {
    let dir = tempfile::tempdir().expect("dir");
    let (newest, expected) = small_log(dir.path()).await;
    let whole = fs::read(&newest).expect("file");
    let header = &whole[..u32::from_le_bytes(whole[12..16].try_into().expect("4 bytes")) as usize];
    let name = newest.file_stem().expect("name").to_string_lossy().into_owned();
    let number = name.parse::<u64>().expect("number") + 1;
    let next = newest.with_file_name(format!("{number:0width$}.seg", width = name.len()));
    let half = |zeros: usize| [&header[..header.len() / 2], &vec![0; zeros]].concat();
    for (torn, what) in [
        (Vec::new(), "no byte"),
        (vec![0; header.len()], "only zeros"),
        (vec![0; 4096], "zeros beyond its header"),
        (half(0), "half a header"),
        (half(header.len() - header.len() / 2), "a header whose second block was not written"),
    ] {
        fs::write(&next, &torn).expect("write");
        let log = EmbeddedLog::open(config(dir.path())).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(log.newest_segment(), newest, "{what}");
        assert!(!next.exists(), "{what}");
        let found = [values(&log, 0).await.expect("values"), values(&log, 1).await.expect("values")];
        assert_eq!(found, expected, "{what}");
        drop(log);
        // The one before it is sealed only once it was whole and synced: then it is no longer a torn one.
        let index = newest.with_extension("idx");
        fs::write(&next, &torn).expect("write");
        fs::write(&index, b"sealed").expect("write");
        let refused = EmbeddedLog::open(config(dir.path())).map(|_| ());
        assert!(matches!(&refused, Err(LogError::Damaged { file, .. }) if *file == next.display().to_string()));
        fs::remove_file(&index).expect("remove");
    }
    fs::write(&next, [half(header.len()), whole[header.len()..].to_vec()].concat()).expect("write");
    let refused = EmbeddedLog::open(config(dir.path())).map(|_| ());
    assert!(matches!(&refused, Err(LogError::Damaged { file, .. }) if *file == next.display().to_string()));
}

#[tokio::test]
async fn older_segments_are_whole_or_refused() {
    let dir = tempfile::tempdir().expect("dir");
    let mut small = config(dir.path());
    small.segment_bytes = 4096;
    let log = EmbeddedLog::open(small.clone()).expect("log");
    let first = log.newest_segment();
    for i in 0..60 {
        append(&log, i % 2, &[format!("{i} {}", "y".repeat(200))]).await;
    }
    let newest = log.newest_segment();
    assert_ne!(first, newest);
    drop(log);
    let bytes = fs::read(&first).expect("file");

    // A flip is found when the record is read, and at the start when everything is to be checked.
    let at = bytes.windows(50).position(|window| window.iter().all(|&b| b == b'y')).expect("value");
    let handle = OpenOptions::new().write(true).open(&first).expect("file");
    handle.write_all_at(b"z", at as u64).expect("flip");
    let log = EmbeddedLog::open(small.clone()).expect("opens");
    let read = values(&log, 0).await;
    assert!(
        matches!(&read, Err(LogError::Damaged { offset: Offset(0), file, .. }) if *file == first.display().to_string()),
        "{read:?}"
    );
    drop(log);
    let all = EmbeddedConfig { verify_all: true, ..small.clone() };
    let refused = EmbeddedLog::open(all.clone()).map(|_| ());
    assert!(matches!(refused, Err(LogError::Damaged { offset: Offset(0), .. })), "{refused:?}");
    fs::write(&first, &bytes).expect("restore");

    // Every shorter length of an older segment is refused, torn or not.
    for cut in (0..bytes.len()).step_by(7) {
        fs::write(&first, &bytes[..cut]).expect("cut");
        let refused = EmbeddedLog::open(small.clone()).map(|_| ());
        assert!(matches!(refused, Err(LogError::Damaged { .. })), "cut at {cut}: {refused:?}");
    }
    fs::write(&first, &bytes).expect("restore");

    // A lost index is rebuilt; a lost segment is not made up for.
    let index = first.with_extension("idx");
    fs::remove_file(&index).expect("remove");
    let log = EmbeddedLog::open(all).expect("log");
    assert_eq!(values(&log, 0).await.map(|v| v.len()), Ok(30));
    assert!(index.exists());
    fs::write(&index, b"nonsense").expect("write");
    assert_eq!(values(&log, 1).await.map(|v| v.len()), Ok(30), "rebuilt while open");
    drop(log);
    fs::rename(&newest, dir.path().join("gone")).expect("rename");
    let refused = EmbeddedLog::open(small.clone()).map(|_| ());
    assert!(
        matches!(&refused, Err(LogError::Damaged { file, .. }) if *file == newest.display().to_string()),
        "{refused:?}"
    );
    fs::rename(dir.path().join("gone"), &newest).expect("rename");
    fs::remove_file(&first).expect("remove");
    let refused = EmbeddedLog::open(small).map(|_| ());
    assert!(matches!(refused, Err(LogError::Damaged { .. })), "{refused:?}");
}
