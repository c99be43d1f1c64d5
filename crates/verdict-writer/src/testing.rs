//! An owner that writes histories into a scripted log, for tests of the services: it proposes by
//! the production deciders and folds everything back, so that only real histories come about.

use event_log::OutRecord;
use service_kit::testing::ScriptedLog;
use task_core::decide::{self, Assign, Draft, Lost, NewTask, Report, ReportBody, RetryPolicy, Stamp, View};
use task_core::{PartitionState, Pen};
use task_events::{
    Body, Encoder, ErrorCategory, Event, HashForm, Incarnation, Offset, OwnerSeq, OwnershipClaimed, PartitionEpoch,
    PartitionId, Producer, RuleVersion, Sampling, Service, Sha256Hash, StepDone, TaskCreated, TaskId, Text, Timeouts,
    decode, owner_event_id,
};

use crate::source::Compared;
use crate::{FoldSource, PenFold};

/// Wall clock of the histories: the zero of [`service_kit::testing::ManualClock`].
const NOW_MS: i64 = task_events::TASK_ID_EPOCH_MS;

/// The owner of partition 0.
pub struct ScriptedOwner {
    log: ScriptedLog,
    fold: PenFold,
    encoder: Encoder,
    producer: Producer,
    seq: u64,
}

impl ScriptedOwner {
    /// Claims the partition.
    pub fn claim(log: &ScriptedLog) -> Self {
        let producer = Producer { service: Service::Coordinator, instance: "c1".into(), incarnation: Incarnation(1) };
        let state = PartitionState::new(PartitionId(0), true);
        let compared = Compared::new(FoldSource::from_the_start(), PartitionId(0));
        let fold =
            PenFold::new(state, compared, (Pen::Owner, producer.clone()), Default::default(), Default::default());
        let mut owner = Self { log: log.clone(), fold, encoder: Encoder::new(), producer, seq: 0 };
        owner.write(Draft::control(Body::OwnershipClaimed(OwnershipClaimed {
            url: "http://c1".into(),
            claim_attempt: 1,
        })));
        owner
    }

    /// The state, with everything that is in the log now.
    pub fn state(&mut self) -> &PartitionState {
        let next = self.fold.state().next_offset.0 as usize;
        for record in self.log.records(0).split_off(next) {
            self.fold.fold(&record).expect("known rules");
        }
        self.fold.state()
    }

    /// The log's records, decoded.
    pub fn events(&self) -> Vec<Event> {
        let all = self.log.records(0);
        all.iter()
            .map(|raw| {
                let headers = raw.headers.iter().map(|(n, v)| (n.as_str(), v.as_ref()));
                decode(task_events::RecordParts { headers, value: raw.value.as_deref() }).expect("well-formed")
            })
            .collect()
    }

    /// Creates a task.
    pub fn create(&mut self, max_retries: u32) -> TaskId {
        let id = TaskId::mint(self.state().highest, PartitionId(0), NOW_MS + 1).expect("ids are left");
        let created = TaskCreated {
            task_type: "t".into(),
            queue: "q".into(),
            creator: "default".into(),
            priority: 4,
            deadline: None,
            not_before: None,
            payload_hash: Sha256Hash::default(),
            hash_form: HashForm::PlainSha256,
            payload_ref: None,
            business_key: None,
            labels: Default::default(),
            concurrency_key: None,
            timeouts: Timeouts { start_to_close_ms: 60_000, schedule_to_start_ms: None },
            max_retries,
            trace_given: false,
            key_hash: None,
            request_hash: None,
        };
        self.write(decide::create(id, NewTask { created, trace_id: Text::default(), sampling: Sampling::default() }));
        id
    }

    /// Hands it to a worker, which starts and completes this many steps.
    pub fn run(&mut self, task: TaskId, worker: &str, steps: u32) {
        let to = Assign {
            worker_id: worker.into(),
            incarnation: Incarnation(1),
            handler_version: "1".into(),
            lease_ms: 6_000,
            lease_max_ms: 6_000,
            heartbeat_ms: 2_000,
            optimistic_start: false,
        };
        self.propose(task, |view| Ok(vec![decide::assign(view, to, NOW_MS)?]));
        self.report(task, ReportBody::Starting { start_time: NOW_MS, memory_usage_percent: 1 });
        for index in 0..steps {
            let output_hash = Sha256Hash([index as u8; 32]);
            let done = StepDone { step: format!("s{index}").into(), index, output_hash, is_idempotent: true };
            self.report(task, ReportBody::Step(done));
        }
    }

    /// Its attempt fails.
    pub fn fail(&mut self, task: TaskId, category: ErrorCategory) {
        self.report(
            task,
            ReportBody::Failure {
                error_code: "BROKEN".into(),
                error_message: "broken".into(),
                category,
                failed_step: None,
                is_idempotent: None,
                execution_time_ms: 1,
                steps_done: Vec::new(),
                memory_usage_percent: 1,
            },
        );
    }

    /// Its attempt is lost.
    pub fn lose(&mut self, task: TaskId, step_in_progress: Option<(Text, bool)>) {
        self.propose(task, |view| Ok(vec![decide::lost(view, Lost { step_in_progress, ..Lost::default() })?]));
    }

    /// The engine lets it run again.
    pub fn approve(&mut self, task: TaskId, policy: RetryPolicy) {
        self.propose(task, |view| Ok(vec![decide::retry_verdict(view, policy, NOW_MS, 0)?]));
    }

    /// It is planned and may be handed out again.
    pub fn retry(&mut self, task: TaskId) {
        self.propose(task, |view| Ok(vec![decide::retried(view)?]));
    }

    /// Somebody wants it cancelled.
    pub fn cancel(&mut self, task: TaskId) {
        self.propose(task, |view| Ok(vec![decide::cancel_request(view, "me".into(), "why not".into())?]));
    }

    /// An annotation on the current version.
    pub fn overdue(&mut self, task: TaskId) {
        self.propose(task, |view| Ok(decide::overdue(view, NOW_MS, None).into_iter().collect()));
    }

    /// Appends a draft as the owner.
    pub fn write(&mut self, draft: Draft) {
        let epoch = PartitionEpoch(1);
        let seq = OwnerSeq(self.seq);
        self.seq += 1;
        let producer = self.producer.clone();
        let event = draft.stamped(Stamp {
            event_id: owner_event_id(PartitionId(0), epoch, seq, &producer.instance, producer.incarnation, 1),
            partition_epoch: Some(epoch),
            owner_seq: Some(seq),
            event_time: NOW_MS,
            causation_id: None,
            producer,
            rule_version: RuleVersion(1),
        });
        let encoded = self.encoder.encode(&event, PartitionId(0), Sampling::Recorded).expect("encodable");
        let record = OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value };
        let next = Offset(self.log.records(0).len() as u64);
        self.log.write(0, vec![record]);
        let before = self.fold.state().counters.rejected_total();
        assert_eq!(self.state().counters.rejected_total(), before, "the record at {next} is a real history's");
    }

    fn report(&mut self, task: TaskId, body: ReportBody) {
        self.propose(task, |view| {
            decide::report(view, Report { attempt: view.core.attempt(), worker_id: "w".into(), body })
        });
    }

    fn propose(&mut self, task: TaskId, decide: impl FnOnce(View<'_>) -> Result<Vec<Draft>, decide::Refusal>) {
        self.state();
        let drafts = decide(self.fold.view(task).expect("open")).expect("possible");
        drafts.into_iter().for_each(|draft| self.write(draft));
    }
}
