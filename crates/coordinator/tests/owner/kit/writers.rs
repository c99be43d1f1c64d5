//! What clients and workers say, and what the other services write.

use coordinator::owner::{Command, CreateTask};
use snapshot_store::PayloadItem;
use std::collections::BTreeMap;
use task_core::decide::{self, Draft, NewTask, RetryPolicy, Stamp, View};
use task_events::{
    Encoder, ErrorCategory, EventId, ExecEpoch, ExecutionId, HashForm, Incarnation, OwnerSeq, PartitionEpoch, Producer,
    RuleVersion, RunNo, Sampling, Service, Sha256Hash, TaskCreated, TaskId, Text, Timeouts, Witness, writer_of,
};
use worker_protocol::{Attempt, Heartbeat, Poll, Report, ReportBody};

use super::{P, World};

pub fn sha(text: &str) -> Sha256Hash {
    Sha256Hash::of(text.as_bytes())
}

/// How the parameters of a task are stored.
pub fn parameters(text: &str) -> PayloadItem {
    PayloadItem::Parameters { payload_hash: sha(text) }
}

/// A task without limits or key; its name stands in the business key.
pub fn task(name: &str) -> CreateTask {
    let created = TaskCreated {
        task_type: "t".into(),
        queue: "q".into(),
        creator: "default".into(),
        priority: 4,
        deadline: None,
        not_before: None,
        payload_hash: sha("{}"),
        hash_form: HashForm::PlainSha256,
        payload_ref: Some("ref".into()),
        business_key: Some(name.into()),
        labels: BTreeMap::new(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 3_600_000, schedule_to_start_ms: None },
        max_retries: 3,
        trace_given: false,
        key_hash: None,
        request_hash: None,
    };
    CreateTask {
        task: NewTask { created, trace_id: Text::default(), sampling: Sampling::default() },
        key: None,
        payload: None,
        parent: None,
    }
}

pub fn poll(worker: &str) -> Poll {
    Poll {
        worker_id: worker.into(),
        incarnation: Incarnation(1),
        handler_version: "v1".into(),
        queues: vec!["q".into()],
        free_slots: 1,
        held: Vec::new(),
        wait_ms: 5_000,
    }
}

fn attempt(id: TaskId, run: u32, epoch: u32) -> Attempt {
    let exec_epoch = ExecEpoch(epoch);
    Attempt { run_no: RunNo(run), exec_epoch, execution_id: ExecutionId::new(id, exec_epoch) }
}

pub fn report(id: TaskId, run: u32, epoch: u32, body: ReportBody) -> Command {
    Command::Report(Report { attempt: attempt(id, run, epoch), worker_id: "w1".into(), body })
}

pub fn beat(id: TaskId, run: u32, epoch: u32, step_in_progress: Option<(Text, bool)>) -> Command {
    Command::Heartbeat(Heartbeat {
        attempt: attempt(id, run, epoch),
        worker_id: "w1".into(),
        incarnation: Incarnation(1),
        memory_usage_percent: 10,
        step_in_progress,
    })
}

pub fn complete(hash: &str) -> ReportBody {
    ReportBody::Success {
        result_data_hash: sha(hash),
        execution_time_ms: 5,
        steps_done: Vec::new(),
        memory_usage_percent: 10,
    }
}

pub fn fail(code: &str) -> ReportBody {
    ReportBody::Failure {
        error_code: code.into(),
        error_message: "no".into(),
        category: ErrorCategory::Transient,
        failed_step: None,
        is_idempotent: None,
        execution_time_ms: 5,
        steps_done: Vec::new(),
        memory_usage_percent: 10,
    }
}

impl World {
    /// A record of another service lands, numbered so that no two share an identity.
    pub fn write(&mut self, draft: Draft) {
        let service = writer_of(draft.body.kind());
        self.write_as(draft, service, None, None);
    }

    /// A record with this fence lands: a zombie's, or a forger's.
    pub fn forge(&mut self, draft: Draft, epoch: u32, seq: u64) {
        self.write_as(draft, Service::Coordinator, Some(PartitionEpoch(epoch)), Some(OwnerSeq(seq)));
    }

    fn write_as(&mut self, draft: Draft, service: Service, epoch: Option<PartitionEpoch>, seq: Option<OwnerSeq>) {
        let mut event_id = [0x77; 16];
        event_id[..8].copy_from_slice(&(self.log.len() as u64).to_be_bytes());
        let sampling = draft.sampling;
        let event = draft.stamped(Stamp {
            event_id: EventId(event_id),
            partition_epoch: epoch,
            owner_seq: seq,
            event_time: self.now.wall_ms,
            causation_id: None,
            producer: Producer { service, instance: "other".into(), incarnation: Incarnation(9) },
            rule_version: RuleVersion(1),
        });
        let encoded = Encoder::new().encode(&event, P, sampling).expect("the kit writes what fits");
        self.land_record(&event_log::OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value });
        self.settle();
    }

    /// Another incarnation claims.
    pub fn foreign_claim(&mut self) {
        let epoch = self.fold.epoch.0 + 1;
        let body = task_events::OwnershipClaimed { url: "http://other".into(), claim_attempt: 1 };
        self.forge(Draft::control(task_events::Body::OwnershipClaimed(body)), epoch, 0);
    }

    pub fn decide(&mut self, id: TaskId, decider: impl FnOnce(View<'_>) -> Draft) {
        let slot = self.fold.tasks.get(id).expect("the task is open").clone();
        let row = slot.row.expect("rows are kept");
        self.write(decider(View { core: &slot.core, row: &row }));
    }

    /// task-engine lets it run again, after `backoff` ms at most.
    pub fn approve(&mut self, id: TaskId, backoff: u64) {
        let now = self.now.wall_ms;
        let policy = RetryPolicy { version: 1, base_ms: backoff, cap_ms: backoff };
        self.decide(id, |view| decide::retry_verdict(view, policy, now, u64::MAX).expect("a verdict"));
    }

    /// auto-replay says how.
    pub fn plan(&mut self, id: TaskId) {
        self.decide(id, |view| decide::replay_plan(view, Witness::LogOnly).expect("a plan"));
    }
}
