//! The account of what happened, from the log alone: every record folded again by the production
//! fold, and the raw bytes dumped for the independent checker.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use dualtrack::dev::LogKind;
use event_log::{
    EmbeddedConfig, EmbeddedLog, EventLog, KafkaConfig, KafkaLog, RawRecord, Tail as _, TopicSpec, write_dump,
};
use task_core::{PartitionState, Record, Verdict, invariants};
use task_events::{Body, Offset, PartitionId, TaskId, TaskState};

use super::files::Places;
use super::{DemoArgs, PARTITIONS, suite};

/// One record of a task, as people read it.
#[derive(Debug)]
pub struct Line {
    /// Where it lies.
    pub offset: Offset,
    /// Broker time, Unix ms.
    pub broker_ms: i64,
    /// What it says.
    pub text: String,
    /// Why it does not count.
    pub rejected: Option<&'static str>,
}

/// What the log says of one task.
#[derive(Debug)]
pub struct TaskAccount {
    /// Its input file.
    pub name: String,
    /// State after the last record.
    pub state: TaskState,
    /// Attempts handed out.
    pub attempts: u32,
    /// Steps that a later attempt did not run again.
    pub resumed_steps: usize,
    /// Its records, in order.
    pub lines: Vec<Line>,
}

/// What the whole log says.
#[derive(Debug, Default)]
pub struct Account {
    /// By task.
    pub tasks: BTreeMap<TaskId, TaskAccount>,
    /// Records in all partitions.
    pub records: u64,
    /// Rejected ones, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Ownership claims that were accepted.
    pub claims: u64,
    /// Broker time of the first and last accepted task event.
    pub span_ms: Option<(i64, i64)>,
    /// Input of each task that its creator knows of.
    names: BTreeMap<TaskId, String>,
}

/// Reads the whole log, folds it, and writes the dump (raw records) and the verdicts (what this fold
/// said of each) for the checker. `names` has the input of each task.
pub async fn read(args: &DemoArgs, places: &Places, names: &BTreeMap<TaskId, String>) -> anyhow::Result<Account> {
    if args.stack {
        let log = suite::settings(args)?.log.connect("demo-account").await?;
        let account = account(&log, &places.dump, &places.verdicts, names).await;
        log.close(Duration::from_secs(5)).await;
        return account;
    }
    match args.log {
        LogKind::Embedded => {
            let log = EmbeddedLog::open(EmbeddedConfig::new(places.data.join("log"), PARTITIONS))?;
            let account = account(&log, &places.dump, &places.verdicts, names).await;
            log.close();
            account
        }
        LogKind::Kafka => {
            let bootstrap = args.bootstrap.as_deref().context("--log kafka needs --bootstrap HOST:PORT")?;
            let mut config = KafkaConfig::new(bootstrap, &args.topic, PARTITIONS);
            "demo-account".clone_into(&mut config.client_id);
            let log = KafkaLog::open(config, &TopicSpec::single_node()).await?;
            let account = account(&log, &places.dump, &places.verdicts, names).await;
            log.close(Duration::from_secs(5)).await;
            account
        }
    }
}

async fn account<L: EventLog>(
    log: &L,
    dump: &Path,
    verdicts: &Path,
    names: &BTreeMap<TaskId, String>,
) -> anyhow::Result<Account> {
    let mut account = Account { names: names.clone(), ..Account::default() };
    let mut dump_file = BufWriter::new(File::create(dump).with_context(|| format!("cannot write {}", dump.display()))?);
    let mut verdict_file =
        BufWriter::new(File::create(verdicts).with_context(|| format!("cannot write {}", verdicts.display()))?);
    for p in 0..log.partition_count() {
        let partition = PartitionId(p);
        let records = read_all(log, partition).await?;
        write_dump(&mut dump_file, partition, Offset(0), &records)?;
        let mut fold = PartitionState::new(partition, true);
        for raw in &records {
            let line = account.fold(&mut fold, raw);
            writeln!(verdict_file, "{line}")?;
        }
        invariants::adds_up(&fold).map_err(|v| anyhow::anyhow!("partition {partition}: {}", v.what))?;
        for slot in fold.tasks.iter() {
            if let Some(task) = account.tasks.get_mut(&slot.core.id) {
                task.state = slot.core.state;
            }
        }
    }
    dump_file.flush()?;
    verdict_file.flush()?;
    Ok(account)
}

