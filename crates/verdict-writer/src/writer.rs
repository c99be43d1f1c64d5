//! Drafts turned into records.

use event_log::OutRecord;
use service_kit::Metrics;
use service_kit::projection::{Decision, Moment};
use task_core::decide::{Draft, Stamp};
use task_events::{Encoder, EventId, PartitionId, Producer, RuleVersion, TaskId, verdict_event_id};

/// Writes the verdicts of one process on one partition.
pub struct VerdictWriter {
    encoder: Encoder,
    partition: PartitionId,
    producer: Producer,
    metrics: Metrics,
}

impl VerdictWriter {
    /// A writer for one partition.
    pub fn new(partition: PartitionId, producer: Producer, metrics: Metrics) -> Self {
        Self { encoder: Encoder::new(), partition, producer, metrics }
    }

    /// The records of a verdict: annotations directly before it, in one batch.
    ///
    /// `attempt` counts the tries of this process for one event_sequence, across assignments of
    /// the partition; no record of a process has the identity of another of its records.
    pub fn write(
        &mut self,
        task: TaskId,
        drafts: Vec<Draft>,
        attempt: u32,
        (cause, rules): (Option<EventId>, RuleVersion),
        now: Moment,
    ) -> Decision {
        let mut records = Vec::with_capacity(drafts.len());
        let mut verdict = None;
        for draft in drafts {
            let (kind, sampling) = (draft.body.kind(), draft.sampling);
            // A process that starts anew counts from 1 again. Should its predecessor's verdict on
            // the same event_sequence still be on its way, then both have one identity; the
            // event_sequence lets one of them count, and either is as good (schemas/decoding.md).
            let instance = &self.producer.instance;
            let event_id = verdict_event_id(task, draft.event_sequence, kind, instance, u64::from(attempt));
            let event = draft.stamped(Stamp {
                event_id,
                partition_epoch: None,
                owner_seq: None,
                event_time: now.wall_ms,
                causation_id: cause,
                producer: self.producer.clone(),
                rule_version: rules,
            });
            match self.encoder.encode(&event, self.partition, sampling) {
                Ok(encoded) => {
                    records.push(OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value });
                }
                // A defect of the decider. Nothing is written; people must look.
                Err(error) => {
                    self.metrics.alarm("verdict_not_encodable", format!("task {task}: {error}"));
                    return Decision::Nothing;
                }
            }
            verdict = Some(event_id);
        }
        match verdict {
            Some(verdict) => Decision::Write { records, verdict },
            None => Decision::Nothing,
        }
    }
}
