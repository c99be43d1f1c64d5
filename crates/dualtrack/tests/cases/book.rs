//! What the log says, record by record, by the production fold; and what the independent checker says
//! of it. Shared by the targets `cases`, `crash` and `fail_points`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use event_log::{EmbeddedConfig, EmbeddedLog, EventLog as _, Tail as _};
use task_core::{PartitionState, Reason, Record, Verdict};
use task_events::{Body, Event, Kind, PartitionId, TaskId, TaskState};

/// A record and what became of it.
pub struct Line {
    pub event: Event,
    pub rejected: Option<Reason>,
}

/// The whole log.
#[derive(Default)]
pub struct Book {
    pub lines: Vec<Line>,
    /// Tasks that are open at its end.
    pub open: BTreeMap<TaskId, TaskState>,
}

impl Book {
    /// Everything that is in the log now.
    pub async fn read(log: &EmbeddedLog) -> Self {
        let mut book = Self::default();
        for partition in (0..log.partition_count()).map(PartitionId) {
            let range = log.range(partition).await.expect("a range");
            let mut fold = PartitionState::new(partition, false);
            let mut tail = log.tail(partition, range.start).await.expect("a tail");
            while fold.next_offset < range.end {
                for raw in tail.next().await.expect("records") {
                    let event = raw.event().expect("intact");
                    let key = raw.record_key();
                    let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event };
                    let rejected = match fold.apply(&record) {
                        Verdict::Accepted(_) => None,
                        Verdict::Rejected(reason) => Some(reason),
                    };
                    book.lines.push(Line { event: record.event, rejected });
                }
            }
            book.open.extend(fold.tasks.iter().map(|slot| (slot.core.id, slot.core.state)));
        }
        book
    }

    /// The log of a folder that no process holds.
    pub async fn of_folder(data: &Path, partitions: u16) -> Self {
        let log = EmbeddedLog::open(EmbeddedConfig::new(data.join("log"), partitions)).expect("the log opens");
        let book = Self::read(&log).await;
        let closing = tokio::task::spawn_blocking(move || log.close());
        closing.await.expect("closed");
        book
    }

    pub fn accepted(&self, kind: Kind) -> impl Iterator<Item = &Event> {
        let counts = move |line: &&Line| line.rejected.is_none() && line.event.kind == kind;
        self.lines.iter().filter(counts).map(|line| &line.event)
    }

    /// How often a kind was accepted, by task and attempt.
    pub fn by_attempt(&self, kind: Kind) -> BTreeMap<(TaskId, u32), usize> {
        let mut found = BTreeMap::new();
        for event in self.accepted(kind) {
            *found.entry((event.task_id.expect("a task event"), event.exec_epoch.get())).or_default() += 1;
        }
        found
    }

    /// Tasks with an accepted event of this kind.
    pub fn tasks(&self, kind: Kind) -> BTreeSet<TaskId> {
        self.accepted(kind).filter_map(|event| event.task_id).collect()
    }

    pub fn is_live(state: TaskState) -> bool {
        matches!(state, TaskState::Assigned | TaskState::Executing)
    }

    /// Each key of a create made one task.
    pub fn assert_keys_are_unique(&self) {
        let mut keys = BTreeMap::new();
        for event in self.accepted(Kind::TaskCreated) {
            let Body::TaskCreated(created) = &event.body else { panic!("{event:?}") };
            let Some(key) = created.key_hash else { continue };
            let before = keys.insert(key, event.task_id);
            assert!(before.is_none(), "one key created {before:?} and {:?}", event.task_id);
        }
    }
}

/// Asks the independent checker about the log of a folder that no process holds.
pub fn check(data: &Path, more: &[&str]) {
    let checker = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/checker/check.py");
    let output = Command::new("python3").arg(checker).arg(data.join("log")).args(more).output().expect("python3");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "the checker is not content: {said}");
}