async fn read_all<L: EventLog>(log: &L, partition: PartitionId) -> anyhow::Result<Vec<RawRecord>> {
    let range = log.range(partition).await?;
    let mut records = Vec::new();
    if range.end > range.start {
        let mut tail = log.tail(partition, range.start).await?;
        while records.last().is_none_or(|r: &RawRecord| r.offset.0 + 1 < range.end.0) {
            records.extend(tail.next().await?);
        }
    }
    Ok(records)
}

impl Account {
    // Folds one record and returns its line of the verdict file.
    fn fold(&mut self, fold: &mut PartitionState, raw: &RawRecord) -> String {
        self.records += 1;
        let (verdict, event_id) = match raw.event() {
            Err(reason) => {
                fold.quarantine(raw.broker_ms);
                (format!("quarantined:{reason}"), None)
            }
            Ok(event) => {
                let key = raw.record_key();
                let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event };
                let verdict = fold.apply(&record);
                self.note(&record, &verdict);
                let text = verdict.rejected().map_or("accepted".to_owned(), |r| format!("rejected:{r}"));
                (text, Some(record.event.event_id))
            }
        };
        let crc = raw.value_crc32c();
        let id = event_id.map(|id| format!(",\"event_id\":\"{id}\"")).unwrap_or_default();
        format!(
            "{{\"partition\":{},\"offset\":{},\"verdict\":\"{verdict}\",\"state_hash\":\"{:032x}\",\"crc32c\":\"{crc:08x}\"{id}}}",
            raw.partition,
            raw.offset,
            fold.hash()
        )
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "counts a few kinds for a table; judges nothing")]
    fn note(&mut self, record: &Record, verdict: &Verdict) {
        let event = &record.event;
        let rejected = verdict.rejected();
        if let Some(reason) = rejected {
            *self.rejected.entry(reason.as_str()).or_default() += 1;
        }
        let Some(id) = event.task_id else {
            self.claims += u64::from(rejected.is_none() && matches!(event.body, Body::OwnershipClaimed(_)));
            return;
        };
        if let (Body::TaskCreated(_), None) = (&event.body, rejected) {
            let name = self.names.get(&id).cloned().unwrap_or_else(|| "nobody's".to_owned());
            let fresh =
                TaskAccount { name, state: TaskState::Created, attempts: 0, resumed_steps: 0, lines: Vec::new() };
            self.tasks.insert(id, fresh);
        }
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.lines.push(Line {
            offset: record.offset,
            broker_ms: record.broker_ms,
            text: describe(event),
            rejected: rejected.map(|r| r.as_str()),
        });
        if rejected.is_some() {
            return;
        }
        let (first, last) = self.span_ms.unwrap_or((record.broker_ms, record.broker_ms));
        self.span_ms = Some((first.min(record.broker_ms), last.max(record.broker_ms)));
        match &event.body {
            Body::TaskAssigned(_) => task.attempts += 1,
            Body::TaskReplayPlanned(b) => task.resumed_steps += b.skip.len(),
            Body::TaskCompleted(_) => task.state = TaskState::Success,
            Body::TaskFailedPermanently(_) => task.state = TaskState::FailedPermanently,
            Body::TaskCancelled(_) => task.state = TaskState::Cancelled,
            // The last state of tasks that are still open comes from the fold.
            _ => {}
        }
    }
}

// One line a person understands; numbers that matter for fencing are in it.
#[expect(clippy::wildcard_enum_match_arm, reason = "a kind without a text of its own is shown by its name")]
fn describe(event: &task_events::Event) -> String {
    let e = event.exec_epoch;
    let what = match &event.body {
        Body::TaskAssigned(b) => format!("to {} as attempt {e}", b.worker_id),
        Body::TaskStepCompleted(b) => format!("step {} ({})", b.done.index + 1, b.done.step),
        Body::TaskCompleted(b) => format!("result {}", &b.result_data_hash.to_string()[..12]),
        Body::TaskFailed(b) => format!("{}: {}", b.error_code, b.error_message),
        Body::TaskLost(_) => format!("attempt {e} gave no sign of life"),
        Body::TaskReleased(b) => format!("attempt {e} came back: {}", b.reason),
        Body::TaskRetryApproved(b) => format!("again after {} ms", b.backoff_ms),
        Body::TaskReplayPlanned(b) => format!("{} steps not to be run again", b.skip.len()),
        Body::TaskFailedPermanently(b) => b.reason.to_string(),
        Body::TaskFailureAnalysis(b) => b.summary.to_string(),
        Body::TaskOverdue(b) => format!("waits for {}", b.waiting_for),
        Body::RejectedReport(b) => format!("{} of attempt {e}: {}", b.reported, b.reason),
        _ => String::new(),
    };
    format!("{:<20} {what}", event.kind.as_str()).trim_end().to_owned()
}
