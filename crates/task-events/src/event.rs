//! The envelope around every body, and the identities derived from it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::bodies::{Body, Kind, Producer};
use crate::{
    EventId, EventSequence, ExecEpoch, Incarnation, Offset, OwnerSeq, PartitionEpoch, PartitionId, RuleVersion, RunNo,
    TaskId, Text,
};

/// One record of the topic. Field docs and ranges: `schemas/task-execution-event.avsc`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// UUIDv5 over the writer's own counters: see [`owner_event_id`], [`verdict_event_id`], [`seal_event_id`].
    pub event_id: EventId,
    /// Equal to the kind of [`Event::body`]; a record where they differ is malformed.
    pub kind: Kind,
    /// Version + 1 for task events and the annotations before them, else 0.
    pub event_sequence: EventSequence,
    /// Subject; `None` for control kinds.
    pub task_id: Option<TaskId>,
    /// Run of the task; 0 for control kinds.
    pub run_no: RunNo,
    /// Fencing token of the attempt meant; 0 if none.
    pub exec_epoch: ExecEpoch,
    /// Owner kinds: the ownership they were decided in.
    pub partition_epoch: Option<PartitionEpoch>,
    /// Owner kinds: counter inside the ownership.
    pub owner_seq: Option<OwnerSeq>,
    /// Unix ms by the writer.
    pub event_time: i64,
    /// 32 hex digits of a W3C trace id, or empty.
    pub trace_id: Text,
    /// The record that led to this one.
    pub causation_id: Option<EventId>,
    /// Who wrote it.
    pub producer: Producer,
    /// Rules the writer decided by; information only.
    pub rule_version: RuleVersion,
    /// What happened.
    pub body: Body,
}

/// Namespace of every event id: the UUIDv5 of `events.dualtrack.io` in the DNS namespace.
pub const EVENT_ID_NAMESPACE: Uuid = Uuid::from_u128(0x847e_2ce6_9aae_51fd_9b30_8d6d_7312_9225);

fn v5(name: &str) -> EventId {
    EventId(Uuid::new_v5(&EVENT_ID_NAMESPACE, name.as_bytes()).into_bytes())
}

/// Identity of an owner's record: `owner|partition|epoch|owner_seq|instance|incarnation|claim_attempt`.
///
/// The claim attempt is part of it because an instance may claim one epoch twice after an
/// unknown outcome, and must tell its own two claims apart.
pub fn owner_event_id(
    partition: PartitionId,
    epoch: PartitionEpoch,
    owner_seq: OwnerSeq,
    instance: &str,
    incarnation: Incarnation,
    claim_attempt: u64,
) -> EventId {
    let mut name = String::with_capacity(96);
    let _ = write!(name, "owner|{partition}|{epoch}|{owner_seq}|{instance}|{incarnation}|{claim_attempt}");
    v5(&name)
}

/// Identity of an engine's or replayer's record: `verdict|task|event_sequence|kind|instance|attempt`.
pub fn verdict_event_id(task: TaskId, sequence: EventSequence, kind: Kind, instance: &str, attempt: u64) -> EventId {
    v5(&format!("verdict|{task}|{sequence}|{kind}|{instance}|{attempt}"))
}

/// Identity of a seal: `seal|partition|end|instance`.
pub fn seal_event_id(partition: PartitionId, end: Offset, instance: &str) -> EventId {
    v5(&format!("seal|{partition}|{end}|{instance}"))
}

/// Key of a record (design.md §3). A wrong key is a rejection by the fold, never malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKey {
    /// Decimal task id.
    Task(TaskId),
    /// `#partition`, of control records and seals.
    Control(PartitionId),
    /// Anything else, or none.
    Other,
}

impl RecordKey {
    /// Reads the key as it came from the log.
    pub fn parse(key: Option<&[u8]>) -> Self {
        let Some(text) = key.and_then(|k| std::str::from_utf8(k).ok()) else { return Self::Other };
        if let Some(digits) = text.strip_prefix('#') {
            let canonical = digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
            return match digits.parse() {
                Ok(p) if canonical => Self::Control(PartitionId(p)),
                _ => Self::Other,
            };
        }
        text.parse().map_or(Self::Other, Self::Task)
    }

    /// The key of an event in its partition.
    pub fn of(event: &Event, partition: PartitionId) -> Self {
        event.task_id.map_or(Self::Control(partition), Self::Task)
    }

    /// The bytes on the wire.
    pub fn to_bytes(self) -> bytes::Bytes {
        match self {
            Self::Task(id) => id.to_string().into(),
            Self::Control(p) => format!("#{p}").into(),
            Self::Other => bytes::Bytes::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_what_its_doc_says() {
        assert_eq!(EVENT_ID_NAMESPACE, Uuid::new_v5(&Uuid::NAMESPACE_DNS, b"events.dualtrack.io"));
    }

    #[test]
    fn keys_are_read_in_canonical_form_only() {
        let id = TaskId::from_raw(42).unwrap();
        assert_eq!(RecordKey::parse(Some(b"42")), RecordKey::Task(id));
        assert_eq!(RecordKey::parse(Some(b"#7")), RecordKey::Control(PartitionId(7)));
        assert_eq!(RecordKey::parse(Some(b"#0")), RecordKey::Control(PartitionId(0)));
        for bad in [&b"042"[..], b"#07", b"#", b"#+7", b"", b"x", b"#65536", &[0xff]] {
            assert_eq!(RecordKey::parse(Some(bad)), RecordKey::Other, "{bad:?}");
        }
        assert_eq!(RecordKey::parse(None), RecordKey::Other);
    }
}
