//! Fold rate: decode + apply + hash of a partition with 100,000 open tasks, 10 % of them failing
//! once, beside decode alone in the same run. `cargo bench -p task-core --bench fold`.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark prints and reads clocks")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use task_core::decide::{self, Assign, Draft, NewTask, Report, ReportBody, RetryPolicy, Stamp, View};
use task_core::{PartitionState, Record};
use task_events::{
    Body, Encoded, Encoder, ErrorCategory, Event, HashForm, Incarnation, Offset, OwnerSeq, OwnershipClaimed,
    PartitionEpoch, PartitionId, Producer, RecordKey, RecordParts, RuleVersion, Sampling, Service, Sha256Hash,
    StepDone, TASK_ID_EPOCH_MS, TaskCreated, TaskId, TaskState, Timeouts, Witness, decode, owner_event_id, writer_of,
};

const OPEN: usize = 100_000;
const RECORDS: usize = 1_000_000;
const PARTITION: PartitionId = PartitionId(3);

struct Writer {
    fold: PartitionState,
    encoder: Encoder,
    log: Vec<Encoded>,
    seq: u64,
    made: u64,
    ms: i64,
}

impl Writer {
    fn new() -> Self {
        let mut writer = Self {
            fold: PartitionState::new(PARTITION, true),
            encoder: Encoder::new(),
            log: Vec::with_capacity(RECORDS + OPEN),
            seq: 0,
            made: 0,
            ms: TASK_ID_EPOCH_MS + 1_000_000,
        };
        writer.write(
            Draft::control(Body::OwnershipClaimed(OwnershipClaimed { url: "http://a".into(), claim_attempt: 1 })),
            1,
        );
        writer
    }

    fn write(&mut self, draft: Draft, epoch: u32) {
        let kind = draft.body.kind();
        let service = writer_of(kind);
        let owner = service == Service::Coordinator;
        let seq = OwnerSeq(self.seq);
        self.seq += u64::from(owner);
        let event = draft.stamped(Stamp {
            event_id: owner_event_id(PARTITION, PartitionEpoch(epoch), seq, "coordinator-1", Incarnation(7), 1),
            partition_epoch: owner.then_some(PartitionEpoch(epoch)),
            owner_seq: owner.then_some(seq),
            event_time: self.ms,
            causation_id: None,
            producer: Producer { service, instance: "coordinator-1".into(), incarnation: Incarnation(7) },
            rule_version: RuleVersion(1),
        });
        self.log.push(self.encoder.encode(&event, PARTITION, Sampling::Recorded).expect("fits"));
        let record = record(self.log.len() as u64 - 1, self.ms, event);
        let verdict = self.fold.apply(&record);
        assert_eq!(verdict.rejected(), None, "{:?}", record.event);
    }

    // Moves a task one step on its way; `None` when it is closed.
    fn step(&mut self, id: TaskId, fails: bool) -> Option<()> {
        let slot = self.fold.tasks.get(id)?.clone();
        let row = slot.row.as_deref()?;
        let view = View { core: &slot.core, row };
        let done = StepDone { step: "settle".into(), index: 0, output_hash: Sha256Hash([3; 32]), is_idempotent: true };
        let report =
            |body| decide::report(view, Report { attempt: slot.core.attempt(), worker_id: "worker-1".into(), body });
        let drafts = match slot.core.state {
            TaskState::Created | TaskState::Retrying => {
                let to = Assign {
                    worker_id: "worker-1".into(),
                    incarnation: Incarnation(9),
                    handler_version: "1".into(),
                    lease_ms: 60_000,
                    lease_max_ms: 120_000,
                    heartbeat_ms: 10_000,
                    optimistic_start: false,
                };
                vec![decide::assign(view, to, self.ms).ok()?]
            }
            TaskState::Assigned => {
                report(ReportBody::Starting { start_time: self.ms, memory_usage_percent: 40 }).ok()?
            }
            TaskState::Executing if row.steps.is_empty() => report(ReportBody::Step(done)).ok()?,
            TaskState::Executing if fails && slot.core.retry_count == 0 => report(ReportBody::Failure {
                error_code: "UPSTREAM_503".into(),
                error_message: "upstream answered 503".into(),
                category: ErrorCategory::Transient,
                failed_step: Some("book".into()),
                is_idempotent: Some(true),
                execution_time_ms: 12,
                steps_done: vec![done],
                memory_usage_percent: 41,
            })
            .ok()?,
            TaskState::Executing => report(ReportBody::Success {
                result_data_hash: Sha256Hash([5; 32]),
                execution_time_ms: 12,
                steps_done: vec![done],
                memory_usage_percent: 41,
            })
            .ok()?,
            TaskState::Failed | TaskState::Lost => {
                vec![decide::retry_verdict(view, RetryPolicy::default(), self.ms, 1 << 60).ok()?]
            }
            TaskState::RetryApproved => vec![decide::replay_plan(view, Witness::SnapshotAndLog).ok()?],
            TaskState::ReplayPlanned => vec![decide::retried(view).ok()?],
            TaskState::Success | TaskState::FailedPermanently | TaskState::Cancelled => return None,
        };
        drafts.into_iter().for_each(|draft| self.write(draft, 1));
        Some(())
    }

