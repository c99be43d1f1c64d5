//! What the search is about: two tasks of one partition, and constants where time and chance would
//! be. Time never judges (design.md §4.2), so one instant is enough.

use std::collections::BTreeMap;

use task_events::{
    EventId, EventSequence, HashForm, Incarnation, Kind, OwnerSeq, PartitionEpoch, PartitionId, Producer, RuleVersion,
    Service, Sha256Hash, TASK_ID_EPOCH_MS, TaskCreated, TaskId, Text, Timeouts, owner_event_id, seal_event_id,
    verdict_event_id, writer_of,
};

/// The partition.
pub const PARTITION: PartitionId = PartitionId(0);
/// The instant at which everything happens, Unix ms.
pub const NOW_MS: i64 = TASK_ID_EPOCH_MS + 60_000;
/// Tasks the search knows. A history may create both; most need one.
pub const TASKS: usize = 2;
/// The queue of both tasks.
pub const QUEUE: Text = Text::const_new("q");

/// The id of the n-th task (from 0), as the owner mints it above the highest accepted one.
pub fn task_id(n: usize) -> TaskId {
    let mut id = TaskId::ZERO;
    for _ in 0..=n {
        id = TaskId::mint(id, PARTITION, NOW_MS).unwrap_or(id);
    }
    id
}

/// A task of another partition, for records that went astray.
pub fn foreign_id() -> TaskId {
    TaskId::mint(TaskId::ZERO, PartitionId(1), NOW_MS).unwrap_or(TaskId::ZERO)
}

/// Which of our tasks an id names.
pub fn index_of(id: TaskId) -> Option<usize> {
    (0..TASKS).find(|n| task_id(*n) == id)
}

/// What TaskCreated says. A deadline and a schedule-to-start limit make every timeout possible.
pub fn created(max_retries: u32, keyed: bool) -> TaskCreated {
    TaskCreated {
        task_type: Text::const_new("demo"),
        queue: QUEUE,
        creator: Text::const_new("default"),
        priority: 4,
        deadline: Some(NOW_MS + 7_200_000),
        not_before: None,
        payload_hash: Sha256Hash::default(),
        hash_form: HashForm::PlainSha256,
        payload_ref: None,
        business_key: None,
        labels: BTreeMap::new(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 1_000, schedule_to_start_ms: Some(1_000) },
        max_retries,
        trace_given: false,
        key_hash: keyed.then_some(Sha256Hash([1; 32])),
        request_hash: keyed.then_some(Sha256Hash([2; 32])),
    }
}

/// The producer of a kind. `instance` tells rival claimants of one epoch apart.
pub fn producer(kind: Kind, instance: u8) -> Producer {
    let service = writer_of(kind);
    let name = match service {
        Service::Coordinator => "coordinator",
        Service::TaskEngine => "engine",
        Service::AutoReplay => "replayer",
        Service::AuditReport => "audit",
    };
    Producer { service, instance: format!("{name}-{instance}").into(), incarnation: Incarnation(i64::from(instance)) }
}

/// The identity its writer gives a record.
pub fn event_id(
    kind: Kind,
    task: Option<TaskId>,
    sequence: EventSequence,
    fence: (Option<PartitionEpoch>, Option<OwnerSeq>),
    instance: u8,
) -> EventId {
    let by = producer(kind, instance);
    match by.service {
        Service::Coordinator => owner_event_id(
            PARTITION,
            fence.0.unwrap_or_default(),
            fence.1.unwrap_or_default(),
            &by.instance,
            by.incarnation,
            u64::from(instance),
        ),
        Service::TaskEngine | Service::AutoReplay => {
            verdict_event_id(task.unwrap_or(TaskId::ZERO), sequence, kind, &by.instance, 1)
        }
        Service::AuditReport => seal_event_id(PARTITION, task_events::Offset(0), &by.instance),
    }
}

/// The rules every writer names; information only.
pub const RULE_VERSION: RuleVersion = RuleVersion(1);
