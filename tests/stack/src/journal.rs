//! The log of a scene as this process reads it itself, folded by the production fold, and exported for
//! the independent checker.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use event_log::{
    AppendOutcome, EventLog as _, KafkaConfig, KafkaLog, LogError, OutRecord, RawRecord, Tail as _, TopicSpec,
    write_dump,
};
use task_core::{Change, CoreState, PartitionState, Reason, Record, Verdict};
use task_events::{Body, Event, Kind, Offset, OwnerSeq, PartitionEpoch, PartitionId, TaskId, Text};

use crate::load::OP;

/// A record and what became of it.
#[derive(Debug)]
pub struct Line {
    /// What it says.
    pub event: Event,
    /// Why it does not count.
    pub rejected: Option<Reason>,
}

/// Everything that was read so far.
pub struct Journal {
    log: KafkaLog,
    parts: Vec<Part>,
    /// Records, each partition's in its order.
    pub lines: Vec<Line>,
    /// Accepted creations, by the label of their operation.
    pub created: BTreeMap<Text, Vec<TaskId>>,
    /// Tasks that are closed, as they were when they were.
    pub closed: BTreeMap<TaskId, CoreState>,
    /// Records that are none.
    pub quarantined: u64,
}

struct Part {
    fold: PartitionState,
    tail: <KafkaLog as event_log::EventLog>::Tail,
    records: Vec<RawRecord>,
}

impl Journal {
    /// The log of this topic, from its start.
    ///
    /// # Panics
    /// It cannot be opened.
    pub async fn open(bootstrap: &str, topic: &str, partitions: u16) -> Self {
        let mut config = KafkaConfig::new(bootstrap, topic, partitions);
        "journal".clone_into(&mut config.client_id);
        let log = KafkaLog::open(config, &TopicSpec::single_node()).await.expect("the topic");
        let mut parts = Vec::new();
        for partition in (0..partitions).map(PartitionId) {
            let tail = log.tail(partition, Offset(0)).await.expect("a tail");
            parts.push(Part { fold: PartitionState::new(partition, true), tail, records: Vec::new() });
        }
        let (lines, created, closed) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { log, parts, lines, created, closed, quarantined: 0 }
    }

    /// Reads on to the end as of now.
    ///
    /// # Errors
    /// The log is away; what was read stays read.
    pub async fn advance(&mut self) -> Result<(), LogError> {
        for n in 0..self.parts.len() {
            let partition = self.parts[n].fold.partition;
            let end = self.log.range(partition).await?.end;
            while self.parts[n].fold.next_offset < end {
                let read = self.parts[n].tail.next().await;
                match read {
                    Ok(records) => records.into_iter().for_each(|raw| self.note(n, raw)),
                    Err(why) => {
                        let from = self.parts[n].fold.next_offset;
                        self.parts[n].tail = self.log.tail(partition, from).await?;
                        return Err(why);
                    }
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, part: usize, raw: RawRecord) {
        let fold = &mut self.parts[part].fold;
        match raw.event() {
            Err(_) => {
                fold.quarantine(raw.broker_ms);
                self.quarantined += 1;
            }
            Ok(event) => {
                let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key: raw.record_key(), event };
                let verdict = fold.apply(&record);
                let rejected = verdict.rejected();
                if let Verdict::Accepted(change) = verdict {
                    self.changed(&record.event, change);
                }
                self.lines.push(Line { event: record.event, rejected });
            }
        }
        self.parts[part].records.push(raw);
    }

    fn changed(&mut self, event: &Event, change: Change) {
        if let (Body::TaskCreated(created), Some(task)) = (&event.body, event.task_id) {
            let op = created.labels.get(OP).cloned().unwrap_or_default();
            self.created.entry(op).or_default().push(task);
        }
        match change {
            Change::Opened(task) => {
                self.closed.remove(&task);
            }
            Change::Closed(closed) | Change::Reviewed(closed) => {
                self.closed.insert(closed.core.id, closed.core);
            }
            Change::Forgotten(core) => {
                self.closed.insert(core.id, core);
            }
            Change::Moved(_) | Change::Annotated(_) | Change::Reported(_) | Change::Control(_) | Change::Sealed => {}
        }
    }

    /// Tasks that are open.
    pub fn open_tasks(&self) -> BTreeMap<TaskId, CoreState> {
        self.parts.iter().flat_map(|part| part.fold.tasks.iter()).map(|slot| (slot.core.id, slot.core)).collect()
    }

    /// Accepted records of a kind.
    pub fn accepted(&self, kind: Kind) -> impl Iterator<Item = &Event> {
        self.lines.iter().filter(move |line| line.rejected.is_none() && line.event.kind == kind).map(|line| &line.event)
    }

    /// How often a kind was accepted, by task and attempt.
    pub fn by_attempt(&self, kind: Kind) -> BTreeMap<(TaskId, u32), usize> {
        let mut found = BTreeMap::new();
        for event in self.accepted(kind) {
            *found.entry((event.task_id.expect("a task event"), event.exec_epoch.get())).or_default() += 1;
        }
        found
    }

    /// Records that were rejected for this reason.
    pub fn rejected(&self, reason: Reason) -> impl Iterator<Item = &Event> {
        self.lines.iter().filter(move |line| line.rejected == Some(reason)).map(|line| &line.event)
    }

    /// Everything that was read of a partition.
    pub fn records(&self, partition: PartitionId) -> &[RawRecord] {
        &self.parts[usize::from(partition.0)].records
    }

    /// Epoch and highest owner_seq of a partition, as far as it was read.
    pub fn ownership(&self, partition: PartitionId) -> (PartitionEpoch, OwnerSeq) {
        let fold = &self.parts[usize::from(partition.0)].fold;
        (fold.epoch, fold.owner_seq)
    }

    /// Writes records that no service would.
    ///
    /// # Panics
    /// The log does not take them.
    pub async fn append(&self, partition: PartitionId, records: Vec<OutRecord>) {
        assert_eq!(self.log.append(partition, records).await, AppendOutcome::Acknowledged);
    }

    /// Asks the independent checker about everything that was read.
    ///
    /// # Panics
    /// It is not content, or cannot be asked.
    pub fn check(&self, dir: &Path, more: &[&str]) {
        let dump = dir.join("log.dtlog");
        let mut out = BufWriter::new(File::create(&dump).expect("a file"));
        for part in &self.parts {
            write_dump(&mut out, part.fold.partition, Offset(0), &part.records).expect("written");
        }
        out.flush().expect("written");
        let checker = concat!(env!("CARGO_MANIFEST_DIR"), "/../checker/check.py");
        let ran = Command::new("python3").arg(checker).arg(&dump).args(more).output().expect("python3");
        let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(ran.status.success(), "the checker is not content with {}: {said}", dump.display());
    }

    /// Ends its connections.
    pub async fn close(self) {
        drop(self.parts);
        self.log.close(Duration::from_secs(5)).await;
    }
}