    fn create(&mut self) -> TaskId {
        self.made += 1;
        self.ms += i64::from(self.made.is_multiple_of(20));
        let id = TaskId::mint(self.fold.highest, PARTITION, self.ms).expect("ids left");
        let created = TaskCreated {
            task_type: "stock.sync".into(),
            queue: "stock".into(),
            creator: "shop".into(),
            priority: 4,
            deadline: None,
            not_before: None,
            payload_hash: Sha256Hash([1; 32]),
            hash_form: HashForm::PlainSha256,
            payload_ref: None,
            business_key: None,
            labels: BTreeMap::new(),
            concurrency_key: None,
            timeouts: Timeouts { start_to_close_ms: 3_600_000, schedule_to_start_ms: None },
            max_retries: 3,
            trace_given: false,
            key_hash: None,
            request_hash: None,
        };
        let task =
            NewTask { created, trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(), sampling: Sampling::Recorded };
        self.write(decide::create(id, task), 1);
        id
    }
}

fn record(offset: u64, broker_ms: i64, event: Event) -> Record {
    Record { offset: Offset(offset), broker_ms, key: RecordKey::of(&event, PARTITION), event }
}

fn parts(e: &Encoded) -> RecordParts<'_, impl Iterator<Item = (&str, &[u8])>> {
    RecordParts { headers: e.headers.iter().map(|(n, v)| (*n, v.as_ref())), value: Some(&e.value) }
}

fn main() {
    let mut writer = Writer::new();
    let mut open: VecDeque<TaskId> = (0..OPEN).map(|_| writer.create()).collect();
    let warm = writer.log.len();
    while writer.log.len() < warm + RECORDS {
        let Some(id) = open.pop_front() else { break };
        let fails = id.sequence() % 10 == 0;
        if writer.step(id, fails).is_some() && writer.fold.tasks.get(id).is_some() {
            open.push_back(id);
        } else {
            let fresh = writer.create();
            open.push_back(fresh);
        }
    }
    let bytes: usize = writer.log[warm..].iter().map(|e| e.value.len()).sum();
    println!(
        "{} records, {} open tasks, {} B on average",
        writer.log.len() - warm,
        writer.fold.tasks.len(),
        bytes / RECORDS
    );
    let raw_crc =
        rate("crc32c alone", RECORDS, || writer.log[warm..].iter().fold(0u32, |sum, e| sum ^ crc32c_of(&e.value)));
    let decoded = rate("decode alone", RECORDS, || {
        writer.log[warm..].iter().map(|e| decode(parts(e)).expect("intact").event_sequence.0).fold(0, u32::wrapping_add)
    });
    for rows in [false, true] {
        let mut fold = PartitionState::new(PARTITION, rows);
        let mut apply = |from: usize, to: usize| {
            for (i, e) in writer.log[from..to].iter().enumerate() {
                let key = RecordKey::parse(Some(&e.key));
                let event = decode(parts(e)).expect("intact");
                let verdict =
                    fold.apply(&Record { offset: Offset((from + i) as u64), broker_ms: writer.ms, key, event });
                assert_eq!(verdict.rejected(), None);
            }
            fold.hash()
        };
        apply(0, warm);
        let name = if rows { "decode + apply + hash, rows kept" } else { "decode + apply + hash" };
        let folded = rate(name, RECORDS, || apply(warm, warm + RECORDS));
        println!("  {:.2} of decode alone, {:.3} of crc32c alone", folded / decoded, folded / raw_crc);
    }
}

fn crc32c_of(value: &[u8]) -> u32 {
    crc32c::crc32c(value)
}

fn rate<T>(name: &str, records: usize, run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(run());
    let rate = records as f64 / start.elapsed().as_secs_f64();
    println!("{name:40} {:>10.0} records/s", rate);
    rate
}
