//! One minimal and one full event of each kind (feature `arbitrary-events`): the golden fixtures,
//! the seeds of the fuzzer and the load of the benchmark are made of them.
//!
//! They are plausible, not arbitrary: ids fit their partition, an attempt its task. What stands
//! here is what `schemas/fixtures/v1` holds, so a change of it is a change of golden bytes.

mod full;
mod minimal;

use crate::{
    Event, EventId, EventSequence, ExecEpoch, ExecutionId, Incarnation, Kind, KindClass, OwnerSeq, PartitionEpoch,
    PartitionId, Producer, RuleVersion, RunNo, Service, Sha256Hash, StepDone, TaskId, owner_event_id, seal_event_id,
    verdict_event_id, writer_of,
};

/// Partition of all samples.
pub const PARTITION: PartitionId = PartitionId(7);
/// Time of all samples, Unix ms.
pub const NOW_MS: i64 = 1_800_000_000_000;
const INCARNATION: Incarnation = Incarnation((95_932_800_000 << 22) | 0x2a_5a5a);

/// The task of all samples.
pub fn task() -> TaskId {
    TaskId::from_parts(95_932_800_123, PARTITION, 1).expect("parts in range")
}

/// Its second attempt.
pub fn attempt() -> ExecutionId {
    ExecutionId::new(task(), ExecEpoch(2))
}

/// The smallest plausible event of a kind: options null, texts and lists empty.
pub fn minimal(kind: Kind) -> Event {
    let service = writer_of(kind);
    let instance = instance(service);
    Event {
        event_id: event_id(kind, service),
        kind,
        event_sequence: sequence(kind),
        task_id: subject(kind),
        run_no: RunNo(u32::from(subject(kind).is_some())),
        exec_epoch: ExecEpoch(0),
        partition_epoch: (service == Service::Coordinator).then_some(PartitionEpoch(3)),
        owner_seq: (service == Service::Coordinator).then_some(owner_seq(kind)),
        event_time: NOW_MS,
        trace_id: "".into(),
        causation_id: None,
        producer: Producer { service, instance: instance.into(), incarnation: INCARNATION },
        rule_version: RuleVersion(1),
        body: minimal::body(kind),
    }
}

/// An event of a kind with every option set and every text and list filled.
pub fn full(kind: Kind) -> Event {
    let event = minimal(kind);
    Event {
        exec_epoch: ExecEpoch(if event.task_id.is_some() { 2 } else { 0 }),
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
        causation_id: Some(event_id(Kind::OwnershipRenewed, Service::Coordinator)),
        body: full::body(kind),
        ..event
    }
}

fn instance(service: Service) -> &'static str {
    match service {
        Service::Coordinator => "coordinator-1",
        Service::TaskEngine => "task-engine-1",
        Service::AutoReplay => "auto-replay-1",
        Service::AuditReport => "audit-report-1",
    }
}

fn owner_seq(kind: Kind) -> OwnerSeq {
    OwnerSeq(if kind == Kind::OwnershipClaimed { 0 } else { 17 })
}

fn subject(kind: Kind) -> Option<TaskId> {
    match kind.class() {
        KindClass::TaskEvent | KindClass::Annotation | KindClass::Report => Some(task()),
        KindClass::Control | KindClass::Seal => None,
    }
}

fn sequence(kind: Kind) -> EventSequence {
    EventSequence(match kind.class() {
        KindClass::TaskEvent if kind == Kind::TaskCreated => 1,
        KindClass::TaskEvent | KindClass::Annotation => 5,
        KindClass::Report | KindClass::Control | KindClass::Seal => 0,
    })
}

fn event_id(kind: Kind, service: Service) -> EventId {
    let instance = instance(service);
    match service {
        Service::Coordinator => owner_event_id(PARTITION, PartitionEpoch(3), owner_seq(kind), instance, INCARNATION, 1),
        Service::TaskEngine | Service::AutoReplay => verdict_event_id(task(), sequence(kind), kind, instance, 1),
        Service::AuditReport => seal_event_id(PARTITION, crate::Offset(65_536), instance),
    }
}

fn hash(of: &str) -> Sha256Hash {
    Sha256Hash::of(of.as_bytes())
}

fn step(name: &str, index: u32) -> StepDone {
    StepDone { step: name.into(), index, output_hash: hash(name), is_idempotent: index.is_multiple_of(2) }
}
